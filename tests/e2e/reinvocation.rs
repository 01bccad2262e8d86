//! Another webhook that adds a container after podgate: podgate is asked again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podgate::admission::{Answer, Verdict};
use podgate::certs::ServerCertificate;
use podgate::server::{Limits, Server, Settings};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::process::eventually;
use super::replica::make_certificates;

/// A webhook that adds a container to every pod that does not have it yet.
fn injector(body: &[u8]) -> Answer {
    let review: Value = serde_json::from_slice(body).expect("a review");
    let containers = review["request"]["object"]["spec"]["containers"].as_array().expect("containers");
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if !containers.iter().any(|container| container["name"] == "injected") {
        let container = json!({"name": "injected", "image": "injected:1"});
        let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": container}]).to_string();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch));
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Answer {
        status: 200,
        body: review.to_string().into_bytes(),
        verdict: Verdict::Allowed,
        operation: "CREATE",
        resource: "pods",
        violations: Vec::new(),
        event: None,
    }
}

/// Has the API server call the injector after podgate; it goes on as long as the runtime does.
pub(crate) fn register_injector(plane: &ControlPlane, runtime: &Runtime) {
    std::fs::create_dir(plane.path("other")).expect("the folder is writable");
    let certs = make_certificates(&plane.path("other"));
    let certificate = ServerCertificate::from_files(&certs.join("tls.crt"), &certs.join("tls.key")).expect("a pair");
    let any = "127.0.0.1:0".parse().expect("an address");
    let settings = Settings {
        addr: any,
        admin_addr: any,
        http1_only: true,
        drain_delay: std::time::Duration::ZERO,
        clients: None,
        limits: Limits::default(),
    };
    let admit = Arc::new(|_, body: &[u8]| injector(body));
    let server = runtime.block_on(Server::bind(settings, Some(&certificate), admit)).expect("a free port");
    let url = format!("https://{}/mutate", server.addr());
    runtime.spawn(server.run(std::future::pending()));
    // Webhook configurations are called in the order of their names.
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "z-injector"},
        "webhooks": [{
            "name": "injector.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(std::fs::read(certs.join("ca.crt")).expect("a file"))},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    });
    assert!(plane.apply(&configuration.to_string()).success);
}

/// Creates pods until one comes that the injector has seen: its name.
pub(crate) fn injected_pod(cluster: &Cluster, spec: &Value) -> String {
    let mut count = 0;
    eventually("the injector is called", || {
        count += 1;
        let name = format!("pod-{count}");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        cluster.create(&pod.to_string());
        let names = cluster.plane.field(&format!("pod/{name}"), "{.spec.containers[*].name}");
        names.split(' ').any(|container| container == "injected").then_some(name)
    })
}

#[test]
fn a_container_that_another_webhook_adds_is_hardened_too() {
    let runtime = Runtime::new().expect("a runtime");
    let cluster = Cluster::start();
    let plane = &cluster.plane;
    register_injector(plane, &runtime);
    let name = injected_pod(&cluster, &json!({"containers": [{"name": "app", "image": "app:1"}]}));
    let pod = format!("pod/{name}");
    assert_eq!(
        plane.field(&pod, "{.spec.containers[1].securityContext}"),
        r#"{"allowPrivilegeEscalation":false,"runAsNonRoot":true}"#
    );
    assert_eq!(plane.field(&pod, "{.spec.containers[1].resources.limits}"), r#"{"cpu":"1","memory":"1Gi"}"#);
}
