//! A control plane of its own: etcd, kube-apiserver and, where asked for, kube-controller-manager,
//! on free ports and in a temporary folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::process::{Supervised, eventually, free_port};

/// Who may ask: the token, the user and the groups.
const TOKENS: [(&str, &str, &str); 3] = [
    ("admin-token", "admin", "system:masters"),
    ("node-token", "system:node:node-1", "system:nodes"),
    ("author-token", "author", "authors"),
];

/// Someone with a token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    /// In `system:masters`.
    Admin,
    /// The kubelet of `node-1`.
    Node,
}

impl Who {
    fn token(self) -> &'static str {
        match self {
            Self::Admin => TOKENS[0].0,
            Self::Node => TOKENS[1].0,
        }
    }
}

/// What a kubectl command did.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A control plane; everything of it is gone when it is dropped.
pub(crate) struct ControlPlane {
    programs: PathBuf,
    port: u16,
    // In the order in which they end.
    controller_manager: Option<Supervised>,
    api_server: Supervised,
    _etcd: Supervised,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver, and waits until the API is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with more arguments for kube-apiserver.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let programs = std::env::var_os("KUBEBUILDER_ASSETS")
            .map(PathBuf::from)
            .expect("KUBEBUILDER_ASSETS names the folder of the control plane: run `make e2e`");
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let mut tokens = String::new();
        for (token, user, group) in TOKENS {
            writeln!(tokens, "{token},{user},{user}-uid,\"{group}\"").expect("memory takes it");
        }
        std::fs::write(path("tokens.csv"), tokens).expect("the folder is writable");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        std::fs::write(path("service-accounts.key"), key.serialize_pem()).expect("the folder is writable");
        // kube-apiserver does not derive it from a PKCS#8 key.
        std::fs::write(path("service-accounts.pub"), key.public_key_pem()).expect("the folder is writable");
        let etcd_port = free_port();
        let etcd = start_etcd(&programs, folder.path(), etcd_port);
        let port = free_port();
        let api_server = start_api_server(&programs, folder.path(), etcd_port, port, arguments);
        let mut plane = Self { programs, port, controller_manager: None, api_server, _etcd: etcd, folder };
        for who in [Who::Admin, Who::Node] {
            plane.write_kubeconfig(who);
        }
        eventually("the API server is ready", || {
            assert!(plane.api_server.is_running(), "kube-apiserver ended: {}", plane.log("kube-apiserver.log"));
            plane.kubectl(&["get", "--raw", "/readyz"]).success.then_some(())
        });
        eventually("the default service account", || {
            plane.kubectl(&["get", "namespace", "default"]).success.then_some(())
        });
        plane.must(&["create", "serviceaccount", "default"]);
        plane
    }

    /// Starts kube-controller-manager, which makes pods of workloads.
    pub(crate) fn with_controllers(mut self) -> Self {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig(Who::Admin).display()),
            format!("--service-account-private-key-file={}", self.path("service-accounts.key").display()),
            "--leader-elect=false".to_owned(),
            // Nodes are names here, without a kubelet that tells of their health.
            "--controllers=*,-node-lifecycle-controller".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let program = self.programs.join("kube-controller-manager");
        self.controller_manager =
            Some(Supervised::start(&program, &arguments, &self.path("kube-controller-manager.log")));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the program has a log")
    }

    /// `https://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kubeconfig(&self, who: Who) -> PathBuf {
        self.path(&format!("{who:?}.kubeconfig"))
    }

    fn write_kubeconfig(&self, who: Who) {
        std::fs::write(self.kubeconfig(who), kubeconfig(&self.url(), who.token())).expect("the folder is writable");
    }

    /// Stops kube-apiserver for good.
    pub(crate) fn stop_api_server(&mut self) {
        self.api_server.kill();
    }

    /// Writes a kubeconfig for a token.
    pub(crate) fn kubeconfig_for(&self, name: &str, token: &str) -> PathBuf {
        let file = self.path(&format!("{name}.kubeconfig"));
        std::fs::write(&file, kubeconfig(&self.url(), token)).expect("the folder is writable");
        file
    }

    /// Runs kubectl as the administrator.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Said {
        self.kubectl_as(Who::Admin, arguments, "")
    }

    /// Runs kubectl as the administrator; it has to succeed.
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        let said = self.kubectl(arguments);
        assert!(said.success, "kubectl {arguments:?}: {}", said.stderr);
        said.stdout
    }

    /// `kubectl apply` of a manifest.
    pub(crate) fn apply(&self, manifest: &str) -> Said {
        self.kubectl_as(Who::Admin, &["apply", "-f", "-"], manifest)
    }

    /// `kubectl create` of a manifest, which takes generateName.
    pub(crate) fn create(&self, manifest: &str) -> Said {
        self.kubectl_as(Who::Admin, &["create", "-f", "-"], manifest)
    }

    /// A field of an object, as the API server has it.
    pub(crate) fn field(&self, object: &str, json_path: &str) -> String {
        self.must(&["get", object, "--output", &format!("jsonpath={json_path}")])
    }

    /// Runs kubectl.
    pub(crate) fn kubectl_as(&self, who: Who, arguments: &[&str], input: &str) -> Said {
        use std::io::Write as _;
        let mut child = self
            .command("kubectl", who)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        // A command that fails before it reads closes its end, which is no fault of this test.
        let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("kubectl says text");
        Said { success: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A program that finds kubectl, and the control plane by it.
    pub(crate) fn command(&self, program: &str, who: Who) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let program = if program.contains('/') { PathBuf::from(program) } else { self.programs.join(program) };
        let mut command = Command::new(program);
        command
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("KUBECONFIG", self.kubeconfig(who))
            .env("HOME", self.folder.path());
        command
    }
}

/// A kubeconfig for one API server and one token.
pub(crate) fn kubeconfig(url: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: \"{url}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: test, user: {{token: {token}}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n"
    )
}

fn start_etcd(programs: &Path, folder: &Path, port: u16) -> Supervised {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", free_port()));
    let arguments = [
        "--unsafe-no-fsync".to_owned(),
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=error".to_owned(),
    ];
    Supervised::start(&programs.join("etcd"), &arguments, &folder.join("etcd.log"))
}

fn start_api_server(programs: &Path, folder: &Path, etcd_port: u16, port: u16, more: &[&str]) -> Supervised {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("api-server-certificates")),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        // It marks every new node as not ready, until the node's kubelet says otherwise.
        "--disable-admission-plugins=TaintNodesByCondition".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    arguments.extend(more.iter().map(|&argument| argument.to_owned()));
    Supervised::start(&programs.join("kube-apiserver"), &arguments, &folder.join("kube-apiserver.log"))
}
