//! Sidecars, as the API server stores them, and what it makes of them before podgate is asked again.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::modes::{configured, until_refused};
use super::pods::pod;
use super::reinvocation::{injected_pod, register_injector};

/// Every field here is one that the API server writes in another way, leaves out or adds to.
const SIDECARS: &str = r#"
mutations:
  sidecars:
    - container:
        name: log-agent
        image: nginx
        imagePullPolicy: ""
        command: []
        tty: false
        env: [{ name: EMPTY, value: "" }, { name: CORES, valueFrom: { resourceFieldRef: { resource: limits.cpu, divisor: 1000m } } }]
        ports: [{ containerPort: 53, protocol: UDP }, { containerPort: 53 }]
        resources: { limits: { cpu: 3000m, memory: 1024Mi, ephemeral-storage: 1073741824 }, requests: { cpu: 0.5 } }
        securityContext: { allowPrivilegeEscalation: true, capabilities: { drop: [ALL] } }
        livenessProbe: { httpGet: { port: 80 }, timeoutSeconds: 0 }
        volumeMounts: [{ name: log-agent-config, mountPath: /etc/log-agent, readOnly: false }]
      volumes:
        - { name: log-agent-config, configMap: { name: log-agent } }
        - { name: log-agent-cache, emptyDir: { sizeLimit: 1024Mi } }
        - { name: log-agent-host, hostPath: { path: /data/shared } }
    - { native: false, container: { name: proxy, image: "proxy:1" }, volumes: [{ name: log-agent-cache, emptyDir: { sizeLimit: 1024Mi } }] }
    - { os: windows, container: { name: windows-agent, image: "windows-agent:1" } }
  images: { pins: { nginx: "1.27.3" }, mirrors: { docker.io/library: registry.example.com/hub } }
validations:
  promises: { action: deny }
"#;

/// A cluster that asks a podgate of that configuration already.
fn cluster() -> Cluster {
    let cluster = configured(ControlPlane::start(), SIDECARS);
    let mine = json!({"initContainers": [{"name": "log-agent", "image": "mine:1"}]});
    until_refused(&cluster, &pod("probe", &json!({}), &json!({"hostNetwork": true, "initContainers": null})));
    let refused = cluster.refusal(&pod("mine", &json!({}), &mine));
    assert!(refused.contains("pod-mutator.security.example.com"), "{refused}");
    cluster
}

fn stored(cluster: &Cluster, name: &str) -> Value {
    let text = cluster.plane.must(&["get", "pod", name, "--output", "json"]);
    serde_json::from_str(&text).expect("kubectl writes JSON")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|named| named["name"].as_str()).collect()
}

#[test]
fn a_sidecar_is_stored_hardened_and_stays_one_when_podgate_is_asked_again() {
    let runtime = Runtime::new().expect("a runtime");
    let cluster = cluster();
    register_injector(&cluster.plane, &runtime);
    let spec = json!({
        "initContainers": [{"name": "step", "image": "step:1"}],
        "containers": [{"name": "app", "image": "app:1"}],
        "volumes": [{"name": "log-agent-cache", "emptyDir": {"sizeLimit": "1Gi"}}],
    });
    let pod = stored(&cluster, &injected_pod(&cluster, &spec));
    let spec = &pod["spec"];
    assert_eq!(names(&spec["initContainers"]), ["log-agent", "step"]);
    assert_eq!(names(&spec["containers"]), ["app", "proxy", "injected"]);
    let volumes = names(&spec["volumes"]);
    assert_eq!(volumes.len(), 4, "{volumes:?}");
    assert!(volumes.iter().any(|name| name.starts_with("kube-api-access-")), "{volumes:?}");
    let agent = &spec["initContainers"][0];
    assert_eq!(agent["restartPolicy"], "Always");
    assert_eq!(agent["image"], "registry.example.com/hub/nginx:1.27.3");
    assert_eq!(
        agent["securityContext"],
        json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}})
    );
    assert_eq!(
        agent["resources"],
        json!({
            "limits": {"cpu": "3", "memory": "1Gi", "ephemeral-storage": "1073741824"},
            "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1073741824"},
        })
    );
    assert_eq!(agent["volumeMounts"][1]["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount");
    for container in spec["containers"].as_array().expect("a list") {
        assert_eq!(container["securityContext"], json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true}));
        assert_eq!(container["resources"]["limits"], json!({"cpu": "1", "memory": "1Gi"}));
    }

    // The same pod once more, with all that the API server has added to it.
    let copy = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "copy"}, "spec": spec});
    cluster.create(&copy.to_string());
    assert_eq!(stored(&cluster, "copy")["spec"], *spec);

    // Later updates are none of its business.
    cluster.plane.must(&["label", "pod", "copy", "tier=web"]);
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "debug:1"}]}}).to_string();
    cluster.plane.must(&["patch", "pod", "copy", "--subresource=ephemeralcontainers", "--patch", &debug]);
    assert_eq!(names(&stored(&cluster, "copy")["spec"]["initContainers"]), ["log-agent", "step"]);
}

