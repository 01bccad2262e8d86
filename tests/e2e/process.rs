//! Programs that end when the test does, whatever way it ends.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on any machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs a program until standard input ends, which it does with the test; signals from a terminal
/// go past it, so that it outlives a Ctrl-C just long enough to clean up.
const SUPERVISOR: &str = r#"trap "" INT TERM HUP; "$@" </dev/null & read -r _; kill -9 $!; wait"#;

/// A program in the background; killed when dropped.
pub(crate) struct Supervised(Child);

impl Supervised {
    /// Starts a program whose output goes to `log`.
    pub(crate) fn start(program: &Path, arguments: &[String], log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("the folder is writable");
        let child = Command::new("sh")
            .args(["-c", SUPERVISOR, "sh"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("sh runs");
        Self(child)
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// Waits until something is there.
pub(crate) fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
