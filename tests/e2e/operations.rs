//! What is done to pods that are there: by their authors, by controllers, by the kubelet.

use serde_json::json;

use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Who};

const GOOD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "good"},
    "spec": {"containers": [{"name": "app", "image": "app:1", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]}}"#;

/// A pod from before podgate: privileged, in the node's network, with a finalizer.
const OLD: &str = r#"{"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "old", "finalizers": ["example.com/wait"]},
    "spec": {"hostNetwork": true, "containers": [{"name": "app", "image": "app", "securityContext": {"privileged": true}}]}}"#;

fn debug_container(name: &str, image: &str, privileged: bool) -> String {
    json!({"spec": {"ephemeralContainers": [
        {"name": name, "image": image, "securityContext": {"privileged": privileged}, "targetContainerName": "app"},
    ]}})
    .to_string()
}

fn debug(cluster: &Cluster, pod: &str, patch: &str) -> super::control_plane::Said {
    cluster.plane.kubectl(&["patch", "pod", pod, "--subresource=ephemeralcontainers", "--patch", patch])
}

#[test]
fn a_debug_container_is_hardened_or_refused() {
    let cluster = Cluster::start();
    cluster.create(GOOD);
    let said = debug(&cluster, "good", &debug_container("shell", "busybox:1.36", false));
    assert!(said.success, "{}", said.stderr);
    let stored = |path: &str| cluster.plane.field("pod/good", &format!("{{.spec.ephemeralContainers[0].{path}}}"));
    assert_eq!(
        stored("securityContext"),
        r#"{"allowPrivilegeEscalation":false,"privileged":false,"runAsNonRoot":true}"#
    );
    assert_eq!(stored("resources"), "{}");

    let said = debug(&cluster, "good", &debug_container("root", "busybox:1.36", true));
    assert!(said.stderr.contains("privileged: ephemeral container \"root\""), "{}", said.stderr);
    let said = debug(&cluster, "good", &debug_container("newest", "busybox:latest", false));
    assert!(said.stderr.contains("imageTag: ephemeral container \"newest\""), "{}", said.stderr);

    // As people do it.
    let said = cluster.plane.kubectl(&["debug", "good", "--image=busybox", "--attach=false"]);
    assert!(said.stderr.contains("\"busybox\", which has no tag"), "{}", said.stderr);
    let said = cluster.plane.kubectl(&["debug", "good", "--image=busybox:1.36", "--attach=false"]);
    assert!(said.success, "{}", said.stderr);
}

#[test]
fn a_pod_that_violates_todays_policy_is_not_stuck() {
    let plane = ControlPlane::start();
    assert!(plane.create(OLD).success);
    let cluster = Cluster::on(plane);
    let plane = &cluster.plane;
    plane.must(&["label", "pod", "old", "team=a"]);
    plane.must(&["annotate", "pod", "old", "note=x"]);
    // A change of the spec that makes nothing worse is a warning; one that does is refused.
    let image = |image: &str| plane.kubectl(&["set", "image", "pod/old", &format!("app={image}")]);
    let said = image("app:1");
    assert!(said.success, "{}", said.stderr);
    assert!(said.stderr.contains("Warning: privileged: container \"app\""), "{}", said.stderr);
    let said = image("app:latest");
    assert!(!said.success && said.stderr.contains("breaks 1 policy\nimageTag: "), "{}", said.stderr);

    plane.must(&["delete", "pod", "old", "--wait=false", "--now"]);
    assert_ne!(plane.field("pod/old", "{.metadata.deletionTimestamp}"), "");
    plane.must(&[
        "patch",
        "pod",
        "old",
        "--type=json",
        "--patch",
        r#"[{"op": "remove", "path": "/metadata/finalizers"}]"#,
    ]);
    assert!(!plane.kubectl(&["get", "pod", "old"]).success);
}

#[test]
fn a_resize_is_judged_like_any_update() {
    let cluster = Cluster::start();
    cluster.create(GOOD);
    // The request too: podgate's limits made the pod Guaranteed, and a resize may not change that.
    let resources = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}});
    let patch = json!({"spec": {"containers": [{"name": "app", "resources": resources}]}}).to_string();
    cluster.plane.must(&["patch", "pod", "good", "--subresource=resize", "--patch", &patch]);
    assert_eq!(cluster.plane.field("pod/good", "{.spec.containers[0].resources.limits.cpu}"), "2");
    let asked = "podgate_requests_total{operation=\"UPDATE\",resource=\"pods/resize\",verdict=\"allowed\",webhook=\"validate\"}";
    assert!(cluster.replica.metric(asked).is_some_and(|count| count >= 1.0));
}

#[test]
fn eviction_exec_and_deletion_pass() {
    let cluster = Cluster::start();
    let plane = &cluster.plane;
    cluster.create(GOOD);
    // There is no kubelet to run it; podgate must not be the one that refuses.
    let said = plane.kubectl(&["exec", "good", "--", "true"]);
    assert!(!said.stderr.contains("security.example.com"), "{}", said.stderr);
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "good", "namespace": "default"}});
    let said = plane.kubectl_as(
        Who::Admin,
        &["create", "--raw", "/api/v1/namespaces/default/pods/good/eviction", "-f", "-"],
        &eviction.to_string(),
    );
    assert!(said.success, "{}", said.stderr);
    cluster.create(&GOOD.replace("\"good\"", "\"second\""));
    plane.must(&["delete", "pod", "second", "--now"]);
}

#[test]
fn a_mirror_pod_of_a_node_is_kept_as_it_is() {
    let cluster = Cluster::start();
    let plane = &cluster.plane;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
    assert!(plane.create(&node.to_string()).success);
    let uid = plane.field("node/node-1", "{.metadata.uid}");
    let mirror = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "proxy-node-1",
            "annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": uid, "controller": true}],
        },
        "spec": {"nodeName": "node-1", "hostNetwork": true, "containers": [{"name": "proxy", "image": "proxy"}]},
    });
    let said = plane.kubectl_as(Who::Node, &["create", "-f", "-"], &mirror.to_string());
    assert!(said.success, "{}", said.stderr);
    assert!(said.stderr.contains("Warning: hostNetwork: "), "{}", said.stderr);
    assert_eq!(plane.field("pod/proxy-node-1", "{.spec.containers[0].securityContext}"), "");
    // The annotation alone exempts nobody.
    let mut pretended = mirror;
    pretended["metadata"]["name"] = json!("pretended");
    let said = plane.create(&pretended.to_string());
    assert!(said.stderr.contains("imageTag"), "{}", said.stderr);
}
