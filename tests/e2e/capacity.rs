//! Over capacity: podgate says when to come back, and the API server does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::pods::pod;
use super::process::eventually;

const BUSY: &str = "podgate_rejected_requests_total{reason=\"busy\"}";

/// Bytes of a review that needs a share of the memory for bodies.
const LARGE: usize = 200_000;

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn config(authority: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).expect("ca.crt is there")).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(config.expect("the provider has both").with_root_certificates(roots).with_no_client_auth())
}

fn connect(addr: SocketAddr, config: &Arc<ClientConfig>) -> Tls {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::clone(config), name).expect("a right configuration");
    let stream = TcpStream::connect(addr).expect("podgate listens");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a duration");
    StreamOwned::new(connection, stream)
}

/// The head of a review, and its body but for the last byte.
fn begin(stream: &mut Tls, length: usize) -> std::io::Result<()> {
    let head = format!(
        "POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&vec![b' '; length - 1])?;
    stream.flush()
}

/// Holds a body's share of the memory until it is released; again each time the server's patience ends.
fn hold(addr: SocketAddr, config: &Arc<ClientConfig>, length: usize, released: &AtomicBool) {
    while !released.load(Ordering::Relaxed) {
        let mut stream = connect(addr, config);
        if begin(&mut stream, length).is_err() {
            continue;
        }
        let mut answer = [0; 1];
        while !released.load(Ordering::Relaxed) {
            match stream.read(&mut answer) {
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                }
                // An answer, or the end.
                _ => break,
            }
        }
    }
}

#[test]
fn the_api_server_comes_back_when_podgate_is_over_capacity() {
    let cluster = Cluster::start();
    let (addr, config) = (cluster.replica.addr, config(&cluster.plane.path("certs/ca.crt")));
    let limits = podgate::server::Limits::default();
    let released = AtomicBool::new(false);
    let busy = || cluster.replica.metric(BUSY).expect("it is counted from zero");
    let mut patient: Value = serde_json::from_str(&pod("patient", &json!({}), &json!({}))).expect("JSON");
    patient["metadata"]["annotations"] = json!({"large": "x".repeat(LARGE)});
    std::thread::scope(|scope| {
        // Together they hold all there is.
        for _ in 0..limits.bodies_bytes / limits.body_bytes {
            scope.spawn(|| hold(addr, &config, limits.body_bytes, &released));
        }
        eventually("there is no room for another body", || {
            let mut probe = connect(addr, &config);
            probe.sock.set_read_timeout(None).expect("a duration");
            begin(&mut probe, LARGE).and_then(|()| probe.write_all(b" ")).ok()?;
            let mut status = [0; 12];
            probe.read_exact(&mut status).ok()?;
            (&status == b"HTTP/1.1 503").then_some(())
        });
        let before = busy();
        let create = scope.spawn(|| cluster.plane.create(&patient.to_string()));
        eventually("the API server is told to come back", || (busy() > before).then_some(()));
        released.store(true, Ordering::Relaxed);
        let said = create.join().expect("kubectl runs");
        assert!(said.success, "{}", said.stderr);
    });
    assert_eq!(cluster.plane.field("pod/patient", "{.spec.containers[0].resources.limits.cpu}"), "1");
}
