//! What is no AdmissionReview, or none that can be judged: the status and the words of each
//! answer, through a real TLS socket.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::{Value, json};
use support::{Podgate, Reply, Request};

/// A review of a pod that breaks no policy.
fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "5ad9", "operation": "CREATE", "namespace": "team-a", "name": "web",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
            "object": {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

/// The review with the value at `pointer` replaced, or removed where there is none.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut review = review();
    let (parent, member) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let parent = review.pointer_mut(parent).expect("the parent is there");
    match value {
        Some(value) => parent[member] = value,
        None => drop(parent.as_object_mut().expect("the parent is an object").remove(member)),
    }
    review
}

/// The review as text in kube-apiserver's order: what an object is stands before the object.
fn ordered(review: &Value) -> String {
    let request = &review["request"];
    let Some(members) = request.as_object() else { return review.to_string() };
    let first = ["uid", "kind", "resource", "subResource", "name", "namespace", "operation", "userInfo"];
    let rest = members.keys().map(String::as_str).filter(|key| !first.contains(key));
    let members: Vec<String> = first
        .into_iter()
        .filter(|key| members.contains_key(*key))
        .chain(rest)
        .map(|key| format!("{}:{}", json!(key), request[key]))
        .collect();
    let mut whole = review.clone();
    whole["request"] = json!("REQUEST");
    whole.to_string().replace("\"REQUEST\"", &format!("{{{}}}", members.join(",")))
}

fn message(reply: &Reply) -> (Value, String) {
    let body: Value = serde_json::from_slice(&reply.body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&reply.body)));
    let status = if body["kind"] == "Status" { &body } else { &body["response"]["status"] };
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    (body, message)
}

/// Sends a body to both webhooks: HTTP 400, a `Status`, and these words in it.
fn refused(server: &Podgate, body: impl Into<Vec<u8>>, words: &str) {
    let body = body.into();
    for webhook in ["/mutate", "/validate"] {
        let reply = server.send(&Request::post(webhook, body.clone()));
        let (answer, message) = message(&reply);
        assert_eq!(reply.status, 400, "{webhook}: {answer}");
        assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(400)), "{answer}");
        assert!(message.contains(words), "{webhook}: {message:?} does not say {words:?}");
    }
}

/// Sends a review to both webhooks, in the usual order of members and sorted: HTTP 200, denied
/// with code 400, and these words.
fn not_judged(server: &Podgate, review: &Value, words: &str) {
    for webhook in ["/mutate", "/validate"] {
        for body in [ordered(review), review.to_string()] {
            let reply = server.send(&Request::post(webhook, body));
            let (answer, message) = message(&reply);
            assert_eq!(reply.status, 200, "{webhook}: {answer}");
            let response = &answer["response"];
            assert_eq!(response["uid"], "5ad9");
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{answer}");
            assert_eq!(response["status"]["reason"], "BadRequest");
            assert!(message.contains(words), "{webhook}: {message:?} does not say {words:?}");
        }
    }
}

