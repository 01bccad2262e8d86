//! As much of a kubelet as podgate's own pods need: it runs the container of a pod as a process, with
//! volumes as folders, tells whether it is ready, and stops it as a kubelet does.

use std::collections::HashMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Binding, ConfigMap, Pod, PodSpec, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task;

use super::client::client;
use super::control_plane::kubeconfig;
use super::process::{Supervised, command};
use super::replica::{PODGATE, answers_ok};

/// The one node.
const NODE: &str = "node-1";
/// How often it looks at its pods.
const INTERVAL: Duration = Duration::from_millis(200);

/// The kubelet; its processes end with it.
pub(crate) struct Kubelet {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    /// Runs the pods of a namespace, at addresses that this machine has: one a pod.
    pub(crate) fn start(url: String, namespace: &'static str, addresses: Vec<String>, folder: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let client = client(&url);
                let pods = Api::namespaced(client.clone(), namespace);
                let mut node = Node { url, client, namespace, pods, addresses, folder, running: HashMap::new() };
                while !stopped.load(Ordering::Relaxed) {
                    node.look().await;
                    tokio::time::sleep(INTERVAL).await;
                }
            });
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().expect("it is joined once").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the kubelet panicked");
    }
}

/// A pod's container.
enum Container {
    Running(Supervised),
    Stopping(task::JoinHandle<ExitStatus>),
}

struct Running {
    address: String,
    ready: bool,
    container: Container,
}

struct Node {
    url: String,
    client: Client,
    namespace: &'static str,
    pods: Api<Pod>,
    /// Those that no pod has.
    addresses: Vec<String>,
    folder: PathBuf,
    running: HashMap<String, Running>,
}

impl Node {
    async fn look(&mut self) {
        let pods = self.pods.list(&ListParams::default()).await.expect("the API server answers");
        for pod in pods {
            let name = pod.name_any();
            let spec = pod.spec.as_ref().expect("a pod has a spec");
            if spec.node_name.is_none() {
                self.bind(&name).await;
            } else if pod.metadata.deletion_timestamp.is_some() {
                self.stop(&name).await;
            } else if let Some(running) = self.running.get_mut(&name) {
                if running.is_ready() != running.ready {
                    running.ready = !running.ready;
                    self.tell(&name).await;
                }
            } else {
                self.run(&name, spec).await;
            }
        }
    }

    /// What the scheduler does.
    async fn bind(&self, name: &str) {
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}});
        let binding: Binding = serde_json::from_value(binding).expect("a binding");
        // A pod that was deleted meanwhile cannot be bound; any other is there at the next look.
        let _: Result<serde_json::Value, _> =
            self.pods.create_subresource("binding", name, &PostParams::default(), &binding).await;
    }

    /// Starts the pod's container with its own arguments, at an address of its own.
    async fn run(&mut self, name: &str, spec: &PodSpec) {
        let address = self.addresses.pop().expect("an address is free");
        let folder = self.folder.join(name);
        self.mount(&folder, spec).await;
        let container = &spec.containers[0];
        let mounts = container.volume_mounts.iter().flatten();
        let paths: Vec<_> = mounts.map(|mount| mount.mount_path.as_str()).collect();
        let arguments = container.args.iter().flatten().map(|argument| {
            let (option, value) = argument.split_once('=').unwrap_or((argument, ""));
            if paths.iter().any(|path| Path::new(value).starts_with(path)) {
                return format!("{option}={}{value}", folder.display());
            }
            argument.clone()
        });
        let log = File::create(folder.join("log")).expect("the folder is writable");
        let mut command = command(Path::new(PODGATE));
        // All pods share the network that a container would have to itself.
        command.args(arguments).arg(format!("--addr={address}:8443")).arg(format!("--admin-addr={address}:9090"));
        if spec.automount_service_account_token == Some(true) {
            command.env("KUBECONFIG", self.service_account(&folder, spec).await);
        }
        let process = Supervised::spawn(command.stdout(log.try_clone().expect("a file can be shared")).stderr(log));
        let running = Running { address, ready: false, container: Container::Running(process) };
        self.running.insert(name.to_owned(), running);
        self.tell(name).await;
    }

    /// Writes a kubeconfig with a token of the pod's ServiceAccount, in place of the files that a
    /// container would find in /var/run/secrets.
    async fn service_account(&self, folder: &Path, spec: &PodSpec) -> PathBuf {
        let name = spec.service_account_name.as_deref().expect("the pod has a ServiceAccount");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), self.namespace);
        let request = TokenRequest::default();
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let status = answer.expect("the API server makes a token").status;
        let token = status.and_then(|status| status.token).expect("a token is there");
        let file = folder.join("kubeconfig");
        std::fs::write(&file, kubeconfig(&self.url, &token)).expect("the folder is writable");
        file
    }

    /// Writes the volumes of a pod as folders below `folder`.
    async fn mount(&self, folder: &Path, spec: &PodSpec) {
        for mount in spec.containers[0].volume_mounts.iter().flatten() {
            let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
            let volume = volume.expect("what is mounted is a volume");
            let mut files: Vec<(String, Vec<u8>)> = Vec::new();
            if let Some(source) = &volume.config_map {
                let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), self.namespace);
                let map = maps.get(&source.name).await.expect("the ConfigMap is there");
                files.extend(map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes())));
            }
            if let Some(name) = volume.secret.as_ref().and_then(|source| source.secret_name.as_deref()) {
                let secrets: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
                let secret = secrets.get(name).await.expect("the Secret is there");
                files.extend(secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)));
            }
            let path = PathBuf::from(format!("{}{}", folder.display(), mount.mount_path));
            std::fs::create_dir_all(&path).expect("the folder is writable");
            for (key, bytes) in files {
                std::fs::write(path.join(key), bytes).expect("the folder is writable");
            }
        }
    }

    /// SIGTERM first; the pod is gone when its container is.
    async fn stop(&mut self, name: &str) {
        let Some(mut running) = self.running.remove(name) else {
            return self.delete(name).await;
        };
        running.container = match running.container {
            Container::Running(process) => Container::Stopping(task::spawn_blocking(|| process.terminate())),
            Container::Stopping(ending) if ending.is_finished() => {
                let status = ending.await.expect("it ends in time");
                assert!(status.success(), "a replica that is told to stop ends with 0: {status}");
                self.addresses.push(running.address);
                return self.delete(name).await;
            }
            stopping @ Container::Stopping(_) => stopping,
        };
        self.running.insert(name.to_owned(), running);
    }

    async fn delete(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default().grace_period(0)).await.expect("the pod can be deleted");
    }

    /// Tells the API server how a pod is.
    async fn tell(&self, name: &str) {
        let Running { address, ready, .. } = &self.running[name];
        let ready = if *ready { "True" } else { "False" };
        let conditions = ["PodScheduled", "Ready"]
            .map(|kind| json!({"type": kind, "status": if kind == "Ready" { ready } else { "True" }}));
        let status = json!({"status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions,
        }});
        let told = self.pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await;
        told.expect("the status can be written");
    }
}

impl Running {
    /// Whether the readiness probe succeeds; the same handler answers on the admin port.
    fn is_ready(&self) -> bool {
        let addr: SocketAddr = format!("{}:9090", self.address).parse().expect("an address");
        matches!(self.container, Container::Running(_)) && answers_ok(addr, "/readyz")
    }
}
