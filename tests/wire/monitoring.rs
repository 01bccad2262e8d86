//! docs/METRICS.md, the alerts and the dashboard, held to what a running server exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::{Binary, ask, podgate, post};

/// Labels that Prometheus gives to all that it scrapes.
const OF_THE_TARGET: [&str; 4] = ["job", "instance", "namespace", "pod"];

/// Every policy at work, and every action.
const CONFIGURATION: &str = "validations:\n  hostPID: { action: deny }\n  hostIPC: { action: audit }\n  \
                             hostPorts: { action: deny }\n  cpu: { action: deny, max: 1 }\n  \
                             memory: { action: deny, max: 1Gi }\n";

/// The values of each label.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// One metric, as `/metrics` has it or as the table does.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    help: String,
    labels: Labels,
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn review(operation: &str, kind: [&str; 3], subresource: &str, object: &Value) -> String {
    let [group, version, kind] = kind;
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "namespace": "team-a", "operation": operation, "subResource": subresource,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": "any"},
            "object": object, "oldObject": object,
        },
    })
    .to_string()
}

/// Reviews with every operation, resource, verdict, policy and action.
fn reviews() -> Vec<String> {
    let pod = ["", "v1", "Pod"];
    let good = json!({"spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    let bad = json!({"spec": {
        "hostNetwork": true, "hostPID": true, "hostIPC": true, "securityContext": {"runAsUser": 0},
        "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}],
        "containers": (0..6).map(|index| json!({
            "name": format!("c{index}"), "image": "app", "ports": [{"hostPort": 80}],
            "securityContext": {"privileged": true},
        })).collect::<Vec<_>>(),
    }});
    let mut reviews = vec![
        "{}".to_owned(),
        review("CREATE", pod, "", &bad),
        review("CREATE", pod, "", &Value::Null),
        review("UPDATE", pod, "ephemeralcontainers", &good),
        review("UPDATE", pod, "resize", &good),
    ];
    for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT"] {
        reviews.push(review(operation, pod, "", &good));
    }
    for kind in podgate::pod::WorkloadKind::ALL {
        reviews.push(review("CREATE", [kind.group(), "v1", kind.as_str()], "", &json!({})));
    }
    reviews
}

/// What `/metrics` of a server says that has had all kinds of reviews.
async fn exported() -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, CONFIGURATION).expect("the folder is writable");
    let server = Binary::serve(&["--config", path.to_str().expect("a path that is text")]).await;
    let mut stream = server.connect().await;
    for review in reviews() {
        for path in ["/mutate", "/validate"] {
            ask(&mut stream, post(path, &review)).await;
        }
    }
    // What is there only where clients have to show a certificate.
    podgate(&["certs", "--dir", folder.path().to_str().expect("a path that is text")]).await;
    let authority = folder.path().join("ca.crt");
    let strict = Binary::serve(&["--client-ca", authority.to_str().expect("a path that is text")]).await;
    let metrics = async |server: &Binary| {
        let mut stream = TcpStream::connect(server.admin_addr).await.expect("the admin port");
        ask(&mut stream, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.text()
    };
    metrics(&server).await + &metrics(&strict).await
}

/// The name and the labels of a line such as `name{a="b",c="d"} 1`.
fn series(line: &str) -> (&str, Vec<(String, String)>) {
    let (series, _) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in {line:?}"));
    let Some((name, labels)) = series.split_once('{') else { return (series, Vec::new()) };
    (name, matchers(labels.trim_end_matches('}')))
}

/// `a="b",c=~"d|e"`: each label and its value, or pattern; what is left out (`!=`, `!~`) has to be there, too.
fn matchers(text: &str) -> Vec<(String, String)> {
    let pairs = text.split("\",").filter(|pair| !pair.is_empty()).map(|pair| {
        let pair = pair.trim_end_matches('"');
        let kinds = ["!~\"", "=~\"", "!=\"", "=\""];
        kinds.iter().find_map(|kind| pair.split_once(kind)).unwrap_or_else(|| panic!("no matcher: {pair}"))
    });
    pairs.map(|(label, value)| (label.trim().to_owned(), value.to_owned())).collect()
}

fn metrics_of(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.clone_into(&mut metrics.entry(name.to_owned()).or_default().help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kind.clone_into(&mut metrics.entry(name.to_owned()).or_default().kind);
        } else {
            let (name, labels) = series(line);
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let name = of_histogram.filter(|name| metrics.contains_key(*name)).unwrap_or(name);
            let metric = metrics.get_mut(name).unwrap_or_else(|| panic!("{name} has no HELP"));
            for (label, value) in labels.into_iter().filter(|(label, _)| label != "le") {
                metric.labels.entry(label).or_default().insert(value);
            }
        }
    }
    metrics
}

/// The table of docs/METRICS.md.
fn documented() -> BTreeMap<String, Metric> {
    let text = file("docs/METRICS.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
        let [name, kind, labels @ .., help] = cells.as_slice() else { panic!("no row: {row}") };
        let labels = labels.iter().flat_map(|cell| cell.split("; ")).filter_map(|label| label.split_once(": "));
        let labels = labels.map(|(label, values)| {
            let values = values.split(", ").map(str::to_owned).collect();
            (label.trim_matches('`').to_owned(), values)
        });
        let help = help.trim_start_matches("| ").to_owned();
        let metric = Metric { kind: kind.trim_end_matches(" |").to_owned(), help, labels: labels.collect() };
        (name.trim_end_matches('`').to_owned(), metric)
    })
    .collect()
}