#[test]
fn what_is_no_json_is_refused() {
    let server = Podgate::start("");
    let good = ordered(&review());
    let annotated =
        |value: &str| ordered(&review()).replacen(r#"{"name":"web"}"#, &format!(r#"{{"name":"web","x":{value}}}"#), 1);
    refused(&server, "", "the body is empty: send an AdmissionReview");
    refused(&server, "  \n", "EOF while parsing a value");
    refused(&server, "null", "the body: invalid type: null, expected an AdmissionReview");
    refused(&server, "[]", "the body: invalid type: sequence, expected an AdmissionReview");
    refused(&server, "17", "the body: invalid type: number, expected an AdmissionReview");
    refused(&server, &good[..good.len() - 1], "EOF while parsing an object");
    refused(&server, &good[..good.len() / 2], "EOF while parsing");
    refused(&server, format!("{good} x"), "trailing characters");
    refused(&server, format!("{good}{good}"), "trailing characters");
    refused(&server, format!("\u{feff}{good}"), "the body begins with a byte order mark");
    refused(&server, good.replace("\"web\"", "'web'"), "expected value");
    refused(&server, annotated("01"), "invalid number");
    refused(&server, annotated("[1,]"), "trailing comma");
    refused(&server, annotated("\"\u{1}\""), "control character");
    refused(&server, annotated("NaN"), "expected value");
    let mut broken = good.clone().into_bytes();
    let at = good.find("web").expect("the review has a name");
    broken[at] = 0xff;
    refused(&server, broken, &format!("the body is not UTF-8 from byte {at} on"));
}

#[test]
fn nesting_has_a_limit_wherever_it_is() {
    let server = Podgate::start("");
    let arrays = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    let too_deep = "recursion limit exceeded";
    for deep in [arrays(100_000), objects(20_000), arrays(200), objects(129)] {
        refused(&server, deep.clone(), too_deep);
        for key in ["object", "oldObject", "options", "unknown"] {
            let text = ordered(&with(&format!("/request/{key}"), Some(json!("DEEP")))).replace("\"DEEP\"", &deep);
            refused(&server, text, too_deep);
        }
        for place in [r#""metadata":{"name":"web"}"#, r#""image":"app:1""#, r#""username":"ann""#] {
            let text = ordered(&review()).replace(place, &format!("{place},\"skipped\":{deep}"));
            refused(&server, text, too_deep);
        }
    }
    // In a review that is none of podgate's business as well.
    let mut other = with("/request/kind/kind", Some(json!("ConfigMap")));
    other["request"]["object"] = json!("DEEP");
    refused(&server, ordered(&other).replace("\"DEEP\"", &arrays(20_000)), too_deep);
    // What is merely nested is fine.
    let text = ordered(&review()).replace("\"name\":\"web\"", &format!("\"name\":\"web\",\"x\":{}", arrays(100)));
    assert_eq!(server.send(&Request::post("/mutate", text)).status, 200);
}

#[test]
fn a_repeated_key_is_refused_in_every_object_that_is_read() {
    let server = Podgate::start("");
    let mut review = review();
    review["request"]["object"]["metadata"]["annotations"] = json!({"a": "b"});
    let spec = &mut review["request"]["object"]["spec"];
    spec["securityContext"] = json!({"runAsUser": 1});
    spec["volumes"] = json!([{"name": "v", "hostPath": {"path": "/data/shared"}}]);
    spec["containers"][0]["securityContext"] = json!({"capabilities": {"add": []}, "windowsOptions": {}});
    spec["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}, "requests": {"memory": "1"}});
    let text = ordered(&review);
    assert_eq!(server.send(&Request::post("/validate", text.clone())).status, 200);
    for (first, again) in [
        (r#""apiVersion":"admission.k8s.io/v1""#, "apiVersion"),
        (r#""uid":"5ad9""#, "uid"),
        (r#""version":"v1""#, "version"),
        (r#""username":"ann""#, "username"),
        (r#""spec":{"#, "spec"),
        (r#""containers":[{"#, "containers"),
        (r#""image":"app:1""#, "image"),
        (r#""capabilities":{"add":[]}"#, "capabilities"),
        (r#""add":[]"#, "add"),
        (r#""windowsOptions":{"#, "windowsOptions"),
        (r#""cpu":"1""#, "cpu"),
        (r#""memory":"1""#, "memory"),
        (r#""runAsUser":1"#, "runAsUser"),
        (r#""hostPath":{"#, "hostPath"),
        (r#""path":"/data/shared""#, "path"),
        (r#""annotations":{"a":"b"}"#, "annotations"),
        (r#""a":"b""#, "a"),
    ] {
        assert!(text.contains(first), "{first}");
        let twice = text.replacen(first, &format!("\"{again}\":null,{first}"), 1);
        refused(&server, twice, &format!("repeated key \"{again}\""));
    }
    // A key that podgate does not know, in an object that it reads.
    let twice = text.replacen("\"image\":", "\"tty\":true,\"tty\":false,\"image\":", 1);
    refused(&server, twice, "repeated key \"tty\"");
}

#[test]
fn an_envelope_that_is_wrong_is_refused_and_the_member_named() {
    let server = Podgate::start("");
    for (pointer, value, words) in [
        (
            "/apiVersion",
            Some(json!("admission.k8s.io/v1beta1")),
            "the body is \"AdmissionReview\" of \"admission.k8s.io/v1beta1\"",
        ),
        ("/apiVersion", None, "admissionReviewVersions: [v1]"),
        ("/apiVersion", Some(json!(1)), "apiVersion: invalid type: integer `1`, expected a string"),
        ("/kind", Some(json!("Pod")), "the body is \"Pod\" of \"admission.k8s.io/v1\""),
        ("/kind", None, "podgate answers AdmissionReview"),
        ("/request", None, "request is missing or empty"),
        ("/request", Some(Value::Null), "request is missing or empty"),
        ("/request", Some(json!([])), "request: invalid type: sequence, expected an AdmissionRequest"),
        ("/request", Some(json!("x")), "request: invalid type: string, expected an AdmissionRequest"),
        ("/request/uid", None, "request.uid is missing or empty"),
        ("/request/uid", Some(json!("")), "request.uid is missing or empty"),
        ("/request/uid", Some(Value::Null), "request.uid is missing or empty"),
        ("/request/uid", Some(json!(5)), "request.uid: invalid type: integer `5`, expected a string"),
        ("/request/kind", None, "request.kind is missing or empty"),
        ("/request/kind", Some(json!({})), "request.kind is missing or empty"),
        ("/request/kind", Some(json!("Pod")), "request.kind: invalid type: string, expected a GroupVersionKind"),
        ("/request/kind", Some(json!(["", "v1", "Pod"])), "request.kind: invalid type: sequence"),
        ("/request/kind/kind", Some(json!("")), "request.kind is missing or empty"),
        ("/request/kind/kind", Some(json!(1)), "request.kind.kind: invalid type: integer `1`"),
        ("/request/resource", None, "request.resource is missing or empty"),
        ("/request/resource", Some(json!([])), "request.resource: invalid type: sequence"),
        ("/request/resource/resource", Some(Value::Null), "request.resource is missing or empty"),
        ("/request/operation", None, "request.operation is missing or empty"),
        ("/request/operation", Some(json!("")), "request.operation is missing or empty"),
        ("/request/operation", Some(json!("create")), "request.operation is \"create\": Kubernetes has CREATE"),
        ("/request/operation", Some(json!(["CREATE"])), "request.operation: invalid type: sequence"),
        ("/request/namespace", Some(json!({})), "request.namespace: invalid type: map, expected a string"),
        ("/request/name", Some(json!(7)), "request.name: invalid type: integer `7`, expected a string"),
        ("/request/subResource", Some(json!(true)), "request.subResource: invalid type: boolean `true`"),
        ("/request/userInfo", Some(json!([])), "request.userInfo: invalid type: sequence, expected a UserInfo"),
        ("/request/userInfo/username", Some(json!(1)), "request.userInfo.username: invalid type: integer `1`"),
        (
            "/request/userInfo/groups",
            Some(json!("x")),
            "request.userInfo.groups: invalid type: string, expected a list",
        ),
        ("/request/userInfo/groups", Some(json!([1])), "request.userInfo.groups[0]: invalid type: integer `1`"),
    ] {
        let wrong = with(pointer, value);
        refused(&server, ordered(&wrong), words);
        refused(&server, wrong.to_string(), words);
    }
}

#[test]
fn an_object_that_is_missing_is_not_judged() {
    let server = Podgate::start("");
    for value in [None, Some(Value::Null)] {
        not_judged(&server, &with("/request/object", value.clone()), "request.object is missing");
        let mut update = with("/request/oldObject", value.clone());
        update["request"]["operation"] = json!("UPDATE");
        not_judged(&server, &update, "request.oldObject is missing");
        not_judged(&server, &with("/request/object/spec", value), "request.object.spec is missing");
    }
}

#[test]
fn a_wrong_type_in_a_field_that_is_read_is_named() {
    let server = Podgate::start("");
    let mut review = review();
    let spec = &mut review["request"]["object"]["spec"];
    spec["initContainers"] = json!([{"name": "i", "image": "i:1"}]);
    spec["volumes"] = json!([{"name": "v", "hostPath": {"path": "/data/shared"}, "image": {"reference": "r:1"}}]);
    spec["securityContext"] = json!({"windowsOptions": {}});
    spec["resources"] = json!({"limits": {}});
    spec["os"] = json!({});
    spec["containers"][0]["securityContext"] = json!({"windowsOptions": {}, "capabilities": {}});
    spec["containers"][0]["resources"] = json!({"limits": {}, "requests": {}});
    let container = "spec/containers/0";
    for (path, value) in [
        ("metadata".to_owned(), json!([])),
        ("metadata/name".to_owned(), json!(1)),
        ("metadata/generateName".to_owned(), json!({})),
        ("metadata/annotations".to_owned(), json!([])),
        ("spec".to_owned(), json!([])),
        ("spec/containers".to_owned(), json!({"0": {}})),
        ("spec/containers/0".to_owned(), Value::Null),
        ("spec/initContainers".to_owned(), json!("x")),
        ("spec/initContainers/0".to_owned(), json!([])),
        ("spec/ephemeralContainers".to_owned(), json!(1)),
        ("spec/volumes".to_owned(), json!({})),
        ("spec/volumes/0".to_owned(), json!("x")),
        ("spec/volumes/0/name".to_owned(), json!(1)),
        ("spec/volumes/0/hostPath".to_owned(), json!("/data/shared")),
        ("spec/volumes/0/hostPath/path".to_owned(), json!(["/data/shared"])),
        ("spec/volumes/0/image".to_owned(), json!("r:1")),
        ("spec/volumes/0/image/reference".to_owned(), json!(1)),
        ("spec/hostNetwork".to_owned(), json!("true")),
        ("spec/os".to_owned(), json!("windows")),
        ("spec/os/name".to_owned(), json!(1)),
        ("spec/resources".to_owned(), json!([])),
        ("spec/resources/limits".to_owned(), json!([])),
        ("spec/resources/limits/cpu".to_owned(), json!({})),
        ("spec/securityContext".to_owned(), json!([])),
        ("spec/securityContext/runAsUser".to_owned(), json!("0")),
        ("spec/securityContext/windowsOptions/hostProcess".to_owned(), json!(1)),
        (format!("{container}/name"), json!(1)),
        (format!("{container}/image"), json!(["app:1"])),
        (format!("{container}/restartPolicy"), json!(true)),
        (format!("{container}/securityContext"), json!([])),
        (format!("{container}/securityContext/privileged"), json!("true")),
        (format!("{container}/securityContext/allowPrivilegeEscalation"), json!(0)),
        (format!("{container}/securityContext/runAsNonRoot"), json!("yes")),
        (format!("{container}/securityContext/runAsUser"), json!(1.5)),
        (format!("{container}/securityContext/capabilities"), json!([])),
        (format!("{container}/securityContext/capabilities/add"), json!("ALL")),
        (format!("{container}/securityContext/windowsOptions"), json!(false)),
        (format!("{container}/securityContext/windowsOptions/runAsUserName"), json!(1)),
        (format!("{container}/resources"), json!("x")),
        (format!("{container}/resources/limits"), json!("x")),
        (format!("{container}/resources/limits/memory"), json!("1GB")),
        (format!("{container}/resources/requests/cpu"), json!(true)),
    ] {
        let mut wrong = review.clone();
        let (parent, member) = path.rsplit_once('/').map_or(("", path.as_str()), |pair| pair);
        let object = &mut wrong["request"]["object"];
        let parent = if parent.is_empty() { object } else { object.pointer_mut(&format!("/{parent}")).expect(&path) };
        match member.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[member] = value,
        }
        // spec/containers/0/name is spoken spec.containers[0].name.
        let spoken = path.replace("/0", "[0]").replace('/', ".");
        not_judged(&server, &wrong, &format!("request.object.{spoken}: "));
    }
}

/// A list of `{}` in a few megabytes would take gigabytes.
#[test]
fn what_cannot_be_judged_is_counted_as_what_it_is() {
    for (request, resource) in [
        (json!({"operation": "CREATE"}), "pods"),
        (json!({"operation": "UPDATE", "subResource": "resize"}), "pods/resize"),
        (json!({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}), "deployments"),
    ] {
        let mut review = with("/request/object", Some(json!("text")));
        for (key, value) in request.as_object().into_iter().flatten() {
            review["request"][key] = value.clone();
        }
        let policies = podgate::policy::Policies::default();
        let webhook = podgate::admission::Webhook::Validate;
        let answer = podgate::admission::answer(&policies, webhook, review.to_string().as_bytes(), time::Date::MIN);
        assert_eq!((answer.verdict, answer.resource), (podgate::admission::Verdict::Invalid, resource));
    }
}

#[test]
fn a_list_that_no_pod_can_have_is_not_read() {
    let server = Podgate::start("");
    let spec = "/request/object/spec";
    for (list, most) in
        [("containers", 1_000), ("initContainers", 1_000), ("ephemeralContainers", 1_000), ("volumes", 10_000)]
    {
        let many = with(&format!("{spec}/{list}"), Some(json!(vec![json!({}); most + 1])));
        not_judged(&server, &many, &format!("request.object.spec.{list}: a list of more than {most} elements"));
    }
    let capabilities = json!({"capabilities": {"add": vec!["x"; 10_001]}});
    let many = with(&format!("{spec}/containers/0/securityContext"), Some(capabilities));
    not_judged(&server, &many, "spec.containers[0].securityContext.capabilities.add: a list of more than 10000");
    let groups = with("/request/userInfo", Some(json!({"groups": vec!["x"; 10_001]})));
    refused(&server, ordered(&groups), "request.userInfo.groups: a list of more than 10000 elements");
    let annotations: serde_json::Map<_, _> = (0..=90_000).map(|index| (index.to_string(), json!(""))).collect();
    let many = with("/request/object/metadata/annotations", Some(json!(annotations)));
    refused(&server, ordered(&many), "an object of more than 90000 members");
}

#[test]
fn what_is_not_judged_may_be_anything() {
    let server = Podgate::start("");
    for (pointer, value) in [
        ("/request/kind/kind", json!("ConfigMap")),
        ("/request/kind/group", json!("example.com")),
        ("/request/subResource", json!("status")),
        ("/request/operation", json!("DELETE")),
        ("/request/operation", json!("CONNECT")),
    ] {
        for object in [Value::Null, json!([]), json!("x"), json!({"spec": {"containers": {}}})] {
            let mut review = with(pointer, Some(value.clone()));
            review["request"]["object"] = object;
            for body in [ordered(&review), review.to_string()] {
                let reply = server.send(&Request::post("/validate", body));
                let (answer, _) = message(&reply);
                assert_eq!((reply.status, &answer["response"]["allowed"]), (200, &json!(true)), "{answer}");
            }
        }
    }
}

#[test]
fn what_is_not_asked_as_it_should_be_is_refused_before_it_is_read() {
    let server = Podgate::start("");
    let good = ordered(&review());
    let ask = |change: &dyn Fn(&mut Request)| {
        let mut request = Request::post("/mutate", good.clone());
        change(&mut request);
        let reply = server.send(&request);
        let (_, message) = message(&reply);
        (reply.status, message, reply.head.to_ascii_lowercase())
    };
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (status, message, _) = ask(&|request| request.headers = vec![header("Content-Type", "text/yaml")]);
    assert_eq!(
        (status, message.as_str()),
        (415, "the Content-Type is \"text/yaml\": send an AdmissionReview as application/json")
    );
    let (status, message, _) = ask(&|request| request.headers.clear());
    assert_eq!(
        (status, message.as_str()),
        (415, "the request has no Content-Type: send an AdmissionReview as application/json")
    );
    let (status, message, _) = ask(&|request| request.headers.push(header("Content-Encoding", "gzip")));
    assert_eq!(
        (status, message.as_str()),
        (415, "the Content-Encoding is \"gzip\": send the body uncompressed, without Content-Encoding")
    );
    let (status, message, head) = ask(&|request| request.method = "GET".to_owned());
    assert_eq!((status, message.as_str()), (405, "GET is not allowed on /mutate: send POST"));
    assert!(head.contains("allow: post"), "{head}");
    let (status, message, _) = ask(&|request| request.path = "/mutate/extra".to_owned());
    assert_eq!(status, 404);
    assert!(
        message.starts_with("there is nothing at \"/mutate/extra\": post AdmissionReviews to /mutate"),
        "{message}"
    );
    let (status, message, _) = ask(&|request| request.body = vec![b' '; 64 << 20]);
    assert_eq!(
        (status, message.as_str()),
        (413, "the body is larger than 8388608 bytes: send a smaller one, or raise the server's --max-body-bytes")
    );
    let (status, ..) = ask(&|request| request.path = "/mutate?timeout=10s".to_owned());
    assert_eq!(status, 200);
}
