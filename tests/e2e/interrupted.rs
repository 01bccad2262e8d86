//! A run of these tests leaves no process behind, whatever way it ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::process::eventually;

/// In the environment of a run and of all that it starts: which run, and whether it fails or waits.
const RUN: &str = "PODGATE_INTERRUPTED_RUN";
const FAILS: &str = "fails";
const WAITS: &str = "waits";
const STARTED: &str = "everything is started";

#[test]
fn nothing_is_left_running() {
    // How `make e2e` ends: by a test that fails, by Ctrl-C, and by what nothing can be done against.
    for (behaviour, signal) in [(FAILS, None), (WAITS, Some("INT")), (WAITS, Some("KILL"))] {
        let run = format!("{behaviour}-{}-{signal:?}", std::process::id());
        let mut tests = Command::new(std::env::current_exe().expect("the test has a file"))
            .args(["--exact", "interrupted::a_run", "--ignored", "--nocapture", "--test-threads=1"])
            .env(RUN, &run)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the tests run");
        let lines = BufReader::new(tests.stdout.take().expect("stdout is piped")).lines();
        let told = lines.map_while(Result::ok).any(|line| line.contains(STARTED));
        assert!(told, "{run} came to its point");
        if let Some(signal) = signal {
            assert!(running(&run) > 4, "the control plane and podgate run");
            // To the group, as a terminal does it.
            let group = format!("-{}", tests.id());
            let sent = Command::new("kill").args(["-s", signal, "--", &group]).status().expect("kill runs");
            assert!(sent.success());
        }
        assert!(!tests.wait().expect("it is ours").success(), "{run}");
        eventually("every process has ended", || (running(&run) == 0).then_some(()));
    }
}

/// How many processes have the run in their environment.
fn running(run: &str) -> usize {
    let entry = format!("{RUN}={run}");
    let processes = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    processes
        .filter(|process| {
            // One that has ended meanwhile has none.
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
        })
        .count()
}

#[test]
#[ignore = "started by nothing_is_left_running, which ends it"]
fn a_run() {
    let run = std::env::var(RUN).expect("nothing_is_left_running names the run");
    let _cluster = Cluster::on(ControlPlane::start().with_controllers());
    println!("{STARTED}");
    assert!(!run.starts_with(FAILS), "fails on purpose");
    std::thread::sleep(std::time::Duration::from_mins(10));
}