#[test]
fn what_the_api_server_or_the_kubelet_would_refuse_is_not_made() {
    let cluster = cluster();
    // Beside what the pod has as a whole, the sidecar's own amount would be too much.
    cluster.create(&pod("of-the-pod", &json!({}), &json!({"resources": {"limits": {"cpu": "1", "memory": "64Mi"}}})));
    let agent = &stored(&cluster, "of-the-pod")["spec"]["initContainers"][0];
    assert_eq!(agent["resources"]["limits"], json!({"ephemeral-storage": "1073741824"}));

    cluster.create(&pod("windows", &json!({}), &json!({"os": {"name": "windows"}})));
    let spec = &stored(&cluster, "windows")["spec"];
    assert_eq!(names(&spec["initContainers"]), ["windows-agent"]);
    assert_eq!(spec["initContainers"][0]["securityContext"], json!({"runAsNonRoot": true}));
    assert_eq!(names(&spec["containers"]), ["app"]);

    let five: Value = (0..5).map(|index| json!({"name": format!("c{index}"), "image": "a:1"})).collect();
    cluster.create(&pod("five", &json!({}), &json!({"containers": five})));
    assert_eq!(stored(&cluster, "five")["spec"]["containers"].as_array().map(Vec::len), Some(6));
}

#[test]
fn another_container_or_volume_of_that_name_is_refused_with_the_reason() {
    let cluster = cluster();
    let container = |image: &str| json!([{"name": "log-agent", "image": image, "restartPolicy": "Always"}]);
    for (container, spec, line) in [
        (
            json!({}),
            json!({"initContainers": container("evil:1")}),
            "sidecars: init container \"log-agent\" (spec.initContainers[0]) has the name of the sidecar log-agent: \
             rename it or remove it, for its env is missing",
        ),
        (
            json!({"name": "log-agent"}),
            json!({}),
            "sidecars: container \"log-agent\" (spec.containers[0]) has the name of the sidecar log-agent: rename it \
             or remove it, for it is no init container",
        ),
        (
            json!({}),
            json!({"initContainers": [{"name": "proxy", "image": "proxy:1"}]}),
            "sidecars: init container \"proxy\" (spec.initContainers[0]) has the name of the sidecar proxy: rename it or \
             remove it, for it is no container",
        ),
        (
            json!({}),
            json!({"volumes": [{"name": "log-agent-config", "emptyDir": {}}]}),
            "sidecars: volume \"log-agent-config\" (spec.volumes[0]) has the name of a volume of the sidecar log-agent: \
             rename it or remove it, for its configMap is missing",
        ),
    ] {
        let refused = cluster.refusal(&pod("mine", &container, &spec));
        assert!(refused.contains("breaks 1 policy\n"), "{refused}");
        assert!(refused.contains(line), "{refused}");
    }
}

/// Sidecars with fields that are right in some pods only.
const PARTICULAR: &str = r#"
mutations:
  sidecars:
    - container:
        name: agent
        image: agent:1
        resources: { limits: { cpu: "1", memory: 64Mi, hugepages-2Mi: 64Mi } }
        resizePolicy: [{ resourceName: cpu, restartPolicy: RestartContainer }]
        lifecycle: { preStop: { sleep: { seconds: 15 } }, stopSignal: SIGUSR1 }
    - { native: false, container: { name: proxy, image: "proxy:1", ports: [{ containerPort: 9000 }] } }
validations:
  hostNetwork: { action: off }
  hostPID: { action: deny }
"#;

#[test]
fn a_sidecar_fits_the_pod_that_it_comes_into() {
    let cluster = configured(ControlPlane::start(), PARTICULAR);
    until_refused(&cluster, &pod("probe", &json!({}), &json!({"hostPID": true})));
    let level = json!({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}});
    cluster.create(&pod("level", &json!({}), &level));
    let agent = &stored(&cluster, "level")["spec"]["initContainers"][0];
    assert_eq!(agent["resources"]["limits"], json!({"hugepages-2Mi": "64Mi"}));
    assert_eq!(agent["resources"]["requests"], json!({"cpu": "0", "hugepages-2Mi": "64Mi"}));

    for (name, spec) in [
        ("never", json!({"restartPolicy": "Never"})),
        ("short", json!({"terminationGracePeriodSeconds": 5})),
        ("at-once", json!({"terminationGracePeriodSeconds": 0})),
        ("linux", json!({"os": {"name": "linux"}})),
        ("huge", json!({"resources": {"limits": {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "32Mi"}}})),
        ("network", json!({"hostNetwork": true})),
    ] {
        cluster.create(&pod(name, &json!({}), &spec));
    }
    let of = |name: &str, member: &str| stored(&cluster, name)["spec"]["initContainers"][0][member].clone();
    assert_eq!(of("never", "resizePolicy")[0]["restartPolicy"], "NotRequired");
    assert_eq!(of("linux", "resizePolicy")[0]["restartPolicy"], "RestartContainer");
    assert_eq!(of("short", "lifecycle")["preStop"]["sleep"]["seconds"], 5);
    assert_eq!(of("at-once", "lifecycle"), Value::Null);
    assert_eq!(stored(&cluster, "network")["spec"]["containers"][1]["ports"][0]["hostPort"], 9000);

    let port = json!({"ports": [{"containerPort": 9000}]});
    let refused = cluster.refusal(&pod("clash", &port, &json!({"hostNetwork": true})));
    assert!(refused.contains("container \"app\" takes port 9000/TCP of the node, too"), "{refused}");

    // The stored pod is taken as it is, and refused with more in the sidecar.
    let mut spec = stored(&cluster, "level")["spec"].clone();
    let manifest = |name: &str, spec: &Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}).to_string()
    };
    cluster.create(&manifest("copy", &spec));
    // The API server drops the stopSignal.
    cluster.create(&manifest("linux-copy", &stored(&cluster, "linux")["spec"]));
    spec["initContainers"][0]["command"] = json!(["sleep", "infinity"]);
    let refused = cluster.refusal(&manifest("emptied", &spec));
    assert!(refused.contains("its command should not be set"), "{refused}");

    // A pod without containers is none, whatever comes into it.
    let refused = cluster.refusal(&manifest("empty", &json!({"containers": []})));
    assert!(refused.contains("spec.containers: Required value"), "{refused}");
}
