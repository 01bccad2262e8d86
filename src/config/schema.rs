//! The JSON Schema of a configuration file, made from the types that read it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use crate::policy::Policies;

/// The schema (JSON Schema 2020-12), for editors and CI.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Policies>();
    schema.insert("title".to_owned(), "podgate configuration".into());
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    NullableSections { definitions }.transform(&mut schema);
    schema.to_value()
}

/// A section without a value, such as `validations:` with all below it commented out, is none.
struct NullableSections {
    definitions: Value,
}

impl Transform for NullableSections {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for property in properties.values_mut() {
            let Some(reference) = property.get("$ref").and_then(Value::as_str) else { continue };
            let name = reference.rsplit('/').next().unwrap_or_default();
            let definition = &self.definitions[name];
            if definition["type"] != "object" && definition["$ref"].is_null() {
                continue;
            }
            if let Some(members) = property.as_object_mut()
                && let Some(reference) = members.remove("$ref")
            {
                members.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
            }
        }
    }
}
