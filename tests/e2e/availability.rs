//! Replicas that come and go, while pods are created without pause.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::balancer::{Backend, Balancer};
use super::client::client;
use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Who};
use super::process::eventually;
use super::registration::{register, until_in_force};
use super::replica::{Replica, make_certificates};

/// How many pods are created at a time.
const AT_A_TIME: usize = 100;
/// The fewest creates that tell something.
const CREATES_MIN: usize = 5_000;

/// Three replicas behind a balancer, and a control plane that asks them.
struct Service {
    plane: ControlPlane,
    balancer: Balancer,
    replicas: Vec<Replica>,
    certs: PathBuf,
}

impl Service {
    fn start() -> Self {
        let plane = ControlPlane::start();
        let certs = make_certificates(&plane.path(""));
        let balancer = Balancer::start();
        let replicas = (0..3).map(|_| Replica::start(&certs)).collect();
        let service = Self { plane, balancer, replicas, certs };
        service.publish();
        register(&service.plane, service.balancer.addr, &service.certs.join("ca.crt"));
        service
    }

    fn publish(&self) {
        let backend = |replica: &Replica| Backend { addr: replica.addr, admin_addr: replica.admin_addr() };
        self.balancer.set(self.replicas.iter().map(backend).collect());
    }

    /// Replaces one replica as a rolling update does: a new one first, then SIGTERM for the old one.
    fn replace_first(&mut self) {
        let new = Replica::start(&self.certs);
        eventually("the new replica is ready", || new.is_ready().then_some(()));
        self.replicas.push(new);
        self.publish();
        let status = self.replicas.remove(0).terminate();
        assert!(status.success(), "a replica that is told to stop ends with 0: {status}");
        self.publish();
    }
}

/// What came of the creates.
#[derive(Default)]
struct Load {
    created: AtomicUsize,
    failed: AtomicUsize,
    stop: AtomicBool,
}

/// Creates pods, many at a time over connections of their own, until it is told to stop; every
/// pod goes away again, so that the API server is not full in the end.
async fn create_without_pause(plane_url: String, load: Arc<Load>) {
    let mut tasks = Vec::new();
    for task in 0..AT_A_TIME {
        let load = Arc::clone(&load);
        let client = client(&plane_url);
        tasks.push(tokio::spawn(async move {
            let pods: Api<Pod> = Api::namespaced(client, "default");
            let mut number = 0;
            while !load.stop.load(Ordering::Relaxed) {
                number += 1;
                let pod = json!({
                    "metadata": {"name": format!("load-{task}-{number}")},
                    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                });
                let pod: Pod = serde_json::from_value(pod).expect("a pod");
                match pods.create(&PostParams::default(), &pod).await {
                    Ok(created) => {
                        let limits = created.spec.and_then(|spec| spec.containers[0].resources.clone()?.limits);
                        assert!(limits.is_some(), "a pod that was let in is hardened");
                        load.created.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        if load.failed.fetch_add(1, Ordering::Relaxed) < 5 {
                            println!("a create failed: {error}");
                        }
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("no task panics");
    }
}

/// Runs `disturb` while pods are created, and tells what came of the creates.
fn under_load(service: &mut Service, creates_min: usize, disturb: impl FnOnce(&mut Service)) -> (usize, usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let load = Arc::new(Load::default());
    let running = runtime.spawn(create_without_pause(service.plane.url(), Arc::clone(&load)));
    eventually("creates begin", || (load.created.load(Ordering::Relaxed) > AT_A_TIME).then_some(()));
    disturb(service);
    eventually("enough creates", || (load.created.load(Ordering::Relaxed) >= creates_min).then_some(()));
    load.stop.store(true, Ordering::Relaxed);
    runtime.block_on(running).expect("the load ends");
    (load.created.load(Ordering::Relaxed), load.failed.load(Ordering::Relaxed))
}

#[test]
fn a_rolling_restart_loses_no_request() {
    let mut service = Service::start();
    let (created, failed) = under_load(&mut service, CREATES_MIN, |service| {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(500));
            service.replace_first();
        }
    });
    println!("rolling restart of three replicas: {created} pods created, {failed} failed");
    assert_eq!(failed, 0);
}

#[test]
fn a_replica_killed_hard_costs_what_it_had_in_hand() {
    let mut service = Service::start();
    let (created, failed) = under_load(&mut service, 2_000, |service| {
        std::thread::sleep(Duration::from_millis(500));
        service.replicas.remove(0).kill();
        service.publish();
    });
    println!("one of three replicas killed: {created} pods created, {failed} failed");
    assert!(failed <= 3 * AT_A_TIME, "{failed} creates failed, more than it can have had in hand");
}

#[test]
fn with_no_replica_left_the_cluster_can_be_mended() {
    let pod = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "finalizers": ["example.com/wait"]},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        })
        .to_string()
    };
    let plane = ControlPlane::start();
    plane.must(&["create", "namespace", "security-system"]);
    plane.must(&["--namespace=security-system", "create", "serviceaccount", "default"]);
    assert!(plane.create(&pod("old", "default")).success);
    let Cluster { plane, replica } = Cluster::on(plane);
    let addr = replica.addr;
    replica.kill();

    // Fail closed.
    let said = plane.create(&pod("new", "default"));
    assert!(said.stderr.contains("failed calling webhook \"pod-mutator.security.example.com\""), "{}", said.stderr);
    // What is there can still be labelled, deleted and finalized.
    plane.must(&["label", "pod", "old", "team=a"]);
    plane.must(&["delete", "pod", "old", "--wait=false", "--now"]);
    plane.must(&[
        "patch",
        "pod",
        "old",
        "--type=json",
        "--patch",
        r#"[{"op": "remove", "path": "/metadata/finalizers"}]"#,
    ]);
    assert!(!plane.kubectl(&["get", "pod", "old"]).success);
    // The webhook's own namespace is left out, so that it can come back.
    assert!(plane.create(&pod("webhook-server", "security-system")).success);

    // The emergency exit needs no server.
    let script = |name: &str| {
        let path = format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"));
        let output = plane.command(&path, Who::Admin).output().expect("the script runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    script("break-glass.sh");
    eventually("pods are created again", || plane.create(&pod("free", "default")).success.then_some(()));
    script("break-glass.sh");

    // And back: with the CA of the Secret, as it was; then with a server that is there.
    let certs = plane.path("certs");
    let from = |name: &str| format!("--from-file={name}={}", certs.join(name).display());
    plane.must(&[
        "--namespace=security-system",
        "create",
        "secret",
        "generic",
        "webhook-tls",
        "--type=kubernetes.io/tls",
        &from("tls.crt"),
        &from("tls.key"),
        &from("ca.crt"),
    ]);
    script("register.sh");
    let bundle = "{.webhooks[0].clientConfig.caBundle}";
    let mutator = plane.field("mutatingwebhookconfiguration/pod-security-mutator", bundle);
    let secret = plane.must(&[
        "--namespace=security-system",
        "get",
        "secret",
        "webhook-tls",
        "--output=jsonpath={.data.ca\\.crt}",
    ]);
    assert_eq!(mutator, secret);
    let _back = Replica::start_with(&certs, &addr.to_string(), &["--http1-only"]);
    register(&plane, addr, &certs.join("ca.crt"));
    until_in_force(&plane);
}
