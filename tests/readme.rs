//! The README's table of policies, held to the configuration.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use podgate::config;
use podgate::policy::Policies;
use serde_json::Value;

/// A row of the table, but for what the policy does.
struct Row {
    names: Vec<String>,
    default: String,
    change: String,
}

fn rows() -> Vec<Row> {
    let readme = include_str!("../README.md");
    let table = readme.lines().skip_while(|line| !line.starts_with("| policy | default |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [names, default, _, change] = cells[..] else { panic!("{line} has no four cells") };
        let plain = |text: &str| text.replace('`', "");
        let names = names.split(", ").map(plain).collect();
        Row { names, default: plain(default), change: plain(change) }
    });
    rows.collect()
}

/// The key of each policy and its default, as the table has it.
fn defaults() -> BTreeMap<String, String> {
    let schema = config::schema();
    let keys = |section: &str| -> Vec<String> {
        schema["$defs"][section]["properties"].as_object().expect("a section has keys").keys().cloned().collect()
    };
    let strict = serde_saphyr::options! { strict_booleans: true };
    let file: Value = serde_saphyr::from_str_with_options(config::DEFAULT, strict).expect("the default is YAML");
    let mut defaults = BTreeMap::new();
    for key in keys("Validations") {
        let settings = &file["validations"][&key];
        let action = settings["action"].as_str().expect("a validation has an action");
        let max = settings["max"].as_u64().map(|max| format!(", {max}")).unwrap_or_default();
        defaults.insert(key, format!("{action}{max}"));
    }
    for key in keys("Mutations") {
        let settings = &file["mutations"][&key];
        let default = match &*key {
            "sidecars" if settings.as_array().is_some_and(Vec::is_empty) => "none".to_owned(),
            "images"
                if settings.as_object().is_some_and(|each| {
                    each.values().all(|map| map.as_object().is_some_and(serde_json::Map::is_empty))
                }) =>
            {
                "off".to_owned()
            }
            "securityContext" if settings["allowPrivilegeEscalation"] == false && settings["runAsNonRoot"] == true => {
                "on".to_owned()
            }
            "resources" => {
                let limit = |name: &str| settings["limits"][name].as_str().expect("a limit").to_owned();
                format!("cpu {}, memory {}", limit("cpu"), limit("memory"))
            }
            _ => format!("{settings}"),
        };
        defaults.insert(key, default);
    }
    defaults.insert("workloads".to_owned(), file["workloads"].as_str().expect("an action").to_owned());
    let quota = if file["namespaceQuota"].is_null() { "off".to_owned() } else { file["namespaceQuota"].to_string() };
    defaults.insert("namespaceQuota".to_owned(), quota);
    defaults
}

#[test]
fn every_policy_has_a_row_with_its_default() {
    let told: BTreeMap<String, String> =
        rows().into_iter().flat_map(|row| row.names.into_iter().map(move |name| (name, row.default.clone()))).collect();
    assert_eq!(told, defaults());
}

#[test]
fn every_row_says_how_to_change_it() {
    for Row { names, change, .. } in rows() {
        let policies = config::parse(&change).unwrap_or_else(|fault| panic!("{change}: {fault}"));
        assert_ne!(policies, Policies::default(), "{change} changes nothing");
        assert!(names.iter().any(|name| change.contains(&format!("{name}: "))), "{change} is not of {names:?}");
    }
}
