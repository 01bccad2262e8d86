//! What `podgate check` prints: its formats, and `--mutated`.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "check/run.rs"]
mod run;

use podgate::manifest::Language;
use run::{POD, check, check_text, command, folder, run};
use serde_json::{Value, json};

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = command(&folder(), &["-"]);
        command.envs(variables.iter().copied());
        String::from_utf8_lossy(&run(command, POD.as_bytes()).stdout).contains('\u{1b}')
    };
    assert!(!coloured(&[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn no_format_lets_through_what_acts_on_a_terminal() {
    let pod = POD.replace("name: web", "name: \"\\e[31m\\x9b2J\\x7f\\u202e\"").replace("nginx:1.27", "a:\\e[0m");
    for arguments in
        [&["-o", "text"][..], &["-o", "json"], &["-o", "sarif"], &["-o", "junit"], &["-o", "github"], &["--mutated"]]
    {
        let output = run(command(&folder(), &[arguments, &["-"]].concat()), pod.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            let acts = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
            assert!(!text.contains(acts), "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn mutated_prints_what_would_be_stored() {
    let input = "apiVersion: v1\nkind: PodList\nitems:\n- metadata: { name: good, labels: { a: \"on\", b: \"012\", c: \"~\" } }\n  \
                 spec: { containers: [{ name: app, image: \"nginx:1.27\" }] }\n- metadata: { name: bad }\n  \
                 spec: { hostNetwork: true, containers: [{ name: app, image: nginx }] }\n---\n\
                 apiVersion: v1\nkind: ConfigMap\nmetadata: { name: kept }\ndata: { text: \"a\\nb\\n\", \"y\": \"1e3\" }\n";
    let output = run(command(&folder(), &["--mutated", "-"]), input.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.ends_with("2 violations in 2 objects of 1 file; 1 of other kinds skipped\n"), "{stderr}");
    let stored = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert!(stored.contains("---\n# Pod default/bad is denied\n---\n"), "{stored}");
    let documents: Vec<Value> = podgate::manifest::documents(stored.as_bytes(), Language::Yaml)
        .map(|document| serde_json::to_value(&*document.expect("the output is YAML")).expect("a document is JSON"))
        .collect();
    assert_eq!(
        documents,
        [
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "good", "labels": {"a": "on", "b": "012", "c": "~"}},
                "spec": {"containers": [{
                    "name": "app",
                    "image": "nginx:1.27",
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                    "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true},
                }]},
            }),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kept"},
                "data": {"text": "a\nb\n", "y": "1e3"},
            }),
        ]
    );
    let (code, _) = check_text(&[], stored.as_bytes());
    assert_eq!(code, Some(0), "what is stored is right");
}

#[test]
fn json_and_sarif_say_the_same_as_text() {
    let names = ["several-policies.yaml", "broken.yaml"];
    let (code, report) = check(&folder(), &["-o", "json", names[0], names[1]], b"");
    let report: Value = serde_json::from_str(&report).expect("the report is JSON");
    assert_eq!(code, Some(2));
    let summary = &report["summary"];
    assert_eq!((&summary["files"], &summary["objects"]), (&json!(2), &json!(4)));
    let violation = &report["objects"][0]["violations"][0];
    assert_eq!(violation["policy"], "rootUser");
    assert_eq!((&violation["line"], &violation["column"]), (&json!(13), &json!(9)));
    assert_eq!(violation["field"], "spec.containers[0].securityContext.runAsUser");

    let (code, log) = check(&folder(), &["-o", "sarif", names[0], names[1]], b"");
    let log: Value = serde_json::from_str(&log).expect("SARIF is JSON");
    assert_eq!((code, &log["version"]), (Some(2), &json!("2.1.0")));
    let run = &log["runs"][0];
    let rules: Vec<&Value> =
        run["tool"]["driver"]["rules"].as_array().expect("there are rules").iter().map(|rule| &rule["id"]).collect();
    let results = run["results"].as_array().expect("there are results");
    let count = |name: &str| usize::try_from(summary[name].as_u64().expect("a count")).expect("a small one");
    assert_eq!(results.len(), count("denied") + count("warnings") + count("unreadable"));
    let (_, text) = check(&folder(), &[names[0], names[1]], b"");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(".yaml:")).collect();
    assert_eq!(results.len(), lines.len(), "{text}");
    for result in results {
        let location = &result["locations"][0]["physicalLocation"];
        let (uri, region) = (location["artifactLocation"]["uri"].as_str().expect("a file"), &location["region"]);
        let place = format!("{uri}:{}:{}: ", region["startLine"], region["startColumn"]);
        let message = result["message"]["text"].as_str().expect("a message");
        let said = lines.iter().filter(|line| line.starts_with(&place) && line.contains(message)).count();
        assert_eq!(said, 1, "{place}{message} in {text}");
    }
    for violation in report["objects"].as_array().into_iter().flatten().flat_map(|object| {
        object["violations"].as_array().expect("a list").iter().map(move |violation| (object, violation))
    }) {
        let (object, violation) = violation;
        let place =
            format!("{}:{}:{}: ", object["file"].as_str().expect("a file"), violation["line"], violation["column"]);
        let message = violation["message"].as_str().expect("a message");
        assert!(lines.iter().any(|line| line.starts_with(&place) && line.contains(message)), "{place}{message}");
    }
    for result in results {
        assert!(rules.contains(&&result["ruleId"]), "{result}");
        assert!(result["level"] == "error" || result["level"] == "warning", "{result}");
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{result}");
        let location = &result["locations"][0]["physicalLocation"];
        assert!(location["artifactLocation"]["uri"].as_str().is_some_and(|uri| names.contains(&uri)), "{result}");
        assert!(location["region"]["startLine"].as_u64().is_some_and(|line| line > 0), "{result}");
        assert!(location["region"]["startColumn"].as_u64().is_some_and(|column| column > 0), "{result}");
    }
}

