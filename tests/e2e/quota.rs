//! The quotas of `namespaceQuota`: kept by replicas that may do what `deploy/quota/rbac.yaml` allows and
//! nothing else, and counted by the API server.

use std::path::PathBuf;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use super::client::client;
use super::control_plane::{ControlPlane, kubeconfig};
use super::process::{eventually, free_port};
use super::registration::register;
use super::replica::{Replica, make_certificates};

const NAME: &str = "resourcequota/podgate-namespace-quota";
const IN_SYNC: &str = "podgate_namespace_quotas_in_sync";

/// A control plane where podgate's ServiceAccount may keep quotas, and replicas that run as it.
struct Kept {
    // In the order in which they end.
    replicas: Vec<Replica>,
    configuration: PathBuf,
    plane: ControlPlane,
}

impl Kept {
    fn start(configuration: &str) -> Self {
        let plane = ControlPlane::start().with_controllers();
        let kubeconfig = account(&plane);
        grant(&plane);
        let file = plane.path("podgate.yaml");
        std::fs::write(&file, configuration).expect("the folder is writable");
        let certs = make_certificates(&plane.path(""));
        let replicas = (0..3).map(|_| Replica::configured(&certs, &kubeconfig, &file)).collect();
        Self { replicas, configuration: file, plane }
    }

    fn configure(&self, configuration: &str) {
        std::fs::write(&self.configuration, configuration).expect("the folder is writable");
    }

    fn in_namespace(&self, namespace: &str, arguments: &[&str]) -> String {
        self.plane.must(&[&["--namespace", namespace], arguments].concat())
    }

    /// `spec.hard` of podgate's quota, or nothing where there is none.
    fn hard(&self, namespace: &str) -> Option<String> {
        let arguments = ["--namespace", namespace, "get", NAME, "--output=jsonpath={.spec.hard}"];
        let said = self.plane.kubectl(&arguments);
        said.success.then_some(said.stdout)
    }

    /// Waits for podgate's quota to be so.
    fn until_hard(&self, namespace: &str, hard: Option<&str>) {
        let since = Instant::now();
        eventually(&format!("{hard:?} in {namespace}"), || (self.hard(namespace).as_deref() == hard).then_some(()));
        println!("{hard:?} in {namespace}: after {} ms", since.elapsed().as_millis());
    }

    /// How often all replicas together set or removed a quota.
    fn changes(&self) -> f64 {
        let of = |replica: &Replica, change: &str| {
            let name = format!("podgate_namespace_quota_changes_total{{change=\"{change}\"}}");
            replica.metric(&name).expect("it is counted")
        };
        self.replicas.iter().map(|replica| of(replica, "set") + of(replica, "removed")).sum()
    }
}

/// podgate's ServiceAccount, which may do nothing yet: a kubeconfig for it.
fn account(plane: &ControlPlane) -> PathBuf {
    for file in ["namespace.yaml", "service-account.yaml"] {
        let path = format!("{}/deploy/base/{file}", env!("CARGO_MANIFEST_DIR"));
        plane.must(&["--namespace=security-system", "apply", "-f", &path]);
    }
    let token = plane.must(&["--namespace=security-system", "create", "token", "podgate"]);
    plane.kubeconfig_for("podgate", &token)
}

fn grant(plane: &ControlPlane) {
    plane.must(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/quota/rbac.yaml")]);
}

fn quota(pods: u32, namespaces: &str) -> String {
    format!("namespaceQuota: {{ pods: {pods}, namespaces: [{namespaces}] }}\n")
}

/// Creates pods from many clients at once: how many were created, and why the others were not.
async fn create_at_once(url: String, clients: usize, each: usize) -> (usize, Vec<String>) {
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let pods = Api::<Pod>::namespaced(client(&url), "team-a");
            tokio::spawn(async move {
                let mut refused = Vec::new();
                for _ in 0..each {
                    let pod = json!({
                        "metadata": {"generateName": "pod-"},
                        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                    });
                    let pod: Pod = serde_json::from_value(pod).expect("a pod");
                    if let Err(error) = pods.create(&PostParams::default(), &pod).await {
                        refused.push(error.to_string());
                    }
                }
                refused
            })
        })
        .collect();
    let mut refused = Vec::new();
    for task in tasks {
        refused.extend(task.await.expect("no task panics"));
    }
    let pods = Api::<Pod>::namespaced(client(&url), "team-a").list(&ListParams::default()).await;
    (pods.expect("they can be listed").items.len(), refused)
}

