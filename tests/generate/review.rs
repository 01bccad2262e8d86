//! Reviews, as kube-apiserver sends them.

use serde_json::{Value, json};

/// A review of a pod, as kube-apiserver sends it.
pub(crate) fn review(operation: &str, object: &Value, old_object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "00000000-0000-4000-8000-000000000000",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "team-a",
            "operation": operation,
            "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": old_object,
        },
    })
}