#[test]
fn junit_counts_what_it_holds() {
    let (code, xml) = check(&folder(), &["-o", "junit", "several-policies.yaml", "clean.yaml", "broken.yaml"], b"");
    assert_eq!(code, Some(2));
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"podgate\" "), "{xml}");
    let count = |what: &str| xml.matches(what).count();
    assert_eq!(count("<testsuite "), 3);
    for (name, total) in
        [("tests", count("<testcase ")), ("failures", count("<failure ")), ("errors", count("<error "))]
    {
        assert!(
            total > 0 && xml.lines().nth(1).is_some_and(|line| line.contains(&format!("{name}=\"{total}\""))),
            "{xml}"
        );
    }
    // Every element that is opened is closed, in its order.
    let mut open = Vec::new();
    for tag in xml.split('<').skip(2).filter_map(|rest| rest.split('>').next()) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{xml}"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn github_gets_a_command_for_each_line() {
    let (code, report) = check(&folder(), &["-o", "github", "several-policies.yaml", "repeated-keys.yaml"], b"");
    assert_eq!(code, Some(2));
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(
        lines[0],
        "::error file=repeated-keys.yaml,line=7,col=3,title=unreadable::the key \"hostNetwork\" is here twice: keep one"
    );
    assert_eq!(lines.iter().filter(|line| line.starts_with("::error ")).count(), lines.len() - 1, "{report}");
    let (_, report) = check_text(&["-o", "github"], POD.as_bytes());
    assert!(report.starts_with("::error title=hostNetwork::-:5:3: Pod default/web: hostNetwork: "), "{report}");
    // Annotations are matched with the paths of the repository.
    for format in ["github", "sarif", "junit"] {
        let (_, report) = check(&folder(), &["-o", format, "./several-policies.yaml"], b"");
        assert!(report.contains("several-policies.yaml") && !report.contains("./several"), "{report}");
    }
}

/// What SARIF 2.1.0 (OASIS) asks of the parts of it that podgate writes: what is required is there, and
/// there is nothing else.
#[test]
fn sarif_is_what_its_specification_asks_for() {
    let text = json!({"type": "string", "minLength": 1});
    let place = json!({"type": "integer", "minimum": 1});
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false});
    let region = object(&["startLine"], json!({"startLine": place, "startColumn": place}));
    let artifact = object(&["uri"], json!({"uri": {"type": "string", "pattern": "^[A-Za-z0-9%/._~:-]+$"}}));
    let physical = object(&["artifactLocation"], json!({"artifactLocation": artifact, "region": region}));
    let location = object(&["physicalLocation"], json!({"physicalLocation": physical}));
    let message = object(&["text"], json!({"text": text}));
    let result = object(
        &["message"],
        json!({
            "ruleId": text,
            "level": {"enum": ["none", "note", "warning", "error"]},
            "message": message,
            "locations": {"type": "array", "items": location},
        }),
    );
    let rule = object(&["id"], json!({"id": text, "name": text}));
    let rules = json!({"type": "array", "items": rule, "uniqueItems": true});
    let driver = object(&["name"], json!({"name": text, "version": text, "rules": rules}));
    let invocation = object(&["executionSuccessful"], json!({"executionSuccessful": {"type": "boolean"}}));
    let run = object(
        &["tool"],
        json!({
            "tool": object(&["driver"], json!({"driver": driver})),
            "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            "invocations": {"type": "array", "items": invocation},
            "results": {"type": "array", "items": result},
        }),
    );
    let runs = json!({"type": "array", "items": run});
    let log = object(&["version", "runs"], json!({"$schema": text, "version": {"const": "2.1.0"}, "runs": runs}));
    let schema = jsonschema::validator_for(&log).expect("the schema is one");
    for names in [&["several-policies.yaml", "broken.yaml", "no such file.yaml"][..], &["clean.yaml"]] {
        let (_, log) = check(&folder(), &[&["-o", "sarif"], names].concat(), b"");
        let log: Value = serde_json::from_str(&log).expect("SARIF is JSON");
        let faults: Vec<String> =
            schema.iter_errors(&log).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}