#[test]
fn the_fifty_first_pod_is_refused_whoever_asks() {
    let kept = Kept::start(include_str!("../../examples/configurations/fifty-pods-of-two-cores.yaml"));
    kept.plane.must(&["create", "namespace", "team-a"]);
    kept.until_hard("team-a", Some(r#"{"pods":"50"}"#));
    eventually("kube-controller-manager counts", || {
        let used = kept.in_namespace("team-a", &["get", NAME, "--output=jsonpath={.status.used}"]);
        let has_account = kept.plane.kubectl(&["--namespace=team-a", "get", "serviceaccount", "default"]).success;
        (used == r#"{"pods":"0"}"# && has_account).then_some(())
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (created, refused) = runtime.block_on(create_at_once(kept.plane.url(), 30, 4));
    println!("30 clients, 120 creates: {created} pods, {} refused", refused.len());
    assert_eq!(created + refused.len(), 120);
    // Under so many at once, one may also be refused for a conflict; none is one too many.
    assert!((40..=50).contains(&created), "{created} pods: {:?}", refused.first());
    let full = "exceeded quota: podgate-namespace-quota, requested: pods=1, used: pods=50, limited: pods=50";
    let (created, refused) = runtime.block_on(create_at_once(kept.plane.url(), 1, 20));
    assert!(created == 50 && refused.last().is_some_and(|error| error.contains(full)), "{created} pods: {refused:?}");
}

#[test]
fn quotas_follow_namespaces_and_the_configuration() {
    let kept = Kept::start(&quota(50, "\"team-*\""));
    // Somebody else's, of another name and of podgate's own.
    kept.plane.must(&["create", "namespace", "team-foreign"]);
    kept.until_hard("team-foreign", Some(r#"{"pods":"50"}"#));
    kept.in_namespace("team-foreign", &["create", "quota", "theirs", "--hard=pods=3"]);
    kept.plane.must(&["create", "namespace", "other"]);
    kept.in_namespace("other", &["create", "quota", "podgate-namespace-quota", "--hard=pods=7"]);

    kept.plane.must(&["create", "namespace", "team-a"]);
    kept.until_hard("team-a", Some(r#"{"pods":"50"}"#));
    is_put_back(&kept);
    follows_reloads(&kept);
    assert_eq!(kept.hard("other").as_deref(), Some(r#"{"pods":"7"}"#));
    assert_eq!(
        kept.in_namespace("team-foreign", &["get", "quota", "theirs", "--output=jsonpath={.spec.hard}"]),
        r#"{"pods":"3"}"#
    );
    for replica in &kept.replicas {
        for operation in ["read_namespaces", "read_quotas", "write_quota", "remove_quota"] {
            let errors = format!("podgate_cluster_errors_total{{operation=\"{operation}\"}}");
            assert!(replica.metric(&errors).is_some_and(|count| count < 0.5), "{operation} is granted");
        }
        assert!(replica.is_ready());
    }
}

/// Deleted, edited, or robbed of its label.
fn is_put_back(kept: &Kept) {
    kept.in_namespace("team-a", &["delete", NAME]);
    kept.until_hard("team-a", Some(r#"{"pods":"50"}"#));
    kept.in_namespace("team-a", &["patch", NAME, "--patch", r#"{"spec": {"hard": {"pods": "500"}}}"#]);
    kept.until_hard("team-a", Some(r#"{"pods":"50"}"#));
    kept.in_namespace("team-a", &["label", NAME, "app.kubernetes.io/managed-by-"]);
    eventually("the label is back", || {
        let labels = kept.in_namespace("team-a", &["get", NAME, "--output=jsonpath={.metadata.labels}"]);
        labels.contains(r#""app.kubernetes.io/managed-by":"podgate""#).then_some(())
    });
}

fn follows_reloads(kept: &Kept) {
    kept.configure(&quota(60, "\"team-*\""));
    kept.until_hard("team-a", Some(r#"{"pods":"60"}"#));
    // All namespaces, but the cluster's own and podgate's.
    kept.configure(&quota(60, "\"*\""));
    kept.until_hard("default", Some(r#"{"pods":"60"}"#));
    for replica in &kept.replicas {
        let foreign = "podgate_namespace_quotas{state=\"foreign\"}";
        eventually("the foreign quota is counted", || (replica.metric(foreign)? > 0.5).then_some(()));
        eventually("all is done", || (replica.metric(IN_SYNC)? > 0.5).then_some(()));
    }
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "security-system"] {
        assert_eq!(kept.hard(namespace), None, "{namespace}");
    }
    let before = kept.changes();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!((kept.changes() - before).abs() < 0.5, "what is right is written no more");

    kept.configure(&quota(60, "team-foreign"));
    kept.until_hard("team-a", None);
    kept.until_hard("default", None);
    assert_eq!(kept.hard("team-foreign").as_deref(), Some(r#"{"pods":"60"}"#));
    kept.configure("# none\n");
    kept.until_hard("team-foreign", None);
}

/// One that somebody makes while podgate is about to, with the same in it.
#[test]
fn a_quota_that_somebody_else_made_a_moment_ago_stays_theirs() {
    let kept = Kept::start(&quota(5, "\"team-*\""));
    let theirs = (0..30_u64).filter(|index| {
        let namespace = format!("team-{index}");
        kept.plane.must(&["create", "namespace", &namespace]);
        std::thread::sleep(std::time::Duration::from_millis(index * 10));
        let create = ["--namespace", &namespace, "create", "quota", "podgate-namespace-quota", "--hard=pods=5"];
        kept.plane.kubectl(&create).success
    });
    let theirs: Vec<String> = theirs.map(|index| format!("team-{index}")).collect();
    println!("{} of 30 quotas are not podgate's", theirs.len());
    for replica in &kept.replicas {
        eventually("all is done", || (replica.metric(IN_SYNC)? > 0.5).then_some(()));
    }
    for namespace in &theirs {
        let whose = "--output=jsonpath={.metadata.labels}{.metadata.managedFields[*].manager}";
        let said = kept.in_namespace(namespace, &["get", NAME, whose, "--show-managed-fields"]);
        assert!(!said.contains("podgate"), "{namespace}: {said}");
    }
    kept.configure("# none\n");
    for index in 0..30_u64 {
        let namespace = format!("team-{index}");
        let hard = theirs.contains(&namespace).then_some(r#"{"pods":"5"}"#);
        kept.until_hard(&namespace, hard);
    }
}

#[test]
fn what_keeps_podgate_from_it_keeps_nobody_waiting() {
    let plane = ControlPlane::start();
    let (podgate, certs) = (account(&plane), make_certificates(&plane.path("")));
    let configuration = plane.path("podgate.yaml");
    std::fs::write(&configuration, quota(50, "default")).expect("the folder is writable");
    // One that may do nothing, and one that finds no API server: both answer reviews.
    let forbidden = Replica::configured(&certs, &podgate, &configuration);
    let nowhere = plane.path("nowhere.kubeconfig");
    let url = format!("https://127.0.0.1:{}", free_port());
    std::fs::write(&nowhere, kubeconfig(&url, "token")).expect("the folder is writable");
    let alone = Replica::configured(&certs, &nowhere, &configuration);
    for replica in [&forbidden, &alone] {
        for operation in ["read_namespaces", "read_quotas"] {
            let errors = format!("podgate_cluster_errors_total{{operation=\"{operation}\"}}");
            eventually("the error is counted", || (replica.metric(&errors)? > 0.5).then_some(()));
        }
        assert!(replica.is_ready() && replica.metric(IN_SYNC).is_some_and(|is| is < 0.5));
        register(&plane, replica.addr, &certs.join("ca.crt"));
    }
    grant(&plane);
    eventually("it is kept once it is allowed", || (forbidden.metric(IN_SYNC)? > 0.5).then_some(()));
    let hard = plane.field(NAME, "{.spec.hard}");
    assert_eq!(hard, r#"{"pods":"50"}"#);

    let mut plane = plane;
    plane.stop_api_server();
    eventually("the API server is missed", || (forbidden.metric(IN_SYNC)? < 0.5).then_some(()));
    assert!(forbidden.is_ready() && forbidden.is_alive());
}
