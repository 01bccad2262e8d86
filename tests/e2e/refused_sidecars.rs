//! The sidecars of `tests/sidecars`, each in a pod that goes straight to the API server: it decides
//! what `podgate config check` has to refuse.

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::client::client;
use super::control_plane::ControlPlane;
use super::sidecar_cases::{Case, cases};

/// A pod that has the sidecar of a case as podgate would put it there.
fn pod(case: &Case) -> Value {
    let configuration: Value = serde_saphyr::from_str(&case.text).expect("a case is YAML");
    let sidecar = &configuration["mutations"]["sidecars"][0];
    let mut container = sidecar["container"].clone();
    let app = json!({"name": "app", "image": "app:1"});
    let mut spec = json!({"containers": [app], "volumes": sidecar["volumes"]});
    if sidecar["native"] == false {
        spec["containers"] = json!([app, container]);
    } else {
        container["restartPolicy"] = "Always".into();
        spec["initContainers"] = json!([container]);
    }
    if let Some(os) = sidecar["os"].as_str() {
        spec["os"] = json!({"name": os});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": case.name}, "spec": spec})
}

/// Whether the API server would store the pod of a case; what it says where it would not.
async fn ask(pods: &Api<DynamicObject>, case: &Case) -> Result<(), String> {
    let pod: DynamicObject = serde_json::from_value(pod(case)).expect("a pod is an object");
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match pods.create(&dry_run, &pod).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(format!("{}: {}", status.reason, status.message)),
        Err(error) => panic!("{}: {error}", case.name),
    }
}

fn pods(client: Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    Api::namespaced_with(client, "default", &kind)
}

#[test]
fn the_api_server_refuses_and_takes_what_podgate_does() {
    let plane = ControlPlane::start();
    let runtime = Runtime::new().expect("a runtime");
    let wrong: Vec<String> = runtime.block_on(async {
        let pods = pods(client(&plane.url()));
        let mut wrong = Vec::new();
        for case in cases("refused") {
            match ask(&pods, &case).await {
                Err(said) if said.starts_with("Invalid: ") => {}
                answer => {
                    wrong.push(format!("{} is not refused as invalid, but {answer:?}: {}", case.name, case.fault().1));
                }
            }
        }
        for case in cases("taken") {
            if let Err(said) = ask(&pods, &case).await {
                wrong.push(format!("{} is not taken: {said}", case.name));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
