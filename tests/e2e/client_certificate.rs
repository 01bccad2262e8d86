//! An API server that proves who it is: its admission configuration names a client certificate for
//! podgate, which answers nobody else.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::pods::pod;
use super::process::eventually;
use super::registration;
use super::replica::{Replica, make_certificates};

/// The files that the administrator of a cluster writes.
struct Files {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Files {
    /// With an authority for clients, in `client-ca.crt`.
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admission CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a certificate").pem();
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let files = Self { folder, issuer: Issuer::new(params, key) };
        files.write("client-ca.crt", &authority);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("the folder is writable");
        self.path(name)
    }

    /// A user of a kubeconfig that shows a certificate with this common name.
    fn user(&self, common_name: &str) -> Value {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        json!({
            "client-certificate": self.write(&format!("{common_name}.crt"), &certificate),
            "client-key": self.write(&format!("{common_name}.key"), &key.serialize_pem()),
        })
    }

    /// The file of `--admission-control-config-file`, with a user for each host and port.
    fn admission_configuration(&self, users: &[(String, Value)]) -> PathBuf {
        let users: Vec<Value> = users.iter().map(|(name, user)| json!({"name": name, "user": user})).collect();
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users});
        let kubeconfig = self.write("kubeconfig.yaml", &kubeconfig.to_string());
        let plugin = |name: &str| {
            json!({
                "name": name,
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                    "kubeConfigFile": kubeconfig,
                },
            })
        };
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")],
        });
        self.write("admission.yaml", &configuration.to_string())
    }
}

/// A replica that answers only `kube-apiserver`, with a certificate of the authority.
fn asking(files: &Files, certs: &Path, more: &[&str]) -> Replica {
    let authority = files.path("client-ca.crt");
    let authority = authority.to_str().expect("the path is text");
    let arguments = [&["--client-ca", authority, "--client-name", "kube-apiserver"], more].concat();
    Replica::start_with(certs, "127.0.0.1:0", &arguments)
}

/// What is said of a pod once the webhooks are at `replica`.
fn refusal_by(cluster: &Cluster, certs: &Path, replica: &Replica, why: &str) -> String {
    registration::apply(&cluster.plane, replica.addr, &certs.join("ca.crt"));
    eventually(why, || {
        let said = cluster.plane.create(&pod("refused", &json!({}), &json!({})));
        if said.success {
            // The API server has not seen the change yet.
            cluster.plane.must(&["delete", "pod", "refused", "--grace-period=0", "--force"]);
        }
        said.stderr.contains(why).then_some(said.stderr)
    })
}

#[test]
fn only_an_api_server_with_the_certificate_is_answered() {
    let files = Files::new();
    let certs = make_certificates(files.folder.path());
    // As a webhook behind a Service is called, and as one with a URL.
    let (over_http1, over_http2) = (asking(&files, &certs, &["--http1-only"]), asking(&files, &certs, &[]));
    let (misnamed, unnamed) = (asking(&files, &certs, &["--http1-only"]), asking(&files, &certs, &[]));
    let right = files.user("kube-apiserver");
    let configuration = files.admission_configuration(&[
        (over_http1.addr.to_string(), right.clone()),
        (over_http2.addr.to_string(), right),
        (misnamed.addr.to_string(), files.user("kubelet")),
    ]);
    let plane = ControlPlane::start_with(&[&format!("--admission-control-config-file={}", configuration.display())]);
    registration::register(&plane, over_http1.addr, &certs.join("ca.crt"));
    let mut cluster = Cluster { plane, replica: over_http1 };

    let hardened = r#"{"allowPrivilegeEscalation":false,"runAsNonRoot":true}"#;
    let context = "{.spec.containers[0].securityContext}";
    cluster.create(&pod("over-http1", &json!({}), &json!({})));
    assert_eq!(cluster.plane.field("pod/over-http1", context), hardened);
    assert!(cluster.refusal(&pod("bad", &json!({}), &json!({"hostNetwork": true}))).contains("hostNetwork"));

    cluster.replica.kill();
    cluster.replica = over_http2;
    registration::apply(&cluster.plane, cluster.replica.addr, &certs.join("ca.crt"));
    // Until the API server has seen the change, it calls the one that is gone.
    eventually("the other replica is asked", || {
        cluster.plane.create(&pod("over-http2", &json!({}), &json!({}))).success.then_some(())
    });
    assert_eq!(cluster.plane.field("pod/over-http2", context), hardened);

    let unauthenticated = "podgate_rejected_requests_total{reason=\"unauthenticated\"}";
    for (replica, why) in [
        (&misnamed, "the client's certificate is for \"kubelet\", and allowed are \"kube-apiserver\": have"),
        (&unnamed, "the client showed no certificate, and this server answers those with one of its --client-ca alone"),
    ] {
        let said = refusal_by(&cluster, &certs, replica, why);
        assert!(said.contains("failed calling webhook \"pod-mutator.security.example.com\""), "{said}");
        assert!(replica.metric(unauthenticated).is_some_and(|count| count > 0.0));
        assert!(replica.is_ready());
    }
    assert_eq!(cluster.replica.metric(unauthenticated), Some(0.0));
}
