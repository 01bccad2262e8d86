//! Each default policy: a pod that it refuses and the nearest one that it allows, through
//! `kubectl apply` and through a client as controllers use it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::client::client;
use super::cluster::Cluster;
use super::pods::pod;

/// What goes into a pod: into its container, and into its spec.
type Parts = (Value, Value);

struct Example {
    name: &'static str,
    refused: Parts,
    allowed: Parts,
    webhook: &'static str,
    /// The policy's line of the message.
    line: &'static str,
}

#[test]
fn each_policy_refuses_and_allows_whoever_asks() {
    let cluster = Cluster::start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let pods = runtime.block_on(async { Api::<Pod>::default_namespaced(client(&cluster.plane.url())) });
    for Example { name, refused, allowed, webhook, line } in container_examples().into_iter().chain(pod_examples()) {
        let denial = format!(
            "admission webhook \"pod-{webhook}.security.example.com\" denied the request: pod default/{name} \
             breaks 1 policy\n{line}"
        );
        let bad = pod(name, &refused.0, &refused.1);
        let said = cluster.plane.apply(&bad);
        let seen = format!("Error from server (Forbidden): error when creating \"STDIN\": {denial}\n");
        assert_eq!((said.success, said.stderr), (false, seen), "kubectl: {name}");
        let create = |manifest: &str| {
            let object: Pod = serde_json::from_str(manifest).expect("a pod");
            runtime.block_on(pods.create(&PostParams::default(), &object))
        };
        let kube::Error::Api(status) = create(&bad).expect_err(name) else { panic!("not from the API server: {name}") };
        assert_eq!((status.code, status.reason.as_str(), &status.message), (403, "Forbidden", &denial), "{name}");
        assert!(!cluster.plane.kubectl(&["get", "pod", name]).success, "{name} is not stored");

        let said = cluster.plane.apply(&pod(name, &allowed.0, &allowed.1));
        assert_eq!((said.success, said.stderr.as_str()), (true, ""), "kubectl: {name}");
        create(&pod(&format!("{name}-of-a-client"), &allowed.0, &allowed.1)).expect(name);
        for stored in [format!("pod/{name}"), format!("pod/{name}-of-a-client")] {
            let limits = cluster.plane.field(&stored, "{.spec.containers[0].resources.limits}");
            assert_eq!(limits, r#"{"cpu":"1","memory":"1Gi"}"#, "{stored}");
        }
    }
}

fn container_examples() -> Vec<Example> {
    let context = |context: Value| (json!({"securityContext": context}), json!({}));
    let capability = |name: &str| context(json!({"capabilities": {"add": [name]}}));
    let image = |image: &str| (json!({"image": image}), json!({}));
    vec![
        Example {
            name: "privileged",
            refused: context(json!({"privileged": true})),
            allowed: context(json!({"privileged": false})),
            webhook: "mutator",
            line: "privileged: container \"app\" (spec.containers[0].securityContext.privileged) is privileged: \
                   remove it or set it to false",
        },
        Example {
            name: "root",
            refused: context(json!({"runAsUser": 0})),
            allowed: context(json!({"runAsUser": 1})),
            webhook: "mutator",
            line: "rootUser: container \"app\" (spec.containers[0].securityContext.runAsUser) runs as 0, but \
                   containers must not run as root: name a user above 0, such as runAsUser: 1000",
        },
        Example {
            name: "capability",
            refused: capability("CAP_SYS_ADMIN"),
            allowed: capability("SYS_ADMIN"),
            webhook: "mutator",
            line: "rootUser: container \"app\" (spec.containers[0].securityContext.capabilities.add) adds \
                   CAP_SYS_ADMIN, which cannot stand beside the required allowPrivilegeEscalation: false: remove \
                   the capability",
        },
        Example {
            name: "untagged",
            refused: image("registry:5000/app"),
            allowed: image("registry:5000/app:1.4.2"),
            webhook: "mutator",
            line: "imageTag: container \"app\" (spec.containers[0].image) is \"registry:5000/app\", which has no \
                   tag: name a version, such as registry:5000/app:1.4.2",
        },
        Example {
            name: "latest",
            refused: image("app:latest"),
            allowed: image("app:latest-1"),
            webhook: "mutator",
            line: "imageTag: container \"app\" (spec.containers[0].image) is \"app:latest\", and the tag latest is \
                   no version: name a version, such as app:1.4.2",
        },
    ]
}

fn pod_examples() -> Vec<Example> {
    let volume = |volume: Value| (json!({}), json!({"volumes": [volume]}));
    let containers = |count: usize| {
        let one = |index| json!({"name": format!("c{index}"), "image": "a:1"});
        (json!({}), json!({"containers": (0..count).map(one).collect::<Value>()}))
    };
    vec![
        Example {
            name: "image-volume",
            refused: volume(json!({"name": "art", "image": {"reference": "quay.io/a/b:latest"}})),
            allowed: volume(json!({"name": "art", "image": {"reference": "quay.io/a/b:1"}})),
            webhook: "mutator",
            line: "imageTag: volume \"art\" (spec.volumes[0].image.reference) is \"quay.io/a/b:latest\", and the \
                   tag latest is no version: name a version, such as quay.io/a/b:1.4.2",
        },
        Example {
            name: "host-path",
            refused: volume(json!({"name": "logs", "hostPath": {"path": "/var/log/"}})),
            allowed: volume(json!({"name": "logs", "hostPath": {"path": "/data/shared/"}})),
            webhook: "validator",
            line: "hostPath: volume \"logs\" (spec.volumes[0].hostPath.path) mounts \"/var/log/\", that is \
                   \"/var/log\": allowed are /data/shared, /tmp/container",
        },
        Example {
            name: "host-network",
            refused: (json!({}), json!({"hostNetwork": true})),
            allowed: (json!({}), json!({"hostNetwork": false})),
            webhook: "validator",
            line: "hostNetwork: the pod (spec.hostNetwork) is in the node's network: remove it or set it to false",
        },
        Example {
            name: "six",
            refused: containers(6),
            allowed: containers(5),
            webhook: "validator",
            line: "containerCount: the pod (spec.containers) has 6 containers: at most 5 are allowed, so split the \
                   pod",
        },
    ]
}
