//! `podgate check`, run as a person or a CI job runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec:\n  hostNetwork: true\n  \
                   containers: [{ name: app, image: \"nginx:1.27\" }]\n";

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check")
}

pub(crate) fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgate"));
    command.current_dir(directory).arg("check").args(arguments);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

pub(crate) fn run(mut command: Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("podgate starts");
    // A command that fails before it reads closes its end, which is no fault of this test.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    child.wait_with_output().expect("podgate ends")
}

pub(crate) fn check(directory: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let output = run(command(directory, arguments), input);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    (output.status.code(), String::from_utf8(output.stdout).expect("the report is UTF-8"))
}

/// What is said of standard input.
pub(crate) fn check_text(arguments: &[&str], input: &[u8]) -> (Option<i32>, String) {
    check(&folder(), &[arguments, &["-"]].concat(), input)
}
