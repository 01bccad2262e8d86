//! The webhook configurations of `deploy/registration`, with nothing changed but where podgate is.

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::process::eventually;

/// Both configurations as JSON documents, pointed at `addr`, with a caBundle or without.
pub(crate) fn documents(addr: SocketAddr, authority: Option<&Path>) -> Vec<Value> {
    let authority = authority.map(|file| STANDARD.encode(std::fs::read(file).expect("ca.crt is there")));
    ["mutating.yaml", "validating.yaml"]
        .into_iter()
        .map(|name| {
            let path = format!("{}/deploy/registration/{name}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).expect(&path);
            let mut document: Value = serde_saphyr::from_str(&text).expect(&path);
            for webhook in document["webhooks"].as_array_mut().expect("there are webhooks") {
                let path = webhook["clientConfig"]["service"]["path"].as_str().expect("a path").to_owned();
                webhook["clientConfig"] = json!({"url": format!("https://{addr}{path}")});
                if let Some(authority) = &authority {
                    webhook["clientConfig"]["caBundle"] = json!(authority);
                }
            }
            document
        })
        .collect()
}

/// Applies both.
pub(crate) fn apply(plane: &ControlPlane, addr: SocketAddr, authority: &Path) {
    for document in documents(addr, Some(authority)) {
        let said = plane.apply(&document.to_string());
        assert!(said.success, "{}", said.stderr);
    }
}

/// Applies both, and waits until the API server calls them.
pub(crate) fn register(plane: &ControlPlane, addr: SocketAddr, authority: &Path) {
    apply(plane, addr, authority);
    until_in_force(plane);
}

/// The API server takes a moment to see a configuration: waits until both webhooks refuse.
pub(crate) fn until_in_force(plane: &ControlPlane) {
    let refused = |image: &str, more: &str, by: &str| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "a", "image": image}], "hostNetwork": more == "hostNetwork"},
        });
        let said = plane.kubectl_as(
            super::control_plane::Who::Admin,
            &["create", "--dry-run=server", "-f", "-"],
            &pod.to_string(),
        );
        said.stderr.contains(by)
    };
    eventually("the mutating webhook is called", || refused("a", "", "pod-mutator.security.example.com").then_some(()));
    eventually("the validating webhook is called", || {
        refused("a:1", "hostNetwork", "pod-validator.security.example.com").then_some(())
    });
}