#[tokio::test]
async fn every_metric_is_documented_and_nothing_else() {
    let mut exported = metrics_of(&exported().await);
    let version = exported.get_mut("podgate_build_info").and_then(|metric| metric.labels.get_mut("version"));
    *version.expect("the build has a version") = BTreeSet::from(["its version".to_owned()]);
    let documented = documented();
    for (name, metric) in &exported {
        assert_eq!(documented.get(name), Some(metric), "{name} in docs/METRICS.md");
    }
    for name in documented.keys() {
        assert!(exported.contains_key(name), "docs/METRICS.md has {name}, which /metrics has not");
    }
}

/// A query, where it stands, and the text beside it that may name labels.
struct Query {
    place: String,
    expression: String,
    labels_named: Vec<String>,
}

fn alerts() -> Vec<Query> {
    let rules: Value = serde_saphyr::from_str(&file("deploy/monitoring/rules.yaml")).expect("rules.yaml is YAML");
    let groups = rules["spec"]["groups"].as_array().expect("there are groups");
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().expect("a group has rules"));
    rules
        .map(|rule| {
            let annotations = rule["annotations"].to_string();
            let named = annotations.split("$labels.").skip(1);
            let name =
                |text: &str| text.split(|letter: char| !letter.is_ascii_alphanumeric()).next().map(str::to_owned);
            Query {
                place: rule["alert"].as_str().expect("an alert has a name").to_owned(),
                expression: rule["expr"].as_str().expect("an alert has an expression").to_owned(),
                labels_named: named.filter_map(name).collect(),
            }
        })
        .collect()
}

fn panels() -> Vec<Query> {
    let dashboard: Value =
        serde_json::from_str(&file("deploy/monitoring/dashboard.json")).expect("dashboard.json is JSON");
    let panels = dashboard["panels"].as_array().expect("there are panels");
    let targets = panels.iter().flat_map(|panel| {
        panel["targets"].as_array().expect("a panel has targets").iter().map(move |target| (panel, target))
    });
    targets
        .map(|(panel, target)| {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            let named = legend.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
            Query {
                place: panel["title"].as_str().expect("a panel has a title").to_owned(),
                expression: target["expr"].as_str().expect("a target has an expression").to_owned(),
                labels_named: named.map(|(label, _)| label.to_owned()).collect(),
            }
        })
        .collect()
}

/// The metrics that an expression selects, with their matchers.
fn selectors(expression: &str) -> Vec<(&str, Vec<(String, String)>)> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(start) = ["podgate_", "process_"].iter().filter_map(|prefix| rest.find(prefix)).min() {
        let from = &rest[start..];
        let (name, after) = from.split_at(from.find(|letter| !is_name(letter)).unwrap_or(from.len()));
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        selectors.push((name, braced.map(|(inner, _)| matchers(inner)).unwrap_or_default()));
        rest = after;
    }
    selectors
}

/// The labels that a grouping keeps; `None` where nothing is grouped.
fn grouped_by(expression: &str) -> Option<Vec<&str>> {
    if let Some((_, after)) = expression.split_once(" by (") {
        return after.split_once(')').map(|(inner, _)| inner.split(", ").collect());
    }
    let aggregates = ["sum(", "min(", "max(", "count("];
    aggregates.iter().any(|aggregate| expression.contains(aggregate)).then(Vec::new)
}

#[tokio::test]
async fn alerts_and_dashboard_ask_for_what_is_exported() {
    let text = exported().await;
    let mut exported: BTreeMap<&str, Labels> = BTreeMap::new();
    for (name, labels) in text.lines().filter(|line| !line.starts_with('#')).map(series) {
        let known = exported.entry(name).or_default();
        for (label, value) in labels {
            known.entry(label).or_default().insert(value);
        }
    }
    let queries: Vec<Query> = alerts().into_iter().chain(panels()).collect();
    assert!(queries.len() > 20);
    for Query { place, expression, labels_named } in &queries {
        let selectors = selectors(expression);
        assert!(!selectors.is_empty(), "{place}: {expression}");
        for (name, matchers) in selectors {
            let labels = exported.get(name).unwrap_or_else(|| panic!("{place}: there is no {name}"));
            for (label, pattern) in matchers.iter().filter(|(label, _)| !OF_THE_TARGET.contains(&&**label)) {
                let values = labels.get(label).unwrap_or_else(|| panic!("{place}: {name} has no label {label}"));
                for value in pattern.split('|') {
                    assert!(values.contains(value), "{place}: {label} of {name} is never {value}");
                }
            }
            let has = |label: &str| labels.contains_key(label) || OF_THE_TARGET.contains(&label);
            let kept = grouped_by(expression);
            for label in kept.iter().flatten() {
                assert!(has(label), "{place}: {name} has no label {label}");
            }
            for label in labels_named {
                let is_kept = kept.as_ref().is_none_or(|kept| kept.contains(&label.as_str()));
                assert!(has(label) && is_kept, "{place}: the result has no label {label}");
            }
        }
    }
}
