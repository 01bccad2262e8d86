//! Programs that end when the test does, whatever way it ends.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on any machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs a program that cannot outlive the test: a watcher beside it waits for the other end of its
/// standard input, which goes away with the test however that ends, and kills the program. The
/// program takes the place of the shell, so that its process id, signals and exit code are its own.
const LIFELINE: &str = r#"
exec 3<&0 </dev/null
{ trap "" INT TERM HUP; read -r _ <&3; kill -9 $$; } >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"#;

/// A command for a program that ends with the test.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", LIFELINE, "sh"]).arg(program).stdin(Stdio::piped());
    command
}

/// A program in the background; killed when dropped.
pub(crate) struct Supervised(Child);

impl Supervised {
    /// Starts what [`command`] made.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("sh runs"))
    }

    /// Starts a program whose output goes to `log`.
    pub(crate) fn start(program: &Path, arguments: &[String], log: &Path) -> Self {
        let log = File::create(log).expect("the folder is writable");
        let stdout = log.try_clone().expect("a file can be shared");
        Self::spawn(command(program).args(arguments).stdout(stdout).stderr(log))
    }

    /// Whether it runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }

    /// Its standard error, which has to be piped.
    pub(crate) fn take_stderr(&mut self) -> ChildStderr {
        self.0.stderr.take().expect("stderr is piped, and taken once")
    }

    /// Waits as long as it takes: how it ended.
    pub(crate) fn wait(mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &id]).status().expect("kill runs");
        assert!(sent.success());
        // Without `wait`, which would let go of the lifeline first.
        eventually("it ends after SIGTERM", || self.0.try_wait().expect("it is ours"))
    }
}

impl Supervised {
    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
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
