//! `podgate review` and `podgate config`, run as a person runs them.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};

const REVIEWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/reviews");

fn podgate(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_podgate"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("podgate starts");
    // A command that fails before it reads closes its end, which is no fault of this test.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    child.wait_with_output().expect("podgate ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the errors are UTF-8")
}

fn example(name: &str) -> String {
    format!("{REVIEWS}/{name}.json")
}

fn review(webhook: &str, file: &str) -> (Option<i32>, Value) {
    let output = podgate(&["review", "--webhook", webhook, file], b"");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("the answer is JSON"))
}

struct Folder(PathBuf);

impl Folder {
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the file can be written");
        path.to_str().expect("the path is UTF-8").to_owned()
    }
}

fn in_folder(test: impl FnOnce(&Folder)) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    test(&Folder(folder.path().to_owned()));
}

#[test]
fn review_answers_as_the_server_does() {
    let (code, answer) = review("mutate", &example("mutated"));
    assert_eq!(code, Some(0));
    assert_eq!(answer["response"]["allowed"], true);
    let patch = answer["response"]["patch"].as_str().expect("there is a patch");
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("the patch is base64");
    let patch: Value = serde_json::from_slice(&patch).expect("the patch is JSON");
    assert_eq!(
        patch[0],
        json!({
            "op": "add",
            "path": "/spec/containers/0/securityContext",
            "value": {"allowPrivilegeEscalation": false, "runAsNonRoot": true},
        })
    );

    let (code, answer) = review("mutate", &example("denied-by-mutate"));
    assert_eq!((code, &answer["response"]["allowed"]), (Some(1), &json!(false)));

    let (code, answer) = review("validate", &example("denied-by-validate"));
    assert_eq!(code, Some(1));
    assert_eq!(
        answer["response"]["status"]["message"],
        "pod team-a/agent breaks 3 policies\n\
         imageTag: container \"agent\" (spec.containers[0].image) is \"quay.io/acme/agent:latest\", and the tag latest \
         is no version: name a version, such as quay.io/acme/agent:1.4.2\n\
         hostPath: volume \"logs\" (spec.volumes[0].hostPath.path) mounts \"/var/log\": allowed are /data/shared, \
         /tmp/container\n\
         hostNetwork: the pod (spec.hostNetwork) is in the node's network: remove it or set it to false"
    );
    let fields: Vec<_> = answer["response"]["status"]["details"]["causes"]
        .as_array()
        .expect("there are causes")
        .iter()
        .map(|cause| cause["field"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(fields, ["spec.containers[0].image", "spec.volumes[0].hostPath.path", "spec.hostNetwork"]);

    for webhook in ["mutate", "validate"] {
        let (code, answer) = review(webhook, &example("clean"));
        assert_eq!(code, Some(0));
        assert!(answer["response"].get("patch").is_none() && answer["response"].get("warnings").is_none());
    }
}

#[test]
fn review_reads_standard_input_and_says_what_it_cannot_read() {
    let body = std::fs::read(example("clean")).expect("the example is there");
    for arguments in [&["review", "--webhook", "validate"][..], &["review", "--webhook", "validate", "-"]] {
        assert_eq!(podgate(arguments, &body).status.code(), Some(0));
    }
    let output = podgate(&["review", "--webhook", "validate"], b"{");
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("\"code\":400"), "{}", stdout(&output));

    let output = podgate(&["review", "--webhook", "validate", "/no/such/file"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("podgate: cannot read /no/such/file: "), "{}", stderr(&output));
}

#[test]
fn review_shows_the_object_that_would_be_stored() {
    let show = |name: &str| {
        let output = podgate(&["review", "--patched", "--webhook", "mutate", &example(name)], b"");
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).expect("the output is JSON"))
    };
    let (code, object) = show("mutated");
    assert_eq!(code, Some(0));
    assert_eq!(object["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(object["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "250m"}));
    let (code, object) = show("clean");
    assert_eq!((code, &object["metadata"]["name"]), (Some(0), &json!("api")));
    let (code, answer) = show("denied-by-mutate");
    assert_eq!((code, &answer["response"]["allowed"]), (Some(1), &json!(false)));
}

#[test]
fn review_takes_a_configuration() {
    in_folder(|folder| {
        let config = folder.file("config.yaml", "validations:\n  hostNetwork: { action: warn }\n");
        let output =
            podgate(&["review", "--config", &config, "--webhook", "validate", &example("denied-by-validate")], b"");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer is JSON");
        assert_eq!(
            answer["response"]["warnings"],
            json!(["hostNetwork: the pod (spec.hostNetwork) is in the node's network: remove it or set it to false"])
        );
        let message = answer["response"]["status"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("pod team-a/agent breaks 2 policies\n"), "{message}");
    });
}

#[test]
fn config_default_is_right_and_means_the_default() {
    let output = podgate(&["config", "default"], b"");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(podgate::config::parse(&stdout(&output)), Ok(podgate::policy::Policies::default()));
    in_folder(|folder| {
        let file = folder.file("default.yaml", &stdout(&output));
        assert_eq!(podgate(&["config", "check", &file], b"").status.code(), Some(0));
    });
}

