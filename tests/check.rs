//! `podgate check`, run as a person or a CI job runs it. The manifests in `tests/check` have the
//! right report beside them.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "check/run.rs"]
mod run;

use std::path::{Path, PathBuf};

use podgate::admission::{self, Verdict, Webhook};
use podgate::check::{Checker, Report, Severity};
use podgate::config;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample;
use run::{POD, check, check_text, command, folder, run};
use serde_json::{Value, json};

/// What manifests are made of, and what breaks them.
const PARTS: &[&str] = &[
    "apiVersion: v1\n",
    "kind: Pod\n",
    "kind: List\n",
    "items: ",
    "spec:\n",
    "  containers:\n",
    "  - name: a\n",
    "    image: nginx\n",
    "- ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "---\n",
    "...\n",
    ": ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a ",
    "*a ",
    "<<: ",
    "!!int ",
    "!x ",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "# c\n",
    "%YAML 1.1\n",
    "{{ .x }}",
    "\u{feff}",
    "\u{0}",
    "é",
    "null",
    "0x1F",
    ".inf",
];

fn manifests() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "json"));
    paths.sort();
    assert!(paths.len() > 10, "the manifests are there");
    paths
}

#[test]
fn every_manifest_has_its_report() {
    let is_writing = std::env::var_os("PODGATE_WRITE_EXPECTED").is_some();
    for path in manifests() {
        let name = path.file_name().and_then(|name| name.to_str()).expect("the name is UTF-8");
        let (code, report) = check(&folder(), &[name], b"");
        let report = format!("{report}exit code {}\n", code.expect("podgate ends by itself"));
        let expected = path.with_extension("txt");
        if is_writing {
            std::fs::write(&expected, &report).expect("the report can be written");
        }
        let expected = std::fs::read_to_string(&expected).expect("every manifest has a report");
        assert_eq!(report, expected, "{name}");
    }
}

/// A pod in a case is judged here as the webhooks judge it there.
#[test]
fn check_says_what_review_says() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut judged, mut denied) = (0, 0);
    for entry in std::fs::read_dir(cases).expect("the cases are there") {
        let path = entry.expect("an entry can be read").path();
        let Ok(case) = serde_json::from_slice::<Value>(&std::fs::read(&path).expect("a case can be read")) else {
            continue;
        };
        let request = &case["request"]["request"];
        if request["operation"] != "CREATE" || request["kind"]["kind"] != "Pod" || request["subResource"].is_string() {
            continue;
        }
        let policies = config::parse(&case.get("config").map(Value::to_string).unwrap_or_default())
            .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let Value::Object(mut object) = request["object"].clone() else { continue };
        object.insert("apiVersion".to_owned(), "v1".into());
        object.insert("kind".to_owned(), "Pod".into());
        let namespace = request["namespace"].as_str().unwrap_or_default();
        let checker = Checker { policies: &policies, namespace, today: time::Date::MIN, keeps_stored: false };
        let mut report = Report::default();
        // The namespace of the request decides in a cluster; the API server sees that both are one.
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("namespace");
        }
        let object = Value::Object(object);
        report.add_file(&checker, "case", object.to_string().as_bytes());
        let causes = in_a_cluster(&policies, request, &object);
        assert_eq!(report.unreadable.is_empty(), causes.is_some(), "{}: {:?}", path.display(), report.unreadable);
        let causes = causes.unwrap_or_default();
        assert_eq!(report.count(Severity::Denied) > 0, !causes.is_empty(), "{}: {report:?}", path.display());
        let violations: Vec<Cause> = (report.objects.iter().flat_map(|object| &object.violations))
            .filter(|violation| violation.severity == Severity::Denied)
            .map(|violation| (violation.policy.to_string(), violation.field.clone()))
            .collect();
        for cause in &causes {
            let count = |all: &[Cause]| all.iter().filter(|other| *other == cause).count();
            assert_eq!(count(&violations), count(&causes), "{}: {cause:?}: {report:?}", path.display());
        }
        judged += 1;
        denied += usize::from(!causes.is_empty());
    }
    assert!(judged > 50 && denied > 10, "{judged} cases, {denied} denied");
}

