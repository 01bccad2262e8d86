//! What the log says, what it never says, and that nobody can forge a line of it.

use serde_json::{Value, json};

use crate::support::{Binary, Tls, ask, post};

/// Stands where pods keep secrets, as text and as a number.
const SECRET: &str = "c0nf1dential";
const SECRET_NUMBER: u64 = 7_355_608_735_560;

/// Text that a terminal or a reader of lines would take for more than text.
const HOSTILE: &str = "x\n{\"message\":\"forged\"}\r\n2026-01-01T00:00:00Z  INFO forged\u{1b}[2J\u{9b}31m";

/// A review as kube-apiserver writes it, of an object given as text; it writes the object last.
fn review(uid: &str, object: &str) -> String {
    let user = json!(format!("ann{HOSTILE}"));
    let namespace = json!(format!("team-a{HOSTILE}"));
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"{uid}",
        "kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},
        "namespace":{namespace},"operation":"CREATE","userInfo":{{"username":{user}}},"object":{object}}}}}"#
    )
}

/// The same with the object first, which is read in another way.
fn object_first(uid: &str, object: &str) -> String {
    let whole = review(uid, "null").replace(",\"object\":null", "");
    whole.replacen("\"request\":{", &format!("\"request\":{{\"object\":{object},"), 1)
}

/// A pod with secrets where pods have them.
fn pod(image: &str) -> Value {
    json!({
        "metadata": {
            "generateName": format!("web-{HOSTILE}"),
            "annotations": {"token": SECRET, "kubectl.kubernetes.io/last-applied-configuration": format!("{{{SECRET}}}")},
        },
        "spec": {"containers": [{
            "name": "app", "image": image, "args": [SECRET],
            "env": [{"name": "PASSWORD", "value": SECRET}, {"name": "PIN", "value": SECRET_NUMBER.to_string()}],
        }]},
    })
}

/// Pods with a fault at, or right beside, what they keep secret.
fn faulty_pods() -> Vec<String> {
    let good = pod("app:1");
    let with = |pointer: &str, value: Value| {
        let mut pod = good.clone();
        *pod.pointer_mut(pointer).expect("the pod has it") = value;
        pod.to_string()
    };
    let mut pods = Vec::new();
    for pointer in [
        "",
        "/metadata",
        "/metadata/annotations",
        "/metadata/annotations/token",
        "/spec",
        "/spec/containers",
        "/spec/containers/0",
        "/spec/containers/0/args",
        "/spec/containers/0/env",
        "/spec/containers/0/env/0",
        "/spec/containers/0/env/0/value",
    ] {
        for value in [json!(SECRET), json!(SECRET_NUMBER), json!([SECRET]), json!({"a": SECRET, "b": SECRET_NUMBER})] {
            // A number in place of all containers holds nobody's secret.
            if !(value.is_number() && pointer == "/spec/containers") {
                pods.push(with(pointer, value));
            }
        }
    }
    let text = good.to_string();
    let value = format!("\"value\":\"{SECRET}\"");
    for damaged in [
        format!("{value},{value}"),
        format!("\"value\":\"{SECRET}"),
        format!("\"value\":\"{SECRET}\\x\""),
        format!("\"value\":{SECRET}"),
        format!("\"value\":{}", "[".repeat(200)),
    ] {
        pods.push(text.replace(&value, &damaged));
    }
    pods
}

async fn answer(stream: &mut Tls, path: &str, body: &str) -> Value {
    let text = ask(stream, post(path, body)).await.text();
    assert!(!text.contains(SECRET) && !text.contains(&SECRET_NUMBER.to_string()), "{text}");
    serde_json::from_str(&text).expect("an answer is JSON")
}

