//! podgate as `make deploy` installs it: the files and scripts of `deploy/` as they are, called through
//! its Service. A network namespace of its own gives every replica an address.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::control_plane::{ControlPlane, Said, Who};
use super::kubelet::Kubelet;
use super::load::under_load;
use super::process::{Supervised, command, eventually};

const NAMESPACE: &str = "security-system";
/// Of a network for documentation, which is nobody's. Both ends of the pair are in the namespace, so
/// that all addresses are on one machine that nothing leaves.
const NETWORK: &str = "
set -eu
ip link set lo up
ip link add name podgate0 type veth peer name podgate1
for host in $(seq 1 20); do ip address add 198.51.100.$host/24 dev podgate0; done
ip link set podgate0 up
ip link set podgate1 up
";
/// Replicas, those that a rollout adds, and those that are still stopping.
const ADDRESSES: std::ops::RangeInclusive<u8> = 2..=20;

#[test]
fn as_make_deploy_installs_it() {
    let possible = |script: &str| {
        Command::new("unshare")
            .args(["--net", "sh", "-c", script])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !possible(NETWORK) {
        println!("skipped: a network of its own needs root, unshare and ip (util-linux, iproute2)");
        return;
    }
    let mut inside = command(Path::new("unshare"));
    inside
        .args(["--net", "sh", "-c", &format!("{NETWORK}exec \"$@\""), "sh"])
        .arg(std::env::current_exe().expect("the test has a file"))
        .args(["--exact", "installed::inside_the_network", "--ignored", "--nocapture", "--test-threads=1"]);
    let status = Supervised::spawn(&mut inside).wait();
    assert!(status.success(), "{status}");
}

/// A cluster with nothing installed.
struct Bare {
    // In the order in which they end.
    _kubelet: Kubelet,
    plane: ControlPlane,
    deploy: PathBuf,
}

impl Bare {
    fn start() -> Self {
        let plane = ControlPlane::start_with(&["--advertise-address=198.51.100.1", "--enable-aggregator-routing=true"])
            .with_controllers();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
        assert!(plane.create(&node.to_string()).success);
        let addresses = ADDRESSES.map(|host| format!("198.51.100.{host}")).collect();
        let kubelet = Kubelet::start(plane.url(), NAMESPACE, addresses, plane.path("pods"));
        // A copy, which no one changes meanwhile.
        let copied = Command::new("cp")
            .args(["-R", concat!(env!("CARGO_MANIFEST_DIR"), "/deploy")])
            .arg(plane.path("deploy"))
            .status()
            .expect("cp runs");
        assert!(copied.success());
        let deploy = plane.path("deploy");
        Self { _kubelet: kubelet, plane, deploy }
    }

    /// Runs a script of `deploy/`.
    fn script(&self, name: &str, arguments: &[&str]) {
        let path = self.deploy.join(name);
        let mut script = self.plane.command(path.to_str().expect("the path is text"), Who::Admin);
        let output = script.args(arguments).output().expect("the script runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn install(&self) {
        self.script("install.sh", &[]);
    }

    fn create(&self, name: &str, image: &str) -> Said {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "app", "image": image}]},
        });
        self.plane.create(&pod.to_string())
    }

    fn until_in_force(&self) {
        eventually("podgate refuses", || self.create("probe", "app").stderr.contains("imageTag").then_some(()));
    }

    /// Every webhook's name and authority, and how often the configurations were changed.
    fn registered(&self) -> String {
        let path =
            "jsonpath={range .items[*]}{.metadata.generation}\n{range .webhooks[*]}{.name} {.clientConfig}\n{end}{end}";
        let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
        self.plane.must(&["get", kinds, "--output", path])
    }

    /// How many there are, those that are still stopping too.
    fn replicas(&self) -> usize {
        let path = "--output=jsonpath={.items[*].metadata.name}";
        self.plane.must(&["--namespace", NAMESPACE, "get", "pods", path]).split_whitespace().count()
    }

    fn in_namespace(&self, arguments: &[&str]) {
        self.plane.must(&[&["--namespace", NAMESPACE], arguments].concat());
    }
}

#[test]
#[ignore = "started by as_make_deploy_installs_it, in a network of its own"]
fn inside_the_network() {
    let cluster = Bare::start();
    cluster.install();
    cluster.until_in_force();
    hardened_or_refused(&cluster);
    installed_again_under_load(&cluster);
    comes_back_from_nothing(&cluster);
    leaves_and_returns(&cluster);
}

fn hardened_or_refused(cluster: &Bare) {
    let said = cluster.create("plain", "app:1");
    assert!(said.success, "{}", said.stderr);
    let context = cluster.plane.field("pod/plain", "{.spec.containers[0].securityContext}");
    assert_eq!(context, r#"{"allowPrivilegeEscalation":false,"runAsNonRoot":true}"#);
    let said = cluster.create("bad", "app:latest");
    assert!(said.stderr.contains("pod default/bad breaks 1 policy\nimageTag: "), "{}", said.stderr);
}

/// A second `make deploy` changes nothing, and a rollout loses no request.
fn installed_again_under_load(cluster: &Bare) {
    let before = cluster.registered();
    assert_eq!(before.matches("caBundle").count(), 3, "{before}");
    let (created, failed) = under_load(&cluster.plane.url(), 5_000, || {
        cluster.install();
        assert_eq!(cluster.registered(), before);
        cluster.in_namespace(&["rollout", "restart", "deployment/webhook-server"]);
        cluster.in_namespace(&["rollout", "status", "deployment/webhook-server", "--timeout=80s"]);
        eventually("the old replicas are gone", || (cluster.replicas() == 3).then_some(()));
    });
    println!("rollout of the deployment through its Service: {created} pods created, {failed} failed");
    assert_eq!(failed, 0);
}

/// With no replica left pods are refused, but podgate's own are not.
fn comes_back_from_nothing(cluster: &Bare) {
    cluster.in_namespace(&["scale", "deployment/webhook-server", "--replicas=0"]);
    cluster.in_namespace(&["wait", "pod", "--for=delete", "--selector=app=webhook-server", "--timeout=60s"]);
    let said = cluster.create("refused", "app:1");
    assert!(said.stderr.contains("failed calling webhook \"pod-mutator.security.example.com\""), "{}", said.stderr);
    cluster.in_namespace(&["scale", "deployment/webhook-server", "--replicas=3"]);
    cluster.in_namespace(&["rollout", "status", "deployment/webhook-server", "--timeout=80s"]);
    eventually("pods are created again", || cluster.create("again", "app:1").success.then_some(()));
}

/// The emergency exit and the way back.
fn leaves_and_returns(cluster: &Bare) {
    cluster.script("break-glass.sh", &[]);
    eventually("nobody is asked", || cluster.create("free", "app").success.then_some(()));
    cluster.script("register.sh", &[]);
    cluster.until_in_force();
    // What `make undeploy` does.
    cluster.script("break-glass.sh", &[]);
    cluster.plane.must(&["delete", "-k", cluster.deploy.to_str().expect("the path is text")]);
    assert!(!cluster.plane.kubectl(&["get", "namespace", NAMESPACE]).success);
}
