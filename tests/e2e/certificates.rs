//! The certificate that podgate keeps itself: made, shared, renewed and published by replicas that may
//! do what `deploy/base/rbac.yaml` allows and nothing else.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;

use super::balancer::{Backend, Balancer};
use super::control_plane::ControlPlane;
use super::load::under_load;
use super::process::eventually;
use super::registration::{documents, until_in_force};
use super::replica::Replica;

const MUTATOR: &str = "mutatingwebhookconfiguration/pod-security-mutator";
const VALIDATOR: &str = "validatingwebhookconfiguration/pod-security-validator";
/// An authority is due after 30 s, a leaf after 10 s.
const SHORT_LIVES: [&str; 4] = ["--tls-leaf-lifetime", "15s", "--tls-ca-lifetime", "45s"];
/// A name of the Service, and so of the certificate.
const SERVICE: &str = "webhook-service.security-system.svc";

/// A control plane where podgate's ServiceAccount may do what it needs, and replicas that run as it.
struct Kept {
    // In the order in which they end.
    replicas: Vec<Replica>,
    balancer: Balancer,
    kubeconfig: PathBuf,
    plane: ControlPlane,
}

impl Kept {
    fn start(arguments: &[&str]) -> Self {
        let mut kept = Self::without_replicas();
        kept.replicas = (0..3).map(|_| Replica::keeping(&kept.kubeconfig, arguments)).collect();
        for replica in &kept.replicas {
            eventually("a replica has a certificate", || replica.is_ready().then_some(()));
        }
        let backend = |replica: &Replica| Backend { addr: replica.addr, admin_addr: replica.admin_addr() };
        kept.balancer.set(kept.replicas.iter().map(backend).collect());
        kept
    }

    fn without_replicas() -> Self {
        let plane = ControlPlane::start();
        for file in ["namespace.yaml", "service-account.yaml", "rbac.yaml"] {
            let path = format!("{}/deploy/base/{file}", env!("CARGO_MANIFEST_DIR"));
            plane.must(&["--namespace=security-system", "apply", "-f", &path]);
        }
        let token = plane.must(&["--namespace=security-system", "create", "token", "podgate"]);
        let kubeconfig = plane.kubeconfig_for("podgate", &token);
        Self { replicas: Vec::new(), balancer: Balancer::start(), kubeconfig, plane }
    }

    /// Registers podgate without a caBundle, and waits until it is in force all the same.
    fn register(&self) {
        for document in documents(self.balancer.addr, None) {
            let said = self.plane.apply(&document.to_string());
            assert!(said.success, "{}", said.stderr);
        }
        until_in_force(&self.plane);
    }

    /// An entry of the Secret.
    fn secret(&self, key: &str) -> Vec<u8> {
        let path = format!("--output=jsonpath={{.data.{}}}", key.replace('.', "\\."));
        let encoded = self.plane.must(&["--namespace=security-system", "get", "secret", "webhook-tls", &path]);
        STANDARD.decode(encoded).expect("the API server has it in base64")
    }

    fn patch_secret(&self, data: &serde_json::Value) {
        let patch = json!({"data": data}).to_string();
        self.plane.must(&["--namespace=security-system", "patch", "secret", "webhook-tls", "--patch", &patch]);
    }

    /// What both configurations have for a caBundle; every webhook the same.
    fn bundle(&self) -> Option<Vec<u8>> {
        let path = "{range .webhooks[*]}{.clientConfig.caBundle}{\" \"}{end}";
        let all = self.plane.field(MUTATOR, path) + &self.plane.field(VALIDATOR, path);
        let distinct: BTreeSet<&str> = all.split_whitespace().collect();
        let count = all.split_whitespace().count();
        let bundle = (count == 3 && distinct.len() == 1).then(|| distinct.into_iter().next())??;
        Some(STANDARD.decode(bundle).expect("base64"))
    }

    /// Waits until every caBundle is what the Secret says.
    fn until_published(&self) {
        eventually("the caBundle is that of the Secret", || (self.bundle()? == self.secret("ca.crt")).then_some(()));
    }

    /// Waits until every replica shows the certificate of the Secret, and clients trust it.
    fn until_shown(&self) {
        for replica in &self.replicas {
            eventually("a replica shows the certificate of the Secret", || {
                let leaf = certificates(&self.secret("tls.crt")).into_iter().next()?;
                (shown(replica.addr, &self.secret("ca.crt"))? == leaf).then_some(())
            });
        }
    }

