//! What a create costs on a real API server: with no policy, with podgate, and with the same rules
//! as `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`. Three namespaces of one control plane
//! take turns, so that noise hits all three. `make bench-cluster`.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]
#![allow(dead_code, reason = "the modules are the end-to-end tests' own, of which this needs a part")]

#[path = "../../tests/e2e/control_plane.rs"]
mod control_plane;
#[path = "../../tests/e2e/process.rs"]
mod process;
#[path = "../../tests/e2e/registration.rs"]
mod registration;
#[path = "../../tests/e2e/replica.rs"]
mod replica;

use std::time::{Duration, Instant};

use control_plane::{ControlPlane, Who};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, Config};
use process::eventually;
use replica::{Replica, make_certificates};
use serde_json::{Value, json};

/// The namespaces, each with its own way to judge pods.
const WAYS: [&str; 3] = ["no-policy", "podgate", "built-in"];
/// How many pods are created at a time, and how many in one turn.
const LOADS: [(usize, usize); 2] = [(1, 100), (25, 500)];
/// A pod of one container with a name and an image, and one as charts make them.
const PODS: [(&str, &str); 2] = [("least", include_str!("least-pod.json")), ("usual", include_str!("usual-pod.json"))];
/// How many turns each namespace has with each load, after one that does not count.
const TURNS: usize = 6;
/// Clock ticks a second in /proc, as Linux has them everywhere.
const TICKS_A_SECOND: f64 = 100.0;

fn main() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().expect("there is none yet");
    let plane = ControlPlane::start();
    let certs = make_certificates(&plane.path(""));
    let replica = Replica::start(&certs);
    for way in WAYS {
        plane.must(&["create", "namespace", way]);
        plane.must(&["--namespace", way, "create", "serviceaccount", "default"]);
    }
    install(&plane, &replica, &certs.join("ca.crt"));
    let port = plane.url().rsplit(':').next().expect("a URL with a port").to_owned();
    let processes = [process_id("kube-apiserver", &format!("--secure-port={port}")), process_id("podgate", "serve")];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("| pod | at a time | judged by | p50 ms | p99 ms | CPU ms of kube-apiserver | CPU ms of podgate |");
    println!("|---|---|---|---|---|---|---|");
    for ((pod_name, pod), (at_a_time, count)) in PODS.into_iter().flat_map(|pod| LOADS.map(|load| (pod, load))) {
        let mut tallies = WAYS.map(|_| Tally::default());
        for turn in 0..=TURNS {
            for (way, tally) in WAYS.iter().zip(&mut tallies) {
                let before = processes.map(cpu);
                let latencies = runtime.block_on(create(&plane.url(), way, pod, at_a_time, count));
                if turn > 0 {
                    for ((sum, process), before) in tally.cpu.iter_mut().zip(processes).zip(before) {
                        *sum += cpu(process) - before;
                    }
                    tally.latencies.extend(latencies);
                }
                runtime.block_on(clear(&plane.url(), way));
            }
        }
        for (way, tally) in WAYS.iter().zip(&mut tallies) {
            let [p50, p99] = [50, 99].map(|share| tally.quantile(share));
            let [api_server, podgate] = tally.cpu_millis();
            println!("| {pod_name} | {at_a_time} | {way} | {p50:.2} | {p99:.2} | {api_server:.2} | {podgate:.3} |");
        }
    }
    println!("\nCPU is that of one create; etcd and the client are not in it.");
}

#[derive(Default)]
struct Tally {
    latencies: Vec<Duration>,
    cpu: [f64; 2],
}