/// A policy, and the field that breaks it.
type Cause = (String, String);

/// For what `/mutate` or then `/validate` denies an object that nobody in particular creates; `None` where
/// they cannot read it.
fn in_a_cluster(policies: &podgate::policy::Policies, request: &Value, object: &Value) -> Option<Vec<Cause>> {
    let mut request = request.clone();
    request["uid"] = "check".into();
    request["userInfo"] = json!({});
    request["object"] = object.clone();
    for webhook in [Webhook::Mutate, Webhook::Validate] {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let answer = admission::answer(policies, webhook, review.to_string().as_bytes(), time::Date::MIN);
        match answer.verdict {
            Verdict::Allowed => {}
            Verdict::Denied => {
                let answer: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
                let causes = answer["response"]["status"]["details"]["causes"].as_array().expect("there are causes");
                let text = |value: &Value| value.as_str().expect("a text").to_owned();
                let policy = |cause: &Value| text(&cause["message"]).split(':').next().unwrap_or_default().to_owned();
                return Some(causes.iter().map(|cause| (policy(cause), text(&cause["field"]))).collect());
            }
            Verdict::Invalid | Verdict::Malformed => return None,
            Verdict::Patched => {
                let answer: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
                let patch = answer["response"]["patch"].as_str().expect("there is a patch");
                let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch);
                let patch = serde_json::from_slice::<json_patch::Patch>(&patch.expect("a patch is base64"));
                json_patch::patch(&mut request["object"], &patch.expect("a patch is JSON")).expect("a patch applies");
            }
        }
    }
    Some(Vec::new())
}

#[test]
fn line_endings_and_byte_order_marks_change_nothing() {
    for path in manifests() {
        let text = std::fs::read_to_string(&path).expect("a manifest is UTF-8");
        let expected = check_text(&[], text.as_bytes());
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(check_text(&[], windows.as_bytes()), expected, "{}", path.display());
    }
}

