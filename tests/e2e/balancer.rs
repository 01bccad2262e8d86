//! A TCP balancer as a Service is one: new connections go to replicas that are ready, and stay there.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::replica::answers_ok;

/// Where a replica serves, and where it tells whether it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
}

/// How often readiness is asked for, as the deployment's probe does.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Backends {
    known: Mutex<Vec<Backend>>,
    ready: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

/// The balancer; its threads end with the test.
pub(crate) struct Balancer {
    pub(crate) addr: SocketAddr,
    backends: Arc<Backends>,
}

impl Balancer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it has an address");
        let backends = Arc::new(Backends::default());
        let probing = Arc::clone(&backends);
        thread::spawn(move || {
            loop {
                probing.probe();
                thread::sleep(PROBE_INTERVAL);
            }
        });
        let forwarding = Arc::clone(&backends);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let backends = Arc::clone(&forwarding);
                thread::spawn(move || backends.forward(&client));
            }
        });
        Self { addr, backends }
    }

    /// Sets the replicas, and waits until those that are ready are known.
    pub(crate) fn set(&self, backends: Vec<Backend>) {
        *self.backends.known.lock().unwrap_or_else(PoisonError::into_inner) = backends;
        self.backends.probe();
    }
}

impl Backends {
    fn probe(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ready = known
            .into_iter()
            .filter(|backend| answers_ok(backend.admin_addr, "/readyz"))
            .map(|backend| backend.addr)
            .collect();
        *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = ready;
    }

    fn forward(&self, client: &TcpStream) {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if ready.is_empty() {
            return;
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let Ok(server) = TcpStream::connect(ready[next % ready.len()]) else { return };
        let nodelay = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        nodelay.expect("a socket can do without delay");
        thread::scope(|scope| {
            scope.spawn(|| copy(client, &server));
            copy(&server, client);
        });
    }
}

/// Copies one way until it ends, and passes the end on.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    // Whatever ends it, the other side learns of it.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}
