//! Configurations of the mutation `sidecars`. No validation may deny them in every pod, for then they
//! would be none: the images are pinned and from where they may come, whatever else is set.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

const DIGEST: &str = "sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765";

/// What a container has besides its name and image.
fn rest() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "{}",
            r#"{"resources": {"limits": {"cpu": "2000m", "memory": "2Gi"}, "requests": {"memory": 1024}}}"#,
            r#"{"resources": {"limits": {"cpu": 0.3}, "requests": {"cpu": "0.30"}}, "tty": false, "workingDir": ""}"#,
            r#"{"resources": {"requests": {"cpu": 3}}, "command": [], "args": ["a", "b"]}"#,
            r#"{"securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}}"#,
            r#"{"securityContext": {"privileged": false, "allowPrivilegeEscalation": true, "runAsNonRoot": false}}"#,
            r#"{"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}], "env": [{"name": "A", "value": ""}]}"#,
            r#"{"resources": {"limits": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"}}}"#,
            r#"{"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}"#,
            r#"{"lifecycle": {"preStop": {"sleep": {"seconds": 15}}, "stopSignal": "SIGUSR1"}}"#,
            r#"{"ports": [{"containerPort": 80}]}"#,
            r#"{"livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 0}, "imagePullPolicy": ""}"#,
        ][..],
    )
}

fn sidecar() -> impl Strategy<Value = Value> {
    let native = prop::bool::weighted(0.7);
    let position = option::of(select(&["before", "after"][..]));
    let selector = option::weighted(
        0.3,
        select(&[r#"{"matchLabels": {"logs": "yes"}}"#, r#"{"matchLabels": {"logs": "no"}}"#][..]),
    );
    (native, position, selector, rest(), any::<bool>(), prop::bool::weighted(0.8)).prop_map(
        |(native, position, selector, rest, has_volume, is_of_linux)| {
            let mut container: Value = serde_json::from_str(rest).expect("the containers are JSON");
            container["image"] = json!(format!("registry.example.com/hub/agent@{DIGEST}"));
            let mut sidecar = json!({"native": native, "namespaces": ["team-*"]});
            if let Some(position) = position {
                sidecar["position"] = json!(position);
            }
            if let Some(selector) = selector {
                sidecar["selector"] = serde_json::from_str(selector).expect("the selectors are JSON");
            }
            if has_volume {
                sidecar["volumes"] = json!([{"name": "agent", "emptyDir": {"sizeLimit": "1Gi"}}]);
                container["volumeMounts"] = json!([{"name": "agent", "mountPath": "/agent"}]);
            }
            if !is_of_linux && container["securityContext"].is_null() {
                sidecar["os"] = json!("windows");
            }
            sidecar["container"] = container;
            sidecar
        },
    )
}

/// A list of sidecars, some of names that pods have, too.
pub(crate) fn sidecars() -> impl Strategy<Value = Value> {
    let names = subsequence(vec!["agent-a", "agent-b", "agent-c", "app0", "init1", "debug0"], 0..3);
    names.prop_flat_map(|names| {
        let count = names.len();
        proptest::collection::vec(sidecar(), count).prop_map(move |mut sidecars| {
            for (sidecar, name) in sidecars.iter_mut().zip(&names) {
                sidecar["container"]["name"] = json!(name);
            }
            Value::Array(sidecars)
        })
    })
}