#[test]
fn bad_bytes_and_hostile_sizes_are_told_with_their_place() {
    let deep =
        |levels: usize| format!("apiVersion: v1\nkind: Pod\nspec: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    let aliases = "a: &a [1]\nb: &b [*a]\n".to_owned()
        + &(0..120).fold("c0: &c0 [*b]\n".to_owned(), |text, n| text + &format!("c{}: &c{} [*c{n}]\n", n + 1, n + 1));
    for (input, place) in [
        (b"apiVersion: v1\nkind: \"P\xffd\"\n".to_vec(), "-:2:9: error: this byte is not UTF-8"),
        (deep(150).into_bytes(), "-:3:106: error: this nests more than 100 levels deep"),
        (deep(100_000).into_bytes(), "-:3:262: error: this nests more than 100 levels deep"),
        (aliases.into_bytes(), "-:100:12: error: this nests more than 100 levels deep"),
        (b"a: \x00b\n".to_vec(), "-:1:4: error: this is not YAML"),
    ] {
        let (code, report) = check_text(&[], &input);
        assert_eq!(code, Some(2), "{report}");
        assert!(report.starts_with(place), "{place}: {report}");
    }
    let many = format!("---\n{POD}").repeat(2000);
    let (code, report) = check_text(&[], many.as_bytes());
    assert_eq!((code, report.lines().last()), (Some(1), Some("2000 violations in 2000 objects of 1 file")));
}

proptest! {
    /// Whatever a file holds, every document of it is judged or has a fault with a place in the file.
    #[test]
    fn any_text_has_an_answer(parts in vec(sample::select(PARTS), 0..40)) {
        let text = format!("{}\n---\n{POD}", parts.concat());
        let mut report = Report::default();
        let policies = podgate::policy::Policies::default();
        let checker =
            Checker { policies: &policies, namespace: "default", today: time::Date::MIN, keeps_stored: true };
        report.add_file(&checker, "any", text.as_bytes());
        let last = text.lines().count() + 1;
        for unreadable in &report.unreadable {
            let position = unreadable.position.expect("a fault in a file has a place");
            prop_assert!((1..=last).contains(&position.line) && position.column > 0, "{text:?}: {unreadable:?}");
        }
        for violation in report.objects.iter().flat_map(|object| &object.violations) {
            prop_assert!((1..=last).contains(&violation.position.line), "{text:?}: {violation:?}");
        }
        prop_assert!(!report.objects.is_empty() || !report.unreadable.is_empty(), "{text:?}");
    }
}

#[test]
fn directories_are_read_to_their_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let root = folder.path();
    for directory in ["a/b", ".git", "empty"] {
        std::fs::create_dir_all(root.join(directory)).expect("a folder can be made");
    }
    for file in ["a/b/one.yml", "a/two.yaml", "three.json", "readme.md", ".git/hidden.yaml", "a/kustomization.yaml"] {
        let text = if file.ends_with("json") { "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\"}" } else { POD };
        std::fs::write(root.join(file), text).expect("a file can be written");
    }
    let (code, report) = check(root, &["."], b"");
    let places: Vec<_> = report.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(
        places,
        ["a/b/one.yml:5:3", "a/two.yaml:5:3", "2 violations in 2 objects of 3 files; 1 of other kinds skipped"]
    );
    assert_eq!(code, Some(1));

    let (code, report) = check(root, &["empty", "no-such-file", "a/two.yaml"], b"");
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines[0], "empty: error: there is no *.yaml, *.yml or *.json in empty");
    assert!(lines[1].starts_with("no-such-file: error: cannot read no-such-file: "), "{report}");
    assert!(lines[2].starts_with("a/two.yaml:5:3: denied: Pod default/web: hostNetwork: "), "{report}");
    assert_eq!((code, lines.len()), (Some(2), 4), "what cannot be read weighs more than a violation");
}

#[test]
fn a_file_has_an_end() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = std::fs::File::create(folder.path().join("huge.yaml")).expect("a file can be made");
    file.set_len((64 << 20) + 1).expect("a file can be large");
    std::fs::write(folder.path().join("pod.yaml"), POD).expect("a file can be written");
    let (code, report) = check(folder.path(), &["huge.yaml", "pod.yaml"], b"");
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines[0], "huge.yaml: error: huge.yaml is larger than 64 MiB: check its parts");
    assert_eq!((code, lines.last()), (Some(2), Some(&"1 violation, 1 error in 1 object of 2 files")));
}

#[test]
fn the_configuration_and_the_namespace_decide() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec:\n  template:\n    spec:\n      \
                      hostNetwork: true\n";
    for (config, manifest, code, said) in [
        ("validations: { hostNetwork: { action: warn } }", POD, 0, "-:5:3: warning: Pod default/web: hostNetwork: "),
        ("validations: { hostNetwork: { action: audit } }", POD, 0, "no violations in 1 object of 1 file"),
        ("validations: { hostNetwork: { action: off } }", POD, 0, "no violations in 1 object of 1 file"),
        (
            "validations: { hostNetwork: { message: nein } }",
            POD,
            1,
            "-:5:3: denied: Pod default/web: hostNetwork: nein",
        ),
        ("workloads: warn", deployment, 1, "-:7:7: denied: Deployment default/web: hostNetwork: "),
        ("workloads: deny", deployment, 1, "-:7:7: denied: Deployment default/web: hostNetwork: "),
        (
            "workloads: off",
            deployment,
            0,
            "no violations in 0 objects of 1 file; 1 workload not judged, for workloads: off",
        ),
    ] {
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, config).expect("the configuration can be written");
        let path = path.to_str().expect("the path is UTF-8");
        let (found, report) = check_text(&["--config", path], manifest.as_bytes());
        assert!(report.starts_with(said), "{config}: {report}");
        assert_eq!(found, Some(code), "{config}");
    }
    assert_eq!(check_text(&["--namespace", "kube-system"], POD.as_bytes()).0, Some(0));
    assert_eq!(check_text(&["-n", "team-a"], POD.as_bytes()).0, Some(1));
}