/// Sends every kind of review; returns the log, and the message of the denial with uid `denied`.
async fn log_of(format: &str) -> (String, String) {
    let server = Binary::serve_and_log("debug", &["--drain-delay", "0s", "--log-format", format]).await;
    let mut stream = server.connect().await;
    let denied = pod(&format!("nginx{HOSTILE}")).to_string();
    let denial = answer(&mut stream, "/validate", &review("denied", &denied)).await;
    answer(&mut stream, "/mutate", &review("patched", &pod("app:1").to_string())).await;
    answer(&mut stream, "/validate", &review("allowed", &pod("app:1").to_string())).await;
    for object in faulty_pods() {
        for body in [review("faulty", &object), object_first("faulty", &object)] {
            for path in ["/mutate", "/validate"] {
                answer(&mut stream, path, &body).await;
            }
        }
    }
    let mut strange: Value = serde_json::from_str(&review("strange", "{}")).expect("it is JSON");
    strange["request"]["operation"] = json!(HOSTILE);
    answer(&mut stream, "/mutate", &strange.to_string()).await;
    ask(&mut stream, post(&format!("/{}", "%0A%1B[2J"), "")).await;
    drop(stream);
    server.signal("TERM").await;
    let (status, log) = server.ended().await;
    assert!(status.success());
    assert!(!log.contains(SECRET) && !log.contains(&SECRET_NUMBER.to_string()), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
    let message = denial["response"]["status"]["message"].as_str().expect("a denial has a message").to_owned();
    (log, message)
}

#[tokio::test]
async fn a_log_of_json_has_one_object_a_line_with_all_that_a_denial_is_about() {
    let (log, message) = log_of("json").await;
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}")))
        .collect();
    let line = |uid: &str| lines.iter().find(|line| line["uid"] == uid).unwrap_or_else(|| panic!("{uid} in {log}"));
    let denied = line("denied");
    let expected = [
        ("level", json!("INFO")),
        ("message", json!("denied")),
        ("webhook", json!("validate")),
        ("namespace", json!(format!("team-a{HOSTILE}"))),
        ("name", json!(format!("web-{HOSTILE}*"))),
        ("user", json!(format!("ann{HOSTILE}"))),
        ("operation", json!("CREATE")),
        ("resource", json!("pods")),
        ("policies", json!("imageTag")),
        ("reason", json!(message)),
    ];
    for (field, value) in expected {
        assert_eq!(denied[field], value, "{field}");
    }
    for (uid, webhook) in [("patched", "mutate"), ("allowed", "validate")] {
        let line = line(uid);
        assert_eq!((&line["level"], &line["message"]), (&json!("DEBUG"), &json!(uid)));
        assert_eq!((&line["webhook"], &line["user"]), (&json!(webhook), &json!(format!("ann{HOSTILE}"))));
        assert_eq!(line["name"], format!("web-{HOSTILE}*"));
    }
    assert_eq!(line("faulty")["message"], "cannot be judged");
    assert!(lines.iter().any(|line| line["message"] == "not an AdmissionReview"), "{log}");
}

#[tokio::test]
async fn a_log_of_text_has_one_line_for_each_thing_that_happened() {
    let (log, _) = log_of("text").await;
    for line in log.lines() {
        let (time, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 27, "{line:?}");
        let level = rest.split_whitespace().next().unwrap_or_default();
        assert!(["DEBUG", "INFO", "WARN", "ERROR"].contains(&level), "{line:?}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    let denied = log.lines().find(|line| line.contains("uid=\"denied\"")).expect("the denial is logged");
    assert!(denied.contains(" denied ") && denied.contains("policies=\"imageTag\""), "{denied}");
}

#[tokio::test]
async fn exclusions_that_are_hardly_meant_are_told_of_at_the_start_and_counted() {
    let config = tempfile::NamedTempFile::new().expect("a file");
    let text = "exclude: { groups: [\"*\"], users: [{ name: a, until: 2020-01-31 }, { name: b, until: 2020-01-31 }] }\n\
                validations: { imageTag: { exclude: { images: [\"*\"] } } }\n";
    std::fs::write(config.path(), text).expect("the file is writable");
    let server = Binary::serve(&["--config", config.path().to_str().expect("text")]).await;
    for said in [
        "exclude.groups: \"*\" matches",
        "validations.imageTag.exclude.images: \"*\" matches",
        "exclude.users: \"a\" has",
    ] {
        let is_told = |line: &String| line.contains("WARN") && line.contains(said);
        assert!(server.first_lines.iter().any(is_told), "{said}: {:?}", server.first_lines);
    }
    server.until_metric("podgate_exclusions_expired", 2.0).await;
}
