//! The reviews that the benchmarks send: recorded by a real kube-apiserver, and larger ones made of them.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]
#![allow(dead_code, reason = "each benchmark needs a part of it")]

use podgate::admission::{self, Webhook};
use podgate::config;
use podgate::policy::Policies;
use serde_json::{Value, json};
use time::Date;

/// A configuration under which none of the pods is denied.
pub(crate) const CONFIGURATION: &str = "validations: {containerCount: {max: 1000}}\n";

/// The pod that `kubectl create deployment` makes, as `/mutate` gets it.
const CREATE: &str = "mutate/pods-create-dep-65ff7697cb";
/// An update of a pod, with both objects.
const UPDATE: &str = "validate/pods-update-plain";

/// What is sent, and where.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) webhook: Webhook,
    pub(crate) path: &'static str,
    pub(crate) body: Vec<u8>,
}

/// The reviews that every benchmark has: what `/mutate` patches, what `/validate` then finds right.
pub(crate) fn cases() -> Vec<Case> {
    let updated = update(&small());
    let mut cases: Vec<Case> =
        [("small pod", small()), ("30 containers", with_containers(30)), ("1 MiB", with_environment(1 << 20))]
            .into_iter()
            .flat_map(|(name, review)| {
                let validated = body(&hardened(&review));
                [case(name, Webhook::Mutate, body(&review)), case(name, Webhook::Validate, validated)]
            })
            .collect();
    let of_update = |webhook| case("UPDATE with oldObject", webhook, body(&updated));
    cases.splice(2..2, [Webhook::Mutate, Webhook::Validate].map(of_update));
    cases
}

fn case(name: &'static str, webhook: Webhook, body: Vec<u8>) -> Case {
    let path = match webhook {
        Webhook::Mutate => "/mutate",
        Webhook::Validate => "/validate",
    };
    Case { name, webhook, path, body }
}

pub(crate) fn policies() -> Policies {
    config::parse(CONFIGURATION).expect("a configuration")
}

/// The day it is, in UTC.
pub(crate) fn today() -> Date {
    time::OffsetDateTime::now_utc().date()
}

/// The review of a new pod of one container.
pub(crate) fn small() -> Value {
    recorded(CREATE)
}

/// The same pod with so many containers.
pub(crate) fn with_containers(count: usize) -> Value {
    let mut review = small();
    let containers = &mut review["request"]["object"]["spec"]["containers"];
    let first = containers[0].take();
    let named = |index| {
        let mut container = first.clone();
        container["name"] = format!("container-{index}").into();
        container
    };
    *containers = (0..count).map(named).collect();
    review
}

/// The same pod with so many bytes of environment variables.
pub(crate) fn with_environment(bytes: usize) -> Value {
    let mut review = small();
    let variable = |index: usize| json!({"name": format!("VARIABLE_{index:06}"), "value": "v".repeat(64)});
    let size = variable(0).to_string().len() + 1;
    review["request"]["object"]["spec"]["containers"][0]["env"] = (0..bytes / size).map(variable).collect();
    review
}

/// The review of an update that gives a hardened pod a label.
pub(crate) fn update(created: &Value) -> Value {
    let mut review = recorded(UPDATE);
    let pod = hardened(created)["request"]["object"].take();
    review["request"]["oldObject"] = pod.clone();
    review["request"]["object"] = pod;
    review["request"]["object"]["metadata"]["labels"]["tier"] = "web".into();
    review
}

/// The same review after podgate's patch.
pub(crate) fn hardened(review: &Value) -> Value {
    let examined = admission::examine(&policies(), Webhook::Mutate, &body(review), today()).expect("a review");
    let mut review = review.clone();
    let pod = review["request"]["object"].take();
    let patch = examined.patch.expect("there is something to make safe");
    review["request"]["object"] = patch.applied_to(pod).expect("the patch fits");
    review
}

fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/reviews/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("a recorded review is JSON")
}

/// The bytes of a review, in kube-apiserver's order: the objects after what they are. A map of `serde_json` has
/// the order of the alphabet.
pub(crate) fn body(review: &Value) -> Vec<u8> {
    let request = review["request"].as_object().expect("a request");
    let is_object = |name: &str| matches!(name, "object" | "oldObject");
    let (objects, others): (Vec<_>, Vec<_>) = request.iter().partition(|(name, _)| is_object(name));
    let member = |(name, value): (&String, &Value)| format!("{}:{value}", Value::from(name.as_str()));
    let members: Vec<String> = others.into_iter().chain(objects).map(member).collect();
    let [kind, api_version] = ["kind", "apiVersion"].map(|name| &review[name]);
    format!(r#"{{"kind":{kind},"apiVersion":{api_version},"request":{{{}}}}}"#, members.join(",")).into_bytes()
}