#[test]
fn one_field_may_break_a_policy_twice() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("config.yaml");
    let text =
        "validations: { imageTag: { requireDigest: true, allowedRegistries: [registry.example.com], message: nein } }";
    std::fs::write(&config, text).expect("the configuration can be written");
    let arguments = ["--config", config.to_str().expect("the path is UTF-8")];
    let (_, report) = check_text(&arguments, POD.replace("hostNetwork: true", "restartPolicy: Never").as_bytes());
    assert_eq!(report.lines().last(), Some("2 violations in 1 object of 1 file"), "{report}");
}

#[test]
fn a_port_of_the_node_is_told_once() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "validations: { hostNetwork: { action: off }, hostPorts: { action: deny } }")
        .expect("the configuration can be written");
    let ports = "ports: [{ containerPort: 53, protocol: UDP }, { containerPort: 53, protocol: TCP }], image:";
    let arguments = ["--config", config.to_str().expect("the path is UTF-8")];
    let (_, report) = check_text(&arguments, POD.replace("image:", ports).as_bytes());
    assert_eq!(report.lines().last(), Some("1 violation in 1 object of 1 file"), "{report}");
}

#[test]
fn usage_errors_are_told_apart_from_violations() {
    for arguments in [
        &[][..],
        &["-o", "xml", "-"],
        &["--mutated", "-o", "json", "-"],
        &["--config", "/no/such", "-"],
        &["--namespace", "A B", "-"],
        &["--namespace", "-a", "-"],
        &["--namespace", "", "-"],
    ] {
        let output = run(command(&folder(), arguments), POD.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn nothing_at_all_is_no_green_light() {
    let said = "so that nothing was judged";
    for nothing in ["", "\n", "# a comment\n", "---\n---\n# none\n", "apiVersion: v1\nkind: List\nitems: []\n"] {
        let (code, report) = check_text(&[], nothing.as_bytes());
        assert_eq!(code, Some(2), "{nothing:?}: {report}");
        assert!(report.starts_with("-: error: there is no object on standard input, "), "{nothing:?}: {report}");
        assert!(report.contains(said), "{nothing:?}: {report}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (file, text) in [("empty.yaml", "# none\n"), ("pod.yaml", POD), ("none.json", "")] {
        std::fs::write(folder.path().join(file), text).expect("a file can be written");
    }
    let (code, report) = check(folder.path(), &["empty.yaml", "none.json"], b"");
    assert_eq!(code, Some(2));
    assert!(report.starts_with("empty.yaml: error: there is no object in any of the files, "), "{report}");
    let (code, report) = check(folder.path(), &["."], b"");
    assert_eq!((code, report.lines().last()), (Some(1), Some("1 violation in 1 object of 3 files")));
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let (code, report) = check_text(&["-"], POD.as_bytes());
    assert_eq!((code, report.lines().last()), (Some(1), Some("1 violation in 1 object of 1 file")));
    let (_, report) = check(&folder(), &["clean.yaml", "./clean.yaml", "clean.yaml"], b"");
    assert!(report.contains(" of 1 file"), "{report}");
}

#[test]
fn a_reader_who_has_read_enough_is_no_failure() {
    use std::io::{BufRead as _, BufReader};
    let input = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(input.path(), format!("---\n{POD}").repeat(2000)).expect("a file can be written");
    let mut command = command(&folder(), &[input.path().to_str().expect("the path is UTF-8")]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("podgate starts");
    let mut line = String::new();
    BufReader::with_capacity(64, child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("a line");
    let output = child.wait_with_output().expect("podgate ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(1), ""));
}