impl Tally {
    fn quantile(&mut self, share: usize) -> f64 {
        self.latencies.sort_unstable();
        self.latencies[(self.latencies.len() - 1) * share / 100].as_secs_f64() * 1e3
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of creates is far below 2^52")]
    fn cpu_millis(&self) -> [f64; 2] {
        self.cpu.map(|seconds| seconds * 1e3 / self.latencies.len() as f64)
    }
}

/// Points podgate at its namespace and the built-in policies at theirs, and waits until both judge.
fn install(plane: &ControlPlane, replica: &Replica, authority: &std::path::Path) {
    let selector = |way: &str| json!({"matchLabels": {"kubernetes.io/metadata.name": way}});
    for mut document in registration::documents(replica.addr, Some(authority)) {
        for webhook in document["webhooks"].as_array_mut().expect("there are webhooks") {
            webhook["namespaceSelector"] = selector("podgate");
        }
        apply(plane, &document);
    }
    let text = include_str!("vap-map.yaml");
    for mut document in serde_saphyr::from_multiple::<Value>(text).expect("the policies are YAML") {
        if document["spec"]["matchResources"].is_object() {
            document["spec"]["matchResources"]["namespaceSelector"] = selector("built-in");
        }
        apply(plane, &document);
    }
    let limits = |way: &str| {
        let dry = ["--namespace", way, "create", "--dry-run=server", "--output=json", "-f", "-"];
        let said = plane.kubectl_as(Who::Admin, &dry, &named(PODS[0].1, "probe").to_string());
        let object: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        object["spec"]["containers"][0]["resources"]["limits"].clone()
    };
    let refused = |way: &str| {
        let mut bad = named(PODS[0].1, "probe");
        bad["spec"]["hostNetwork"] = json!(true);
        let dry = ["--namespace", way, "create", "--dry-run=server", "-f", "-"];
        !plane.kubectl_as(Who::Admin, &dry, &bad.to_string()).success
    };
    for way in &WAYS[1..] {
        let due = json!({"cpu": "1", "memory": "1Gi"});
        eventually(way, || (limits(way) == due && refused(way)).then_some(()));
    }
    assert!(limits(WAYS[0]).is_null(), "nobody judges pods in {}", WAYS[0]);
}

fn apply(plane: &ControlPlane, document: &Value) {
    let said = plane.apply(&document.to_string());
    assert!(said.success, "{}", said.stderr);
}

fn named(pod: &str, name: &str) -> Value {
    let mut object: Value = serde_json::from_str(pod).expect("the pod is JSON");
    object["metadata"]["name"] = json!(name);
    object
}

fn client(url: &str) -> Client {
    let mut config = Config::new(url.parse().expect("a URL"));
    config.accept_invalid_certs = true;
    config.auth_info.token = Some("admin-token".to_owned().into());
    Client::try_from(config).expect("the settings are right")
}

/// Creates pods over connections of their own, so many at a time, and tells how long each took.
async fn create(url: &str, namespace: &str, pod: &str, at_a_time: usize, count: usize) -> Vec<Duration> {
    let mut tasks = Vec::new();
    for task in 0..at_a_time {
        let pods: Api<Pod> = Api::namespaced(client(url), namespace);
        let made = (0..count / at_a_time).map(|number| named(pod, &format!("pod-{task}-{number}")));
        let made: Vec<Pod> = made.map(|pod| serde_json::from_value(pod).expect("a pod")).collect();
        tasks.push(tokio::spawn(async move {
            // The connection is made before the clock runs.
            pods.list_metadata(&ListParams::default().limit(1)).await.expect("the API server answers");
            let mut latencies = Vec::new();
            for pod in made {
                let started = Instant::now();
                pods.create(&PostParams::default(), &pod).await.expect("the pod is let in");
                latencies.push(started.elapsed());
            }
            latencies
        }));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("no task panics"));
    }
    latencies
}

async fn clear(url: &str, namespace: &str) {
    let pods: Api<Pod> = Api::namespaced(client(url), namespace);
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete_collection(&at_once, &ListParams::default()).await.expect("the pods can be deleted");
}

/// The process of a program that was started with an argument.
fn process_id(program: &str, argument: &str) -> u32 {
    std::fs::read_dir("/proc")
        .expect("/proc is there")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut words = line.split('\0');
            words.next().is_some_and(|first| first.ends_with(program)) && words.any(|word| word == argument)
        })
        .unwrap_or_else(|| panic!("no process {program} with {argument}"))
}

/// The CPU time that a process has used, in seconds.
fn cpu(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process runs");
    let (_, fields) = stat.rsplit_once(") ").expect("the name ends with a parenthesis");
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_A_SECOND
}
