//! Parts of a pod in the configuration, held against the types of the Kubernetes API.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::super::suggestion::suggestion;
use crate::pod::Quantity;

/// Maps of strings that are no more than missing where they are empty; other empty objects mean
/// something, such as `emptyDir: {}`.
const MAPS: [&str; 7] = ["limits", "requests", "labels", "annotations", "matchLabels", "volumeAttributes", "options"];

/// Fields of file modes.
const MODES: [&str; 2] = ["defaultMode", "mode"];

/// Reads JSON as a type of the API, in which every key must be known, and every quantity be one.
///
/// # Errors
/// What does not fit, with the keys that lead to it.
pub(super) fn read<T: DeserializeOwned>(manifest: &Value) -> Result<T, (Vec<String>, String)> {
    serde_path_to_error::deserialize(Strict(manifest)).map_err(|error| {
        let keys = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        let mut path: Vec<String> = keys.collect();
        let Misfit { key, what } = error.into_inner();
        path.extend(key);
        let what = octal(manifest, &path).unwrap_or(what);
        (path, what)
    })
}

/// What is said of a file mode such as `0644`, which kubectl, with YAML 1.1, takes for 420, and YAML 1.2
/// for a decimal number.
fn octal(manifest: &Value, path: &[String]) -> Option<String> {
    let key = path.last().filter(|key| MODES.contains(&key.as_str()))?;
    let pointer = format!("/{}", path.join("/"));
    let written = match manifest.pointer(&pointer)? {
        Value::Number(number) if number.is_f64() => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let mode = u32::from_str_radix(written.strip_suffix(".0").unwrap_or(&written), 8).ok()?;
    Some(format!(
        "{key} is written as {mode} or 0o{mode:o} here: 0{mode:o} is decimal in YAML 1.2, and no text is a mode"
    ))
}

/// Takes out what the API server takes for missing: `null`, an empty list, an empty map of strings.
pub(super) fn tidy(manifest: &mut Value) {
    match manifest {
        Value::Object(members) => {
            members.retain(|key, value| match value {
                Value::Null => false,
                Value::Array(elements) => !elements.is_empty(),
                Value::Object(members) => !members.is_empty() || !MAPS.contains(&key.as_str()),
                _ => true,
            });
            members.values_mut().for_each(tidy);
        }
        Value::Array(elements) => elements.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Why JSON is no value of a type.
#[derive(Debug)]
struct Misfit {
    /// The key that is not known.
    key: Option<String>,
    what: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { key: None, what: message.to_string() }
    }
}

/// JSON that a type reads: the generated types pass over keys that they do not know.
#[derive(Debug, Clone, Copy)]
struct Strict<'v>(&'v Value);

impl<'de> IntoDeserializer<'de, Misfit> for Strict<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Strict<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => visitor.visit_i64(value),
                (None, Some(value)) => visitor.visit_u64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(elements) => visitor.visit_seq(SeqDeserializer::new(elements.iter().map(Strict))),
            Value::Object(members) => visitor
                .visit_map(MapDeserializer::new(members.iter().map(|(key, value)| (key.as_str(), Strict(value))))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let keys = self.0.as_object().into_iter().flat_map(serde_json::Map::keys);
        if let Some(key) = keys.into_iter().find(|key| !fields.contains(&key.as_str())) {
            let what = format!("there is no key {key:?} here: {}", suggestion(key, fields, "keys"));
            return Err(Misfit { key: Some(key.clone()), what });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Number(number) if name == "Quantity" => {
                visitor.visit_newtype_struct(number.to_string().into_deserializer())
            }
            Value::String(text) if name == "Quantity" => {
                Quantity::parse(text.as_str()).map_err(de::Error::custom)?;
                visitor.visit_newtype_struct(self)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Container, Volume};
    use serde_json::json;

    #[test]
    fn what_the_api_takes_is_taken() {
        let container = json!({
            "name": "a", "image": "a:1", "command": null,
            "ports": [{"containerPort": 80}],
            "env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": 1}}}],
            "resources": {"limits": {"cpu": 0.5, "memory": "1Gi", "example.com/slots": 1}},
            "livenessProbe": {"httpGet": {"port": "http"}},
            "readinessProbe": {"httpGet": {"port": 80}},
            "restartPolicyRules": [],
        });
        assert_eq!(read::<Container>(&container).map(|read| read.name), Ok("a".to_owned()));
        let volume = json!({"name": "a", "projected": {"sources": [{"downwardAPI": {"items": []}}]}});
        assert_eq!(read::<Volume>(&volume).map(|read| read.name), Ok("a".to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_path() {
        for (container, path, said) in [
            (json!({"imag": 1}), "imag", "there is no key \"imag\" here: did you mean \"image\"?"),
            (json!({"ports": [{"containerPort": 1, "hostport": 2}]}), "ports/0/hostport", "did you mean \"hostPort\"?"),
            (json!({"ports": [{"containerPort": "80"}]}), "ports/0/containerPort", "invalid type: string \"80\""),
            (json!({"command": "sh"}), "command", "invalid type: string \"sh\", expected a sequence"),
            (
                json!({"env": [{"name": "a", "value": 1}]}),
                "env/0/value",
                "invalid type: integer `1`, expected a string",
            ),
            (json!({"resources": {"limits": {"cpu": "1x"}}}), "resources/limits/cpu", "\"1x\" is not a quantity"),
            (json!({"securityContext": true}), "securityContext", "invalid type: boolean `true`"),
            (json!([]), "", "invalid type: sequence"),
        ] {
            let (found, what) = read::<Container>(&container).expect_err("it does not fit");
            assert_eq!(found.join("/"), path);
            assert!(what.contains(said), "{what}");
        }
    }

    #[test]
    fn a_mode_in_octal_is_told_in_full() {
        for written in [json!(644.0), json!("0644"), json!("644")] {
            let volume = json!({"name": "a", "secret": {"items": [{"key": "a", "path": "a", "mode": written}]}});
            let (path, what) = read::<Volume>(&volume).expect_err("it is no integer");
            assert_eq!(path.join("/"), "secret/items/0/mode");
            assert!(what.starts_with("mode is written as 420 or 0o644 here: 0644 is decimal"), "{what}");
        }
        let volume = json!({"name": "a", "configMap": {"defaultMode": 0.5}});
        let (_, what) = read::<Volume>(&volume).expect_err("it is no integer");
        assert!(what.starts_with("invalid type: floating point"), "{what}");
    }

    #[test]
    fn what_is_missing_for_the_api_server_is_taken_out() {
        let mut manifest = json!({
            "command": [], "args": null, "env": [{"name": "a", "value": null}], "tty": false,
            "resources": {"limits": {}}, "emptyDir": {},
        });
        tidy(&mut manifest);
        assert_eq!(manifest, json!({"env": [{"name": "a"}], "tty": false, "resources": {}, "emptyDir": {}}));
    }
}