    fn create(&self, name: &str) -> bool {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        self.plane.create(&pod.to_string()).success
    }

    /// Waits until pods are created again: how long that took.
    fn until_healed(&self, name: &str) {
        let since = Instant::now();
        eventually("pods are created again", || self.create(name).then_some(()));
        println!("{name}: healed in {} ms", since.elapsed().as_millis());
    }
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().expect("PEM")
}

/// The certificate that a server shows, where a client that trusts the authorities takes it.
fn shown(addr: SocketAddr, authorities: &[u8]) -> Option<CertificateDer<'static>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(certificates(authorities));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(SERVICE).expect("a name");
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("the settings are right");
    let mut stream = std::net::TcpStream::connect(addr).ok()?;
    while client.is_handshaking() {
        client.complete_io(&mut stream).ok()?;
    }
    Some(client.peer_certificates()?.first()?.clone().into_owned())
}

#[test]
fn three_replicas_that_start_at_once_share_one_certificate() {
    let kept = Kept::start(&[]);
    kept.until_shown();
    // One write made it, and nobody wrote it again.
    let managers = kept.plane.must(&[
        "--namespace=security-system",
        "get",
        "secret",
        "webhook-tls",
        "--show-managed-fields",
        "--output=jsonpath={.type} {.metadata.managedFields[*].operation}",
    ]);
    assert_eq!(managers, "kubernetes.io/tls Apply");
    // podgate registers nothing by itself.
    assert!(!kept.plane.kubectl(&["get", MUTATOR]).success);
    assert!(!kept.plane.kubectl(&["get", VALIDATOR]).success);

    kept.register();
    kept.until_published();
    let others = kept.replicas.iter().map(|replica| {
        ["read_secret", "read_registration", "write_registration", "watch"].map(|operation| {
            replica
                .metric(&format!("podgate_cluster_errors_total{{operation=\"{operation}\"}}"))
                .expect("it is counted")
        })
    });
    for errors in others {
        assert!(errors.iter().all(|count| *count < 0.5), "nothing that deploy/base/rbac.yaml forbids: {errors:?}");
    }

    // The emergency exit stays open.
    kept.plane.must(&["delete", MUTATOR, VALIDATOR]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!kept.plane.kubectl(&["get", MUTATOR]).success);
    assert!(!kept.plane.kubectl(&["get", VALIDATOR]).success);
    assert!(kept.replicas.iter().all(Replica::is_ready));
}

#[test]
fn the_service_account_may_do_nothing_else() {
    let kept = Kept::without_replicas();
    let may = |verb: &str, object: &str| {
        let user = "--as=system:serviceaccount:security-system:podgate";
        kept.plane.kubectl(&["auth", "can-i", verb, object, user, "--namespace=security-system"]).success
    };
    assert!(may("get", "secret/webhook-tls") && may("patch", MUTATOR) && may("patch", VALIDATOR));
    for verb in ["get", "list", "create", "patch"] {
        assert!(!may(verb, "secrets"), "{verb}");
        assert!(!may(verb, "secret/other"), "{verb}");
    }
    for object in [MUTATOR, VALIDATOR] {
        assert!(!may("create", object) && !may("delete", object) && !may("update", object), "{object}");
    }
    assert!(!may("patch", "validatingwebhookconfiguration/other") && !may("get", "pods"));
}

#[test]
fn leaf_and_authority_are_renewed_under_load() {
    let kept = Kept::start(&SHORT_LIVES);
    kept.register();
    kept.until_published();
    let first = certificates(&kept.secret("ca.crt"));
    assert_eq!(first.len(), 1);
    let mut leaves = BTreeSet::new();
    let mut stages = Vec::new();
    let (created, failed) = under_load(&kept.plane.url(), 2_000, || {
        eventually("the authority is another", || {
            leaves.insert(certificates(&kept.secret("tls.crt"))[0].as_ref().to_vec());
            let bundle = certificates(&kept.bundle()?);
            let stage = (bundle.contains(&first[0]), bundle.len());
            if stages.last() != Some(&stage) {
                stages.push(stage);
            }
            (stage == (false, 1)).then_some(())
        });
    });
    println!("leaf and authority renewed: {} leaves, {created} pods created, {failed} failed", leaves.len());
    assert_eq!(failed, 0);
    // The old alone, both, the new alone.
    assert_eq!(stages, [(true, 1), (true, 2), (false, 1)]);
    assert!(leaves.len() >= 3, "at least one leaf of the old authority was renewed, and one of the new");
    kept.until_shown();
    kept.until_published();
}

