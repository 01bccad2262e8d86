//! Pods created without pause, many at a time, while something happens to podgate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::client::client;
use super::process::eventually;

/// How many pods are created at a time.
pub(crate) const AT_A_TIME: usize = 100;
/// How many failures are printed; the others are like them.
const PRINTED_MAX: usize = 5;

/// What came of the creates.
#[derive(Default)]
struct Load {
    created: AtomicUsize,
    failed: AtomicUsize,
    stop: AtomicBool,
}

/// Runs `disturb` while pods are created, until at least `creates_min` were: how many were created,
/// and how many failed.
pub(crate) fn under_load(url: &str, creates_min: usize, disturb: impl FnOnce()) -> (usize, usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let load = Arc::new(Load::default());
    let running = runtime.spawn(create_without_pause(url.to_owned(), Arc::clone(&load)));
    eventually("creates begin", || (load.created.load(Ordering::Relaxed) > AT_A_TIME).then_some(()));
    disturb();
    eventually("enough creates", || (load.created.load(Ordering::Relaxed) >= creates_min).then_some(()));
    load.stop.store(true, Ordering::Relaxed);
    runtime.block_on(running).expect("the load ends");
    (load.created.load(Ordering::Relaxed), load.failed.load(Ordering::Relaxed))
}

/// Creates pods over many connections, until it is told to stop.
async fn create_without_pause(url: String, load: Arc<Load>) {
    // Tells the pods of one load from those of another on the same control plane.
    let load_id = std::time::UNIX_EPOCH.elapsed().expect("the clock is past 1970").as_millis();
    let tasks: Vec<_> = (0..AT_A_TIME)
        .map(|task| {
            let pods = Api::default_namespaced(client(&url));
            tokio::spawn(create_one_after_another(pods, format!("load-{load_id}-{task}"), Arc::clone(&load)))
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
}

async fn create_one_after_another(pods: Api<Pod>, name: String, load: Arc<Load>) {
    let mut number = 0;
    while !load.stop.load(Ordering::Relaxed) {
        number += 1;
        let pod = json!({
            "metadata": {"name": format!("{name}-{number}")},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        match pods.create(&PostParams::default(), &pod).await {
            Ok(created) => {
                let limits = created.spec.and_then(|spec| spec.containers[0].resources.clone()?.limits);
                assert!(limits.is_some(), "a pod that was let in is hardened");
                load.created.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                if load.failed.fetch_add(1, Ordering::Relaxed) < PRINTED_MAX {
                    println!("a create failed: {error}");
                }
            }
        }
    }
}
