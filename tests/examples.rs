//! The configurations in `examples/configurations`, each put to its purpose.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "generate/review.rs"]
mod review;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podgate::admission::{self, Webhook};
use podgate::config;
use podgate::policy::Policies;
use review::review;
use serde_json::{Value, json};

fn example(name: &str) -> Policies {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configurations").join(name);
    config::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn answer(policies: &Policies, webhook: Webhook, spec: &Value) -> Value {
    answer_in("team-a", policies, webhook, spec)
}

fn answer_in(namespace: &str, policies: &Policies, webhook: Webhook, spec: &Value) -> Value {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo"}, "spec": spec});
    let mut body = review("CREATE", &pod, &Value::Null);
    body["request"]["namespace"] = json!(namespace);
    let body = body.to_string();
    let answer = admission::answer(policies, webhook, body.as_bytes(), time::Date::MIN);
    serde_json::from_slice::<Value>(&answer.body).expect("every answer is JSON")["response"].take()
}

fn message(answer: &Value) -> Vec<&str> {
    answer["status"]["message"].as_str().unwrap_or_default().lines().collect()
}

/// A container that is right under the default policy.
fn container(name: &str, image: &str, cpu: &str) -> Value {
    json!({
        "name": name,
        "image": image,
        "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true},
        "resources": {"limits": {"cpu": cpu, "memory": "256Mi"}},
    })
}

#[test]
fn chinese_messages() {
    let policies = example("chinese-messages.yaml");
    let mut app = container("app", "nginx:latest", "3");
    app["securityContext"] = json!({"privileged": true, "runAsNonRoot": true});
    let answer = answer(
        &policies,
        Webhook::Validate,
        &json!({
            "containers": [app],
            "hostNetwork": true,
            "hostPID": true,
            "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}],
        }),
    );
    assert_eq!(
        message(&answer),
        [
            "pod team-a/demo breaks 6 policies",
            "privileged: 安全策略禁止特权容器运行（app，spec.containers[0].securityContext.privileged）",
            "imageTag: 安全策略要求镜像指定明确的版本，禁止使用 latest 标签（app：nginx:latest）",
            "hostPath: 安全策略禁止挂载该主机目录，仅允许 /data/shared 和 /tmp/container（卷 logs：/var/log）",
            "hostNetwork: 安全策略禁止使用 HostNetwork",
            "hostPID: 安全策略禁止使用 HostPID",
            "cpu: 安全策略限制每个 Pod 最多使用 2 核 CPU（当前 3）",
        ]
    );
}

/// A pod's spec after `/mutate`.
fn mutated(namespace: &str, policies: &Policies, spec: &Value) -> Value {
    let answer = answer_in(namespace, policies, Webhook::Mutate, spec);
    assert_eq!(answer["allowed"], true, "{:?}", message(&answer));
    let mut object = json!({"spec": spec});
    if let Some(patch) = answer["patch"].as_str() {
        let patch = STANDARD.decode(patch).expect("a patch is base64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("the patch is a JSON Patch");
        json_patch::patch(&mut object, &patch).expect("the patch applies");
    }
    object["spec"].take()
}

#[test]
fn log_agent_sidecar() {
    let policies = example("log-agent-sidecar.yaml");
    let mut app = container("app", "nginx:1.27", "500m");
    app["volumeMounts"] = json!([{"name": "logs", "mountPath": "/var/log/nginx"}]);
    let logs = json!({"name": "logs", "emptyDir": {"sizeLimit": "256Mi"}});
    let spec = json!({"containers": [app], "volumes": [logs]});
    let with_agent = mutated("team-a", &policies, &spec);
    let agent = &with_agent["initContainers"][0];
    assert_eq!((&agent["name"], &agent["restartPolicy"]), (&json!("log-agent"), &json!("Always")));
    assert_eq!(
        agent["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "runAsNonRoot": true, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    assert_eq!(with_agent["volumes"], json!([logs, {"name": "log-agent-config", "configMap": {"name": "log-agent"}}]));
    let validated = answer(&policies, Webhook::Validate, &with_agent);
    assert_eq!((&validated["allowed"], &validated["warnings"]), (&json!(true), &Value::Null));

    assert_eq!(mutated("ops", &policies, &spec), spec);
    assert_eq!(mutated("team-batch", &policies, &spec), spec);
    let mut other = spec.clone();
    other["volumes"][0]["emptyDir"] = json!({});
    assert_eq!(
        message(&answer(&policies, Webhook::Mutate, &other)),
        [
            "pod team-a/demo breaks 1 policy",
            "sidecars: volume \"logs\" (spec.volumes[0]) has the name of a volume of the sidecar log-agent: rename it \
             or remove it, for its emptyDir.sizeLimit is missing and not \"256Mi\"; if another mutating webhook changed \
             it, have that one leave it alone, or set the same in mutations.sidecars",
        ]
    );
}

fn is_allowed(answer: &Value) -> bool {
    answer["allowed"] == true
}

/// A pod that breaks a policy in each way that the default configuration denies.
fn careless() -> Value {
    let mut app = container("app", "nginx", "1");
    app["securityContext"] = json!({"privileged": true});
    json!({
        "containers": [app],
        "hostNetwork": true,
        "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}],
    })
}

#[test]
fn audit_first() {
    let policies = example("audit-first.yaml");
    let answer_to = |webhook| answer(&policies, webhook, &careless());
    let mutate = answer_to(Webhook::Mutate);
    assert!(is_allowed(&mutate) && mutate.get("patch").is_none(), "{mutate}");
    let validate = answer_to(Webhook::Validate);
    assert!(is_allowed(&validate), "{validate}");
    let warnings = validate["warnings"].as_array().map_or(0, Vec::len);
    assert_eq!(warnings, 4, "{validate}");
}

#[test]
fn strict() {
    let policies = example("strict.yaml");
    let digest = format!("registry.example.com/app@sha256:{}", "0".repeat(64));
    let right = json!({"containers": [container("app", &digest, "1")]});
    assert!(is_allowed(&answer(&policies, Webhook::Validate, &right)));
    for (change, policy) in [
        (json!({"containers": [container("app", "registry.example.com/app:1", "1")]}), "imageTag"),
        (json!({"containers": [container("app", &digest.replace("example", "elsewhere"), "1")]}), "imageTag"),
        (json!({"containers": [container("app", &digest, "9")]}), "cpu"),
        (json!({"containers": [{"name": "app", "image": digest}]}), "memory"),
        (json!({"hostPID": true}), "hostPID"),
        (json!({"hostIPC": true}), "hostIPC"),
        (json!({"volumes": [{"name": "data", "hostPath": {"path": "/data/shared"}}]}), "hostPath"),
    ] {
        let mut spec = right.clone();
        spec.as_object_mut().expect("a spec is an object").extend(change.as_object().cloned().unwrap_or_default());
        let answer = answer(&policies, Webhook::Validate, &spec);
        let message = message(&answer);
        assert!(message.iter().any(|line| line.starts_with(&format!("{policy}: "))), "{policy}: {message:?}");
    }
}

#[test]
fn shared_directories() {
    let policies = example("shared-directories.yaml");
    for (path, allowed) in [
        ("/data/shared", true),
        ("/data/shared/below", false),
        ("/tmp/container", true),
        ("/srv/datasets", true),
        ("/srv/datasets/a/b", true),
        ("/srv", false),
        ("/srv/datasets/../keys", false),
    ] {
        let spec = json!({
            "containers": [container("app", "nginx:1.27", "1")],
            "volumes": [{"name": "data", "hostPath": {"path": path}}],
        });
        assert_eq!(is_allowed(&answer(&policies, Webhook::Validate, &spec)), allowed, "{path}");
    }
}

#[test]
fn exclusions() {
    let policies = example("exclusions.yaml");
    let ask = |namespace: &str, day: time::Date, spec: &Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo"}, "spec": spec});
        let mut review = review("CREATE", &pod, &Value::Null);
        review["request"]["namespace"] = namespace.into();
        let answer = admission::answer(&policies, Webhook::Validate, review.to_string().as_bytes(), day);
        is_allowed(&serde_json::from_slice::<Value>(&answer.body).expect("every answer is JSON")["response"])
    };
    let day = |year| time::Date::from_ordinal_date(year, 1).expect("a year has a first day");
    let (now, later) = (day(2027), day(2028));
    let untagged = json!({"containers": [container("app", "nginx", "1")]});
    assert!(ask("legacy", now, &untagged) && !ask("legacy", later, &untagged) && !ask("team-a", now, &untagged));
    assert!(ask("storage-system", later, &careless()) && !ask("team-a", now, &careless()));
    let network = json!({"containers": [container("app", "nginx:1.27", "1")], "hostNetwork": true});
    assert!(ask("ingress-public", now, &network) && !ask("team-a", now, &network));
    let privileged = |image: &str| {
        let mut app = container("app", image, "1");
        app["securityContext"] = json!({"privileged": true, "runAsNonRoot": true});
        json!({"containers": [app]})
    };
    assert!(ask("team-a", now, &privileged("quay.io/acme/gpu-agent:2")));
    assert!(!ask("team-a", now, &privileged("quay.io/acme/other:2")));
    let root = |name: &str| {
        let mut init = container(name, "istio/proxyv2:1.27", "1");
        init["securityContext"] = json!({"runAsUser": 0});
        json!({"containers": [container("app", "nginx:1.27", "1")], "initContainers": [init]})
    };
    assert!(ask("team-a", now, &root("istio-init")) && !ask("team-a", now, &root("other")));
}

#[test]
fn registry_mirror() {
    let policies = example("registry-mirror.yaml");
    for (image, stored) in [
        ("nginx:1.27", Ok("registry.example.com/hub/library/nginx:1.27")),
        ("busybox", Ok("registry.example.com/hub/library/busybox:1.37.0")),
        ("ghcr.io/acme/app:1", Ok("registry.example.com/acme/app:1")),
        ("ghcr.io/other/app:1", Err("ghcr.io/other/app:1")),
        ("nginx", Err("nginx")),
    ] {
        let mut answer = answer(&policies, Webhook::Mutate, &json!({"containers": [container("app", image, "1")]}));
        match stored {
            Ok(stored) => {
                let patch = STANDARD.decode(answer["patch"].take().as_str().expect("a patch")).expect("base64");
                let patch: Value = serde_json::from_slice(&patch).expect("JSON");
                assert_eq!(patch, json!([{"op": "add", "path": "/spec/containers/0/image", "value": stored}]));
            }
            Err(refused) => {
                let line = message(&answer).get(1).copied().unwrap_or_default();
                let begin = format!("imageTag: container \"app\" (spec.containers[0].image) is \"{refused}\"");
                assert!(line.starts_with(&begin), "{image}: {line}");
            }
        }
    }
}

#[test]
fn fifty_pods_of_two_cores() {
    let policies = example("fifty-pods-of-two-cores.yaml");
    for (cpu, lines) in [
        ("2", vec![]),
        (
            "2001m",
            vec![
                "pod team-a/demo breaks 1 policy",
                "cpu: the pod (spec.containers[0].resources.limits.cpu) may use 2001m of cpu at one time (\"app\" 2001m): \
                 at most 2 is allowed, so lower the limits",
            ],
        ),
    ] {
        let answer = answer(&policies, Webhook::Validate, &json!({"containers": [container("app", "app:1", cpu)]}));
        assert_eq!(message(&answer), lines, "{cpu}");
    }
    let allowed = |namespace: &str| policies.pods_allowed(namespace, time::Date::MIN).map(|pods| pods.to_string());
    assert_eq!(allowed("team-a").as_deref(), Some("50"));
    for namespace in ["default", "kube-system", "security-system"] {
        assert_eq!(allowed(namespace), None, "{namespace}");
    }
}

/// An example that no test puts to its purpose is none.
#[test]
fn every_example_has_its_test() {
    let tests = include_str!("examples.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configurations");
    for entry in std::fs::read_dir(folder).expect("the examples are there") {
        let name = entry.expect("an entry can be read").file_name().into_string().expect("the name is UTF-8");
        assert!(tests.contains(&format!("example(\"{name}\")")), "{name}");
    }
}