#[test]
fn a_blanked_ca_bundle_is_put_back() {
    let kept = Kept::start(&[]);
    kept.register();
    kept.until_published();
    let before = kept.bundle();
    // What a chart does that has `caBundle: ""` in it.
    for (name, object) in [("mutator", MUTATOR), ("validator", VALIDATOR)] {
        let blank = r#"[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]"#;
        kept.plane.must(&["patch", object, "--type=json", "--patch", blank]);
        kept.until_healed(&format!("{name}-blanked"));
        kept.until_published();
    }
    // What `kubectl replace` does with the file that has none.
    for document in documents(kept.balancer.addr, None) {
        let said =
            kept.plane.kubectl_as(super::control_plane::Who::Admin, &["replace", "-f", "-"], &document.to_string());
        assert!(said.success, "{}", said.stderr);
    }
    kept.until_healed("replaced");
    kept.until_published();
    assert_eq!(kept.bundle(), before);
}

#[test]
fn a_lost_or_corrupted_secret_is_mended() {
    let kept = Kept::start(&[]);
    kept.register();
    kept.until_published();
    let entries = || ["ca.crt", "ca.key", "tls.crt", "tls.key"].map(|key| kept.secret(key));
    let before = entries();
    let there = || kept.plane.kubectl(&["--namespace=security-system", "get", "secret", "webhook-tls"]).success;

    // Gone: back as it was, and no pod ever waits for that.
    let (created, failed) = under_load(&kept.plane.url(), 300, || {
        kept.plane.must(&["--namespace=security-system", "delete", "secret", "webhook-tls"]);
        eventually("the Secret is back", || there().then_some(()));
    });
    println!("Secret deleted: {created} pods created, {failed} failed");
    assert_eq!(failed, 0);
    assert_eq!(entries(), before);

    // Junk all over: the same.
    let junk = STANDARD.encode("junk");
    kept.patch_secret(&json!({"ca.crt": junk, "ca.key": junk, "tls.crt": junk, "tls.key": junk}));
    eventually("the Secret is as it was", || (entries() == before).then_some(()));

    // Only the certificate: a new one of the same authority.
    let (created, failed) = under_load(&kept.plane.url(), 300, || {
        kept.patch_secret(&json!({"tls.crt": junk}));
        eventually("there is a new certificate", || {
            let leaf = kept.secret("tls.crt");
            (leaf != before[2] && leaf != b"junk").then_some(())
        });
        kept.until_shown();
    });
    println!("certificate corrupted: {created} pods created, {failed} failed");
    assert_eq!((failed, kept.secret("ca.crt")), (0, before[0].clone()));
    assert!(kept.replicas.iter().all(Replica::is_ready));
}

#[test]
fn without_the_api_server_podgate_serves_on_and_without_a_certificate_it_is_not_ready() {
    let mut kept = Kept::start(&[]);
    let authorities = kept.secret("ca.crt");
    let leaf = certificates(&kept.secret("tls.crt")).remove(0);
    // Someone who may do nothing: alive, and the probe tells why it is not ready.
    let stranger = Replica::keeping(&kept.plane.kubeconfig_for("author", "author-token"), &[]);
    eventually("the probe says why", || stranger.readiness().contains("podgate may not read the Secret").then_some(()));
    assert!(stranger.is_alive() && shown(stranger.addr, &authorities).is_none());
    assert!(stranger.readiness().contains("the server is not ready, for it has no certificate yet: "));
    // A time of 0 would be one that is over.
    assert_eq!(stranger.metric("podgate_certificate_expiry_timestamp_seconds"), None);
    assert_eq!(stranger.metric("podgate_last_reload_successful{file=\"certificate\"}"), None);
    assert!(stranger.readiness().contains("security-system/webhook-tls"));

    kept.plane.stop_api_server();
    for replica in &kept.replicas {
        let failed = "podgate_cluster_errors_total{operation=\"read_secret\"}";
        eventually("the API server is missed", || (replica.metric(failed)? > 0.5).then_some(()));
        assert!(replica.is_ready());
        assert_eq!(shown(replica.addr, &authorities).as_ref(), Some(&leaf));
    }
}
