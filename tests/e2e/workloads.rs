//! Workloads: a warning for their author, and the pods that controllers make of them.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::process::eventually;

/// An object of every kind that carries a template, with this image.
fn workloads(image: &str) -> Vec<Value> {
    let labels = json!({"app": "w"});
    let template = |restart: &str| {
        json!({
            "metadata": {"labels": labels},
            "spec": {"restartPolicy": restart, "containers": [{"name": "app", "image": image}]},
        })
    };
    let object = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec});
    let always = json!({"selector": {"matchLabels": labels}, "template": template("Always")});
    let job = json!({"template": template("Never")});
    vec![
        object("apps/v1", "Deployment", always.clone()),
        object("apps/v1", "ReplicaSet", always.clone()),
        object("apps/v1", "StatefulSet", always.clone()),
        object("apps/v1", "DaemonSet", always),
        object("v1", "ReplicationController", json!({"selector": labels, "template": template("Always")})),
        object("batch/v1", "Job", job.clone()),
        object("batch/v1", "CronJob", json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}})),
        json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "w"}, "template": template("Always")}),
    ]
}

#[test]
fn a_template_that_violates_is_a_warning_for_every_kind() {
    let cluster = Cluster::start();
    for object in workloads("app:latest") {
        let kind = object["kind"].as_str().expect("a kind");
        let said = cluster.plane.apply(&object.to_string());
        assert!(said.success, "{kind}: {}", said.stderr);
        let place = match kind {
            "CronJob" => "spec.jobTemplate.spec.template.",
            "PodTemplate" => "template.",
            _ => "spec.template.",
        };
        let warning =
            format!("Warning: imageTag: container \"app\" ({place}spec.containers[0].image) is \"app:latest\"");
        assert!(said.stderr.contains(&warning), "{kind}: {}", said.stderr);
    }
    // Scaling does not change the template, so that nobody is asked.
    let said = cluster.plane.kubectl(&["scale", "deployment/w", "--replicas=0"]);
    assert!(said.success && !said.stderr.contains("Warning"), "{}", said.stderr);
}

#[test]
fn the_pods_that_controllers_make_are_hardened() {
    let cluster = Cluster::on(ControlPlane::start().with_controllers());
    let plane = &cluster.plane;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert!(plane.create(&node.to_string()).success);
    for (index, mut object) in workloads("app:1").into_iter().enumerate() {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        if kind == "PodTemplate" {
            continue;
        }
        // Each with a label of its own, so that no controller takes another's pods.
        let label = format!("w{index}");
        let text = object.to_string().replace("\"app\":\"w\"", &format!("\"app\":\"{label}\""));
        object = serde_json::from_str(&text).expect("JSON");
        object["metadata"]["name"] = json!(label);
        let said = plane.apply(&object.to_string());
        assert!(said.success && !said.stderr.contains("Warning"), "{kind}: {}", said.stderr);
        if kind == "CronJob" {
            plane.must(&["create", "job", "run", &format!("--from=cronjob/{label}")]);
        }
        let selector = format!("app={label}");
        let contexts = eventually(&format!("a pod of the {kind}"), || {
            let path = "jsonpath={.items[0].spec.containers[0].securityContext}";
            let said = plane.kubectl(&["get", "pods", "--selector", &selector, "--output", path]);
            Some(said.stdout).filter(|stdout| said.success && !stdout.is_empty())
        });
        assert_eq!(contexts, r#"{"allowPrivilegeEscalation":false,"runAsNonRoot":true}"#, "{kind}");
    }
}

#[test]
fn a_refused_pod_is_explained_in_the_events() {
    let cluster = Cluster::on(ControlPlane::start().with_controllers());
    let deployment = workloads("app:latest").remove(0);
    assert!(cluster.plane.apply(&deployment.to_string()).success);
    let message = eventually("an event of the ReplicaSet", || {
        let events = cluster.plane.must(&[
            "get",
            "events",
            "--field-selector=reason=FailedCreate,involvedObject.kind=ReplicaSet",
            "--output=jsonpath={.items[0].message}",
        ]);
        Some(events).filter(|events| !events.is_empty())
    });
    assert!(
        message.contains("breaks 1 policy\nimageTag: container \"app\" (spec.containers[0].image) is \"app:latest\""),
        "{message}"
    );
}
