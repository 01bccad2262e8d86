//! New pods: what is refused, with the whole message, and what is stored.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::client::client;
use super::cluster::Cluster;

/// A pod of one container, with more in its spec.
pub(crate) fn pod(name: &str, container: &Value, spec: &Value) -> String {
    let mut whole = json!({"name": "app", "image": "registry.example.com:5000/app:1.4.2"});
    merge(&mut whole, container);
    let mut object =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [whole]}});
    merge(&mut object["spec"], spec);
    object.to_string()
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

#[test]
fn all_violations_are_told_at_once_and_in_the_status_too() {
    let cluster = Cluster::start();
    let bad = pod(
        "bad",
        &json!({"image": "app:1"}),
        &json!({"hostNetwork": true, "volumes": [{"name": "l", "hostPath": {"path": "/etc"}}]}),
    );
    let message = cluster.refusal(&bad);
    assert!(message.contains("pod default/bad breaks 2 policies\nhostPath: ") && message.contains("\nhostNetwork: "));

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bad: Pod = serde_json::from_str(&bad).expect("a pod");
    let error = runtime.block_on(async {
        let pods: Api<Pod> = Api::default_namespaced(client(&cluster.plane.url()));
        pods.create(&PostParams::default(), &bad).await.expect_err("is refused")
    });
    let kube::Error::Api(status) = error else { panic!("not from the API server: {error}") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(message.contains(&status.message), "a client is told the same: {}", status.message);
    let fields: Vec<_> =
        status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["spec.volumes[0].hostPath.path", "spec.hostNetwork"]);
}

#[test]
fn what_is_allowed_is_stored_with_what_was_missing() {
    let cluster = Cluster::start();
    let plane = &cluster.plane;
    let hardened = r#"{"allowPrivilegeEscalation":false,"runAsNonRoot":true}"#;
    let stored = |name: &str, path: &str| plane.field(&format!("pod/{name}"), &format!("{{.spec.{path}}}"));

    cluster.create(&pod("plain", &json!({}), &json!({})));
    assert_eq!(stored("plain", "containers[0].securityContext"), hardened);
    assert_eq!(stored("plain", "containers[0].resources.limits"), r#"{"cpu":"1","memory":"1Gi"}"#);

    cluster.create(&pod("large", &json!({"resources": {"requests": {"cpu": "1500m", "memory": "3Gi"}}}), &json!({})));
    assert_eq!(stored("large", "containers[0].resources.limits"), r#"{"cpu":"1500m","memory":"3Gi"}"#);

    cluster.create(&pod(
        "usual-capability",
        &json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}),
        &json!({}),
    ));
    assert_eq!(stored("usual-capability", "containers[0].securityContext.allowPrivilegeEscalation"), "false");

    let digest = format!("app@sha256:{}", "a".repeat(64));
    cluster.create(&pod("digest", &json!({"image": digest}), &json!({})));

    let sidecar = json!({"initContainers": [
        {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
        {"name": "seed", "image": "seed:1", "securityContext": {"runAsUser": 1000}},
    ]});
    cluster.create(&pod("sidecar", &json!({}), &sidecar));
    assert_eq!(stored("sidecar", "initContainers[0].securityContext"), hardened);
    assert_eq!(stored("sidecar", "initContainers[*].resources.limits.cpu"), "1 1");
    assert_eq!(stored("sidecar", "initContainers[1].securityContext.runAsUser"), "1000");

    cluster.create(&pod("windows", &json!({}), &json!({"os": {"name": "windows"}})));
    assert_eq!(stored("windows", "containers[0].securityContext"), r#"{"runAsNonRoot":true}"#);

    let level = json!({"resources": {"requests": {"cpu": "2", "memory": "100Mi"}, "limits": {"memory": "200Mi"}}});
    cluster.create(&pod("pod-level", &json!({}), &level));
    assert_eq!(stored("pod-level", "resources.limits"), r#"{"cpu":"2","memory":"200Mi"}"#);
    assert_eq!(stored("pod-level", "containers[0].resources"), "{}");

    let volume = json!({"volumes": [{"name": "art", "image": {"reference": "quay.io/a/b:1"}}], "hostUsers": false});
    cluster.create(&pod("newer", &json!({"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}], "restartPolicy": "Never"}), &volume));
    assert_eq!(stored("newer", "hostUsers"), "false");
    assert_eq!(stored("newer", "containers[0].restartPolicyRules[0].exitCodes.values"), "[42]");
    assert_eq!(stored("newer", "containers[0].securityContext"), hardened);

    cluster.create(&pod(
        "shared",
        &json!({}),
        &json!({"volumes": [{"name": "s", "hostPath": {"path": "/data/shared/"}}]}),
    ));

    let mut generated: Value = serde_json::from_str(&pod("", &json!({}), &json!({}))).expect("JSON");
    generated["metadata"] = json!({"generateName": "web-"});
    cluster.create(&generated.to_string());
    generated["spec"]["containers"][0]["image"] = json!("app");
    let refused = cluster.refusal(&generated.to_string());
    assert!(refused.contains("pod default/web-* breaks 1 policy"), "{refused}");
}

#[test]
fn a_dry_run_is_answered_like_any_other() {
    let cluster = Cluster::start();
    let dry = |manifest: &str| {
        cluster.plane.kubectl_as(
            super::control_plane::Who::Admin,
            &["create", "--dry-run=server", "--output=json", "-f", "-"],
            manifest,
        )
    };
    let said = dry(&pod("dry", &json!({}), &json!({})));
    let object: Value = serde_json::from_str(&said.stdout).expect("kubectl prints the object");
    assert_eq!(object["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "1Gi"}));
    assert!(dry(&pod("dry", &json!({"image": "a"}), &json!({}))).stderr.contains("imageTag"));
    assert!(!cluster.plane.kubectl(&["get", "pod", "dry"]).success);
}

#[test]
fn the_api_server_may_ask_over_http2() {
    let plane = super::control_plane::ControlPlane::start();
    let certs = super::replica::make_certificates(&plane.path(""));
    let replica = super::replica::Replica::start_with(&certs, "127.0.0.1:0", &[]);
    super::registration::register(&plane, replica.addr, &certs.join("ca.crt"));
    let cluster = Cluster { plane, replica };
    cluster.create(&pod("plain", &json!({}), &json!({})));
    assert_eq!(cluster.plane.field("pod/plain", "{.spec.containers[0].resources.limits.cpu}"), "1");
    assert!(cluster.refusal(&pod("bad", &json!({"image": "a"}), &json!({}))).contains("imageTag"));
}

#[test]
fn metrics_tell_of_the_api_servers_requests() {
    let cluster = Cluster::start();
    cluster.create(&pod("plain", &json!({}), &json!({})));
    let patched =
        "podgate_requests_total{operation=\"CREATE\",resource=\"pods\",verdict=\"patched\",webhook=\"mutate\"}";
    assert!(cluster.replica.metric(patched).is_some_and(|count| count >= 1.0));
    assert!(cluster.replica.is_ready());
}
