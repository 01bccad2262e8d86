//! The JSON Schema of the configuration, against the configurations that there are.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::Command;

use jsonschema::Validator;
use podgate::config;
use serde_json::Value;

fn printed() -> Validator {
    let output = Command::new(env!("CARGO_BIN_EXE_podgate")).args(["config", "schema"]).output().expect("podgate runs");
    assert_eq!(output.status.code(), Some(0));
    let schema: Value = serde_json::from_slice(&output.stdout).expect("the schema is JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

/// YAML as editors read it, in which off is text.
fn read(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).expect("a configuration is YAML")
}

#[test]
fn every_configuration_is_right_under_the_schema() {
    let schema = printed();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configurations");
    let examples = std::fs::read_dir(examples).expect("the examples are there");
    let mut texts: Vec<(String, String)> = examples
        .map(|entry| entry.expect("an entry can be read").path())
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("an example can be read")))
        .collect();
    assert!(texts.len() > 3, "the examples are there");
    texts.push(("default.yaml".to_owned(), config::DEFAULT.to_owned()));
    texts.push((
        "keys without a value".to_owned(),
        "mutations:\nvalidations:\n  cpu:\n  hostPath:\n  imageTag: { allowedRegistries: }\nexclude:\nworkloads:\n\
         namespaceQuota:\n"
            .to_owned(),
    ));
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")).expect("the cases are there")
    {
        let path = entry.expect("an entry can be read").path();
        let case: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("a case can be read")).unwrap_or_default();
        if case["config"].is_object() {
            texts.push((path.display().to_string(), case["config"].to_string()));
        }
    }
    assert!(texts.len() > 50, "the cases have configurations");
    for (name, text) in texts {
        let faults: Vec<String> = schema.iter_errors(&read(&text)).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}");
        assert!(config::parse(&text).is_ok(), "{name}");
    }
}

#[test]
fn what_the_schema_refuses_podgate_refuses() {
    let schema = printed();
    for text in [
        "validation: {}",
        "validations: { privilegd: { action: deny } }",
        "validations: { privileged: { action: deney } }",
        "validations: { privileged: { acton: deny } }",
        "validations: { containerCount: { max: many } }",
        "validations: { containerCount: { max: -1 } }",
        "validations: { hostPath: { allow: [data] } }",
        "validations: { cpu: { action: deny, max: 0 } }",
        "validations: { cpu: { action: deny, max: [] } }",
        "validations: { privileged: { message: \"\" } }",
        "validations: { hostPath: { exclude: { containers: [a] } } }",
        "mutations: { securityContext: { runAsNonRoot: 1 } }",
        "mutations: []",
        "mutations: { sidecars: [{ container: { name: a } }] }",
        "mutations: { sidecars: [{ container: { name: a, image: \"a:1\" }, os: mac }] }",
        "exclude: { namespaces: kube-system }",
        "exclude: { users: [{ name: a, until: tomorrow }] }",
        "exclude: { users: [{ reason: none }] }",
        "workloads: maybe",
        "mutations: { images: { mirror: {} } }",
        "mutations: { images: { pins: { nginx: 1.27 } } }",
        "mutations: { resources: { requests: { gpu: 1 } } }",
        "mutations: { resources: { requests: { cpu: 0 } } }",
        "namespaceQuota: { pods: 0, namespaces: [a] }",
        "namespaceQuota: { pods: 5, namespaces: [] }",
        "namespaceQuota: { namespaces: [a] }",
    ] {
        assert!(!schema.is_valid(&read(text)), "the schema takes {text}");
        assert!(config::parse(text).is_err(), "podgate takes {text}");
    }
}