#[test]
fn config_check_names_file_line_column_and_the_nearest_key() {
    in_folder(|folder| {
        let file = folder.file("config.yaml", "# mine\nvalidations:\n  hostpath: { allow: [/data] }\n");
        let output = podgate(&["config", "check", &file], b"");
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(
            said.starts_with(&format!("podgate: {file}: line 3, column 3: there is no key \"hostpath\"")),
            "{said}"
        );
        assert!(said.contains("did you mean \"hostPath\"?"), "{said}");
    });
    in_folder(|folder| {
        let file = folder.file("config.yaml", "");
        std::fs::write(&file, b"# one\nvalidations: \xff\n").expect("the folder is writable");
        let said = stderr(&podgate(&["config", "check", &file], b""));
        assert!(said.starts_with(&format!("podgate: {file}: line 2, column 14: this byte is not UTF-8")), "{said}");
    });
    let endless = podgate(&["config", "check", "/dev/zero"], b"");
    assert!(stderr(&endless).contains("/dev/zero: the file has more than 1 MiB"), "{}", stderr(&endless));
    let output = podgate(&["config", "check", "/no/such/file"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/no/such/file"), "{}", stderr(&output));
}

#[test]
fn config_check_warns_of_exclusions_that_are_hardly_meant() {
    in_folder(|folder| {
        let file = folder.file(
            "config.yaml",
            "exclude:\n  users: [\"system:serviceaccount:kube-system:*\"]\n  \
             namespaces: [{ name: legacy, reason: moving, until: 2020-01-31 }]\n",
        );
        let output = podgate(&["config", "check", &file], b"");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(
            stderr(&output),
            format!(
                "podgate: warning: {file}: exclude.namespaces: \"legacy\" has counted until 2020-01-31 (moving) and no \
                 longer does: remove it, or give it a later day\n\
                 podgate: warning: {file}: exclude.users: \"system:serviceaccount:kube-system:*\" matches \
                 system:serviceaccount:kube-system:replicaset-controller, behind which nearly every pod is created: it \
                 exempts nearly every pod, so name those whom you mean\n"
            )
        );
    });
}

#[test]
fn usage_errors_end_with_2_and_help_names_every_command() {
    for arguments in [&["nonsense"][..], &["review"], &["review", "--webhook", "other"], &["config"]] {
        assert_eq!(podgate(arguments, b"").status.code(), Some(2), "{arguments:?}");
    }
    for flag in ["--max-body-bytes", "--max-connections"] {
        for value in ["0", "8MiB"] {
            let said = podgate(&["serve", flag, value], b"");
            assert_eq!(said.status.code(), Some(2), "{flag} {value}");
            assert!(stderr(&said).contains("write a whole number from 1"), "{}", stderr(&said));
        }
    }
    let help = stdout(&podgate(&["--help"], b""));
    for command in ["serve", "check", "review", "certs", "config", "completions"] {
        assert!(help.contains(command), "{help}");
        let help = stdout(&podgate(&[command, "--help"], b""));
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("podgate {command} ")), "{help}");
    }
    assert!(stdout(&podgate(&["--version"], b"")).starts_with("podgate "));
}

#[test]
fn the_names_of_clients_need_an_authority_and_letters() {
    for (arguments, what) in [
        (&["serve", "--client-name", "kube-apiserver"][..], "--client-ca <FILE>"),
        (&["serve", "--client-ca", "ca.crt", "--client-name", ""], "--client-name <NAME>"),
        (&["serve", "--client-ca", "one", "--client-ca", "two"], "--client-ca <FILE>"),
    ] {
        let output = podgate(arguments, b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with("error: ") && stderr(&output).contains(what), "{}", stderr(&output));
    }
    let help = stdout(&podgate(&["serve", "--help"], b""));
    assert!(help.contains("--client-ca <FILE>") && help.contains("--client-name <NAME>"), "{help}");
}

#[test]
fn the_examples_are_where_the_demo_looks_for_them() {
    for name in ["mutated", "denied-by-mutate", "denied-by-validate", "clean"] {
        assert!(Path::new(&example(name)).exists(), "{name}");
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = podgate(&["completions", shell], b"");
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let dashes = if shell == "fish" { "-l " } else { "--" };
        for word in ["podgate".to_owned(), "check".to_owned(), format!("{dashes}config"), format!("{dashes}mutated")] {
            assert!(stdout(&output).contains(&word), "{shell}: {word}");
        }
    }
    assert_eq!(podgate(&["completions", "tcsh"], b"").status.code(), Some(2));
    in_folder(|folder| {
        let script = folder.file("podgate.bash", &stdout(&podgate(&["completions", "bash"], b"")));
        let output = Command::new("bash").args(["-n", &script]).output().expect("bash runs");
        assert!(output.status.success(), "{}", stderr(&output));
    });
}

#[test]
fn the_readme_checks_manifests_as_it_says() {
    let root = env!("CARGO_MANIFEST_DIR");
    let readme = std::fs::read_to_string(Path::new(root).join("README.md")).expect("there is a README");
    let command = readme.lines().find(|line| line.starts_with("podgate check ")).expect("the README checks manifests");
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output =
        Command::new(env!("CARGO_BIN_EXE_podgate")).current_dir(root).args(&arguments).output().expect("podgate runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let shown: Vec<&str> = readme.lines().skip_while(|line| *line != command).skip(1).collect();
    for line in stdout(&output).lines() {
        assert!(shown.contains(&line), "the README does not show {line:?}");
    }
}

#[test]
fn config_check_reads_standard_input() {
    let output = podgate(&["config", "check", "-"], b"workloads: deny\n");
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), "-: this configuration is right\n"));
    let output = podgate(&["config", "check", "-"], b"workloads: \"\\e[31m\"\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("podgate: -: line 1, column 12: "), "{}", stderr(&output));
    let output = podgate(&["config", "check", "-"], "worklads: off # \u{9b}31m\n".as_bytes());
    assert!(!stderr(&output).contains('\u{9b}'), "{:?}", stderr(&output));
}

#[test]
fn help_is_plain_text() {
    for command in
        [&[][..], &["serve"], &["check"], &["certs"], &["review"], &["config"], &["config", "check"], &["completions"]]
    {
        let help = stdout(&podgate(&[command, &["--help"]].concat(), b""));
        assert!(help.contains("Usage:") && !help.contains('`'), "{help}");
    }
}
