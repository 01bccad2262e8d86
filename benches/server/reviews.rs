//! The bodies that are sent: recorded by a real kube-apiserver, and larger ones made of them.

use serde_json::{Value, json};

/// A configuration under which none of the bodies is denied.
pub(crate) const CONFIGURATION: &str = "validations: {containerCount: {max: 100}}\n";

/// A recorded review.
pub(crate) fn recorded(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/reviews/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A recorded review whose pod has its first container so many times.
pub(crate) fn with_containers(name: &str, count: usize) -> Vec<u8> {
    changed(name, |pod| {
        let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
        let first = containers.remove(0);
        *containers = (0..count).map(|index| renamed(&first, index)).collect();
    })
}

/// A recorded review whose pod has environment variables until the body is so large.
pub(crate) fn with_environment(name: &str, bytes: usize) -> Vec<u8> {
    changed(name, |pod| {
        let variable = |index: usize| json!({"name": format!("VARIABLE_{index:06}"), "value": "v".repeat(64)});
        let size = variable(0).to_string().len() + 1;
        pod["spec"]["containers"][0]["env"] = (0..bytes / size).map(variable).collect();
    })
}

fn renamed(container: &Value, index: usize) -> Value {
    let mut container = container.clone();
    container["name"] = format!("container-{index}").into();
    container
}

fn changed(name: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut review: Value = serde_json::from_slice(&recorded(name)).expect("a recorded review is JSON");
    change(&mut review["request"]["object"]);
    // The recorded order of the members is kept by serde_json's feature or is the alphabet's; kube-apiserver's
    // is what podgate reads fastest, so it is restored.
    in_order_of_kube_apiserver(&review)
}

/// kube-apiserver writes `kind` and `operation` before the objects; an alphabetical map does not.
fn in_order_of_kube_apiserver(review: &Value) -> Vec<u8> {
    let request = review["request"].as_object().expect("a request");
    let is_object = |name: &str| matches!(name, "object" | "oldObject");
    let (objects, others): (Vec<_>, Vec<_>) = request.iter().partition(|(name, _)| is_object(name));
    let members: Vec<String> = others
        .into_iter()
        .chain(objects)
        .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
        .collect();
    let [kind, api_version] = ["kind", "apiVersion"].map(|name| &review[name]);
    format!(r#"{{"kind":{kind},"apiVersion":{api_version},"request":{{{}}}}}"#, members.join(",")).into_bytes()
}
