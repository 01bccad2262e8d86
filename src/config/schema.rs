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
    NullableKeys.transform(&mut schema);
    schema.to_value()
}

/// A key without a value, such as `validations:` with all below it commented out, is none.
struct NullableKeys;

impl Transform for NullableKeys {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let required: Vec<String> =
            serde_json::from_value(schema.get("required").cloned().unwrap_or_default()).unwrap_or_default();
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for (key, property) in properties {
            let Value::Object(property) = property else { continue };
            // What is needed, and an action, has to be said.
            let is_action = property.get("$ref").is_some_and(|reference| reference == "#/$defs/Action");
            if required.contains(key) || is_action || property.get("type").is_some_and(Value::is_array) {
                continue;
            }
            let said_of_it = ["description", "default"].map(|key| property.remove_entry(key));
            let value = Value::Object(std::mem::take(property));
            property.extend(said_of_it.into_iter().flatten());
            property.insert("anyOf".to_owned(), json!([value, {"type": "null"}]));
        }
    }
}
