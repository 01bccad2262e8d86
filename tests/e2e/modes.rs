//! Policies that are off by default, and the actions other than `deny`: what the API server makes of
//! warnings and audit annotations.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Who};
use super::pods::pod;
use super::process::eventually;
use super::registration;
use super::replica::{Replica, make_certificates};

const MODES: &str = r#"
validations:
  hostNetwork: { action: warn, message: "安全策略禁止使用 HostNetwork\nin {container} at {path}" }
  hostPath: { action: audit }
"#;

const STRICT: &str = r#"
validations:
  hostPID: { action: deny }
  hostIPC: { action: deny }
  hostPorts: { action: deny }
  imageTag: { requireDigest: true, allowedRegistries: [registry.example.com] }
  cpu: { action: deny, max: "2" }
  memory: { action: deny, max: 4Gi }
"#;

const MIRRORED: &str = r#"
mutations:
  images:
    mirrors: { docker.io: registry.example.com/hub }
    pins: { busybox: "1.37.0" }
  resources:
    limits: { cpu: "1", memory: 1Gi }
    requests: { cpu: 100m, memory: null }
"#;

/// A configured podgate on a control plane.
pub(crate) fn configured(plane: ControlPlane, configuration: &str) -> Cluster {
    let certs = make_certificates(&plane.path(""));
    let file = plane.path("podgate.yaml");
    std::fs::write(&file, configuration).expect("the folder is writable");
    let arguments = ["--http1-only", "--config", file.to_str().expect("the path is text")];
    let replica = Replica::start_with(&certs, "127.0.0.1:0", &arguments);
    registration::apply(&plane, replica.addr, &certs.join("ca.crt"));
    Cluster { plane, replica }
}

/// Waits until a pod that is refused is refused.
pub(crate) fn until_refused(cluster: &Cluster, manifest: &str) {
    eventually("podgate is asked", || {
        let dry = ["create", "--dry-run=server", "-f", "-"];
        let said = cluster.plane.kubectl_as(Who::Admin, &dry, manifest);
        said.stderr.contains("pod-validator.security.example.com").then_some(())
    });
}

#[test]
fn warnings_and_audit_annotations_arrive() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let policy = folder.path().join("policy.yaml");
    let log = folder.path().join("audit.log");
    let everything = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    std::fs::write(&policy, everything).expect("the folder is writable");
    let arguments =
        [format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
    let plane = ControlPlane::start_with(&arguments.each_ref().map(String::as_str));
    let cluster = configured(plane, MODES);
    let six: Value = (0..6).map(|index| json!({"name": format!("c{index}"), "image": "a:1"})).collect();
    until_refused(&cluster, &pod("probe", &json!({}), &json!({"containers": six})));

    let logs = json!({"hostNetwork": true, "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]});
    let said = cluster.plane.apply(&pod("web", &json!({}), &logs));
    // The API server drops a warning with a line break in it, so that podgate writes a space.
    let warning = "Warning: hostNetwork: 安全策略禁止使用 HostNetwork in pod at spec.hostNetwork\n";
    assert_eq!((said.success, said.stderr.as_str()), (true, warning));
    assert!(!cluster.plane.apply(&pod("refused", &json!({"image": "a"}), &json!({}))).success);

    let of = |name: &str, key: &str| annotation(&log, name, key);
    assert_eq!(of("web", "pod-validator.security.example.com/warned"), "hostNetwork");
    assert_eq!(of("web", "pod-validator.security.example.com/audited"), "hostPath");
    assert_eq!(of("web", "pod-mutator.security.example.com/patched"), "securityContext,resources");
    assert_eq!(of("refused", "pod-mutator.security.example.com/denied"), "imageTag");
}

/// An annotation of the event of a pod's creation.
fn annotation(log: &Path, pod: &str, key: &str) -> String {
    eventually(&format!("{key} of {pod} in the audit log"), || {
        let text = std::fs::read_to_string(log).expect("there is a log");
        // The last line may be half written.
        let mut events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let event = events.find(|event| {
            event["stage"] == "ResponseComplete" && event["verb"] == "create" && event["objectRef"]["name"] == pod
        })?;
        Some(event["annotations"][key].as_str().unwrap_or("nothing").to_owned())
    })
}

#[test]
fn mirrors_pins_and_requests_are_stored() {
    let cluster = configured(ControlPlane::start(), MIRRORED);
    until_refused(&cluster, &pod("probe", &json!({}), &json!({"hostNetwork": true})));
    let volume = json!({"volumes": [{"name": "art", "image": {"reference": "acme/art:1"}}]});
    cluster.create(&pod("web", &json!({"image": "busybox:latest"}), &volume));
    let stored = |path: &str| cluster.plane.field("pod/web", &format!("{{.spec.{path}}}"));
    assert_eq!(stored("containers[0].image"), "registry.example.com/hub/library/busybox:1.37.0");
    assert_eq!(stored("volumes[0].image.reference"), "registry.example.com/hub/acme/art:1");
    assert_eq!(
        stored("containers[0].resources"),
        r#"{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}}"#
    );
}

#[test]
fn a_stricter_configuration_holds() {
    let cluster = configured(ControlPlane::start(), STRICT);
    let image = format!("registry.example.com/app@sha256:{}", "a".repeat(64));
    let image = image.as_str();
    let strict = |container: &Value, spec: &Value| {
        let mut whole = json!({"image": image});
        for (key, value) in container.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        pod("strict", &whole, spec)
    };
    until_refused(&cluster, &strict(&json!({}), &json!({"hostPID": true})));
    let none = json!({});
    let amounts = |cpu: &str, memory: &str| json!({"resources": {"limits": {"cpu": cpu, "memory": memory}}});
    for (container, spec, line) in [
        (none.clone(), json!({"hostPID": true}), "hostPID: the pod (spec.hostPID) "),
        (none.clone(), json!({"hostIPC": true}), "hostIPC: the pod (spec.hostIPC) "),
        (
            json!({"ports": [{"containerPort": 80, "hostPort": 8080}]}),
            none.clone(),
            "hostPorts: container \"app\" (spec.containers[0].ports[0].hostPort) ",
        ),
        (
            json!({"image": "registry.example.com/app:1"}),
            none.clone(),
            "imageTag: container \"app\" (spec.containers[0].image) ",
        ),
        (
            json!({"image": image.replace("registry.example.com", "quay.io")}),
            none.clone(),
            "imageTag: container \"app\" (spec.containers[0].image) ",
        ),
        (amounts("2001m", "1Gi"), none.clone(), "cpu: "),
        (amounts("1", "4097Mi"), none.clone(), "memory: "),
        // The pod's level counts, not the sum.
        (amounts("1", "1Gi"), json!({"resources": {"limits": {"cpu": "3"}}}), "cpu: "),
    ] {
        let refused = cluster.refusal(&strict(&container, &spec));
        assert!(refused.contains(&format!("pod default/strict breaks 1 policy\n{line}")), "{line}: {refused}");
    }
    cluster.create(&strict(&amounts("2", "4Gi"), &none));
}
