//! `deploy/`: accepted by the API server, and fit for the namespace that it makes.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Who};

fn rendered(plane: &ControlPlane, folder: &str) -> String {
    plane.must(&["kustomize", &format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"))])
}

#[test]
fn every_file_is_accepted() {
    let plane = ControlPlane::start();
    plane.must(&["create", "namespace", "security-system"]);
    for folder in ["deploy", "deploy/single-zone", "deploy/registration", "deploy/cert-manager/registration"] {
        let arguments = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
        let said = plane.kubectl_as(Who::Admin, &arguments, &rendered(&plane, folder));
        assert!(said.success, "{folder}: {}", said.stderr);
        assert_eq!(said.stderr, "", "{folder} is accepted without a warning");
    }
}

#[test]
fn the_quota_component_goes_with_every_installation() {
    let plane = ControlPlane::start();
    plane.must(&["create", "namespace", "security-system"]);
    let root = env!("CARGO_MANIFEST_DIR");
    for folder in ["deploy", "deploy/single-zone", "deploy/cert-manager"] {
        // kustomize takes relative paths only.
        let around = tempfile::TempDir::new_in(root.to_owned() + "/target").expect("a temporary folder");
        let text = format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
             resources: [../../{folder}]\ncomponents: [../../deploy/quota]\n"
        );
        std::fs::write(around.path().join("kustomization.yaml"), text).expect("the folder is writable");
        let rendered = plane.must(&["kustomize", around.path().to_str().expect("the path is text")]);
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&rendered).expect("YAML");
        // Of a kind that only cert-manager brings.
        documents.retain(|document| document["apiVersion"] != "cert-manager.io/v1");
        let deployment = documents.iter().find(|document| document["kind"] == "Deployment").expect("a Deployment");
        assert_eq!(deployment["spec"]["template"]["spec"]["automountServiceAccountToken"], true, "{folder}");
        let role = |document: &Value| {
            document["kind"] == "ClusterRole" && document["metadata"]["name"] == "podgate-namespace-quota"
        };
        assert!(documents.iter().any(role), "{folder}");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        let arguments = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
        let said = plane.kubectl_as(Who::Admin, &arguments, &list.to_string());
        assert!(said.success, "{folder}: {}", said.stderr);
        assert_eq!(said.stderr, "", "{folder} is accepted without a warning");
    }
}

#[test]
fn the_servers_own_pod_is_restricted_and_in_order() {
    let cluster = Cluster::start();
    let plane = &cluster.plane;
    // Where Pod Security is enforced as in security-system, and podgate is asked besides.
    plane.must(&["create", "namespace", "strict"]);
    plane.must(&["label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted"]);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&rendered(plane, "deploy")).expect("YAML");
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").expect("a Deployment");
    let mut spec = deployment["spec"]["template"]["spec"].clone();
    spec["serviceAccountName"] = json!("default");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server", "namespace": "strict"}, "spec": spec,
    });
    plane.must(&["--namespace=strict", "create", "serviceaccount", "default"]);
    let said = plane.create(&pod.to_string());
    assert!(said.success, "{}", said.stderr);
    assert!(!said.stderr.contains("Warning"), "{}", said.stderr);
    let stored = plane.must(&["--namespace=strict", "get", "pod", "server", "--output=json"]);
    let stored: Value = serde_json::from_str(&stored).expect("kubectl prints the object");
    for field in ["args", "image", "resources", "securityContext"] {
        let written = &spec["containers"][0][field];
        assert_eq!(&stored["spec"]["containers"][0][field], written, "podgate had to change its own pod: {field}");
    }
    assert_eq!(stored["spec"]["securityContext"], spec["securityContext"]);
}
