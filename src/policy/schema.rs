//! The JSON Schema of the settings that read themselves: what can be said of them in a schema.
//!
//! It says less than reading does, never more: what it refuses, podgate refuses too. Only numbers and truth
//! values in quotes, which the reader of YAML takes for what they are, are wrong by it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::exclusions::NamedWithTerm;
use super::mirrors::Mirrors;
use super::pins::Pins;
use super::{AllowedPath, Exclusions, ImageExclusions, Message, NamespacePatterns, PodCount, PositiveQuantity};
use crate::pod::RepositoryPrefix;

/// What a registry, with the beginning of a path or without, looks like.
const REGISTRY: &str = "^(localhost|[^\\s/@]*[.:A-Z][^\\s/@]*)(/[^\\s@]+)?$";

/// What a tag looks like (the distribution specification's `tag`).
const TAG: &str = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";

/// The tags that do not count as a version.
pub(super) struct Tags;

impl JsonSchema for Tags {
    fn schema_name() -> Cow<'static, str> {
        "Tags".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["array", "null"], "items": {"type": "string", "pattern": format!("^{TAG}$")}})
    }
}

/// A day as RFC 3339 writes it (section 5.6, `full-date`).
pub(super) struct Day;

impl JsonSchema for Day {
    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
    }
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "description": "A text in which {container}, {path} and {found} are filled in; {{ and }} are braces.",
        })
    }
}

impl JsonSchema for AllowedPath {
    fn schema_name() -> Cow<'static, str> {
        "AllowedPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^/",
            "description": "An absolute path, exactly; with /** behind it all below it too.",
        })
    }
}

impl JsonSchema for PositiveQuantity {
    fn schema_name() -> Cow<'static, str> {
        "PositiveQuantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "exclusiveMinimum": 0,
            "pattern": "^\\s*[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?\\s*$",
            "description": "A quantity of Kubernetes above zero, such as \"2\", 500m or 4Gi.",
        })
    }
}

impl JsonSchema for RepositoryPrefix {
    fn schema_name() -> Cow<'static, str> {
        "RepositoryPrefix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": REGISTRY,
            "description": "A registry, such as registry.example.com, or a part of one, such as docker.io/library.",
        })
    }
}

impl JsonSchema for Mirrors {
    fn schema_name() -> Cow<'static, str> {
        "Mirrors".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["object", "null"],
            "propertyNames": {"pattern": REGISTRY},
            "additionalProperties": {"type": "string", "pattern": REGISTRY},
        })
    }
}

impl JsonSchema for Pins {
    fn schema_name() -> Cow<'static, str> {
        "Pins".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["object", "null"],
            "propertyNames": {"pattern": "^[^\\s@]+$"},
            "additionalProperties": {
                "type": "string",
                "pattern": format!("^({TAG}|sha256:[0-9a-f]{{64}}|sha512:[0-9a-f]{{128}})$"),
            },
        })
    }
}

impl JsonSchema for PodCount {
    fn schema_name() -> Cow<'static, str> {
        "PodCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
    }
}

impl JsonSchema for NamespacePatterns {
    fn schema_name() -> Cow<'static, str> {
        "NamespacePatterns".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1})
    }
}

impl JsonSchema for Exclusions {
    fn schema_name() -> Cow<'static, str> {
        "Exclusions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<NamedWithTerm>();
        json_schema!({
            "type": ["array", "null"],
            "items": {"anyOf": [{"type": "string"}, named]},
            "description": "Names, or globs with *, each for good or with a reason and a last day.",
        })
    }
}

impl JsonSchema for ImageExclusions {
    fn schema_name() -> Cow<'static, str> {
        "ImageExclusions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<NamedWithTerm>();
        json_schema!({
            "type": ["array", "null"],
            "items": {"anyOf": [{"type": "string"}, named]},
            "description": "Images in full, with a tag or without, or globs of them.",
        })
    }
}