/// What one of both takes, the other takes too.
#[test]
fn the_schema_and_podgate_agree() {
    let schema = printed();
    for (is_right, text) in [
        (true, "validations: { imageTag: { forbidden: ~, allowedRegistries: ~, requireDigest: ~ } }"),
        (true, "validations: { imageTag: { forbidden: [], allowedRegistries: [localhost, \"r:5000/a\", docker.io] } }"),
        (false, "validations: { imageTag: { forbidden: [1.10] } }"),
        (false, "validations: { imageTag: { forbidden: [~] } }"),
        (false, "validations: { imageTag: { forbidden: [\"*\"] } }"),
        (false, "validations: { imageTag: { forbidden: [\"\"] } }"),
        (false, "validations: { imageTag: { allowedRegistries: [nginx] } }"),
        (false, "validations: { imageTag: { allowedRegistries: [\"A B\"] } }"),
        (false, "validations: { imageTag: { allowedRegistries: [~] } }"),
        (true, "validations: { hostPath: { allow: ~ } }"),
        (false, "validations: { hostPath: { allow: [~] } }"),
        (false, "validations: { hostPath: { allow: [5] } }"),
        (true, "validations: { privileged: { message: ~ } }"),
        (false, "validations: { privileged: { message: 5 } }"),
        (false, "validations: { privileged: { message: true } }"),
        (false, "validations: { privileged: { action: ~ } }"),
        (true, "validations: { containerCount: { max: ~ } }"),
        (true, "validations: { containerCount: { max: 5.0 } }"),
        (true, "validations: { containerCount: { max: 4294967295 } }"),
        (false, "validations: { containerCount: { max: 4294967296 } }"),
        (false, "validations: { containerCount: { max: \"5\" } }"),
        (false, "validations: { containerCount: { max: 5.5 } }"),
        (true, "validations: { cpu: { action: off } }"),
        (true, "validations: { cpu: { max: ~ } }"),
        (true, "validations: { cpu: { max: 2.5 }, memory: { max: 1e9, action: deny } }"),
        (false, "validations: { cpu: { action: deny } }"),
        (false, "validations: { cpu: { action: warn, max: ~ } }"),
        (false, "validations: { cpu: { max: two } }"),
        (true, "mutations: { resources: { limits: ~, requests: ~ } }"),
        (true, "mutations: { resources: { limits: { cpu: ~, memory: \"1.5Gi\" } } }"),
        (false, "mutations: { resources: { limits: { cpu: 1x } } }"),
        (false, "mutations: { resources: { limits: { cpu: true } } }"),
        (true, "mutations: { images: { mirrors: ~, pins: ~ } }"),
        (false, "mutations: { images: { mirrors: { docker.io: ~ } } }"),
        (false, "mutations: { images: { mirrors: { docker.io: 5 } } }"),
        (false, "mutations: { images: { mirrors: { nginx: r.io } } }"),
        (false, "mutations: { images: { pins: { nginx: ~ } } }"),
        (false, "mutations: { images: { pins: { nginx: \"a b\" } } }"),
        (true, "namespaceQuota: { pods: 5.0, namespaces: [a] }"),
        (false, "namespaceQuota: { pods: ~, namespaces: [a] }"),
        (false, "namespaceQuota: { pods: \"5\", namespaces: [a] }"),
        (false, "namespaceQuota: { pods: 5, namespaces: ~ }"),
        (false, "namespaceQuota: { pods: 5, namespaces: [~] }"),
        (false, "exclude: { namespaces: [5] }"),
        (true, "exclude: { namespaces: ~ }"),
        (true, "workloads: ~"),
    ] {
        assert_eq!(schema.is_valid(&read(text)), is_right, "the schema: {text}");
        assert_eq!(config::parse(text).is_ok(), is_right, "podgate: {text}: {:?}", config::parse(text));
    }
}

#[test]
fn the_schema_says_what_things_are() {
    let schema = config::schema();
    let policy = &schema["$defs"]["ContainerCount"];
    assert_eq!(policy["additionalProperties"], false);
    assert_eq!(policy["properties"]["max"]["default"], 5);
    assert_eq!(policy["properties"]["action"]["default"], "deny");
    // Nothing is without a description, so that an editor can show one.
    for (name, definition) in schema["$defs"].as_object().expect("there are definitions") {
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}.{key}");
        }
    }
}
