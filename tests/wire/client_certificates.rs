//! Clients that have to prove who they are: `--client-ca` and `--client-name`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use podgate::certs::ClientAuthority;
use podgate::server::ClientAuthentication;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::{
    Binary, HTTP1, HTTP2, Running, Tls, ask, client_config, connect, http2, podgate, post, read_reply, send,
    try_connect, until, within,
};

const NO_CERTIFICATE: &str = "the client showed no certificate, and this server answers those with one of its \
                              --client-ca alone: in kube-apiserver's --admission-control-config-file, give the webhook \
                              plugins a kubeConfigFile with client-certificate and client-key for this server";

const HANDSHAKES_REFUSED: &str = "podgate_handshake_failures_total{reason=\"tls\"}";
const UNAUTHENTICATED: &str = "podgate_rejected_requests_total{reason=\"unauthenticated\"}";

/// An authority that signs clients' certificates.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "client CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate with a common name and DNS names.
    fn client(&self, common_name: &str, dns_names: &[&str]) -> Arc<CertifiedKey> {
        self.signed(common_name, dns_names, |_| {})
    }

    fn signed(
        &self,
        common_name: &str,
        dns_names: &[&str],
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> Arc<CertifiedKey> {
        let names: Vec<String> = dns_names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !common_name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let chain = vec![certificate.der().clone()];
        Arc::new(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).unwrap())
    }
}

/// A client that trusts `root`, offers one protocol and shows a certificate.
fn showing(root: &CertificateDer<'static>, protocol: &[u8], certificate: &Arc<CertifiedKey>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&client_config(root.clone(), &[protocol]));
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(Arc::clone(certificate)));
    Arc::new(config)
}

/// A server that asks for certificates of `authority`, with one of `names`.
async fn asking(authority: &Authority, names: &[&str]) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    fs::write(&file, &authority.certificate).unwrap();
    let authority = ClientAuthority::from_file(&file).unwrap();
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Running::start(|settings| settings.clients = Some(ClientAuthentication { authority, names })).await
}

impl Running {
    fn root(&self) -> CertificateDer<'static> {
        self.certificate.chain()[0].clone()
    }

    /// A connection that shows a certificate and speaks HTTP/1.1.
    async fn connect_showing(&self, certificate: &Arc<CertifiedKey>) -> Tls {
        connect(self.addr, showing(&self.root(), HTTP1, certificate)).await
    }
}

/// Posts a review over HTTP/2: the status, and the answer.
async fn post_http2(stream: Tls, path: &str) -> (u16, String) {
    let (mut requests, _) = http2(stream).await;
    let request = hyper::Request::post(format!("https://localhost{path}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(b"{}")))
        .unwrap();
    let response = within(requests.send_request(request)).await.unwrap();
    let status = response.status().as_u16();
    let body = within(response.into_body().collect()).await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// What ends a connection whose certificate is not taken. In TLS 1.3 the client learns of it after its
/// own handshake is done.
async fn refused(addr: SocketAddr, config: Arc<ClientConfig>) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = match try_connect(addr, config, "localhost").await {
        Ok(stream) => stream,
        Err(error) => return error.to_string(),
    };
    // It may be closed already.
    let _ = stream.write_all(post("/mutate", "{}").as_bytes()).await;
    within(stream.read_u8()).await.expect_err("an answer came").to_string()
}

#[tokio::test]
async fn without_a_certificate_only_probes_are_answered() {
    let server = asking(&Authority::new(), &[]).await;
    let mut stream = server.connect().await;
    for path in ["/mutate", "/validate"] {
        // Nothing of it is judged: this one would have been denied, and that one be no JSON.
        for body in ["deny", "no JSON"] {
            let reply = ask(&mut stream, post(path, body)).await;
            assert_eq!(reply.refusal(403, "Forbidden"), NO_CERTIFICATE, "{path}");
        }
    }
    for path in ["/healthz", "/livez", "/readyz"] {
        let reply = ask(&mut stream, format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert_eq!(reply.status, 200, "{path}");
    }
    for path in ["/mutate", "/validate"] {
        let stream = connect(server.addr, client_config(server.root(), &[HTTP2])).await;
        let (status, said) = post_http2(stream, path).await;
        assert!(status == 403 && said.contains(NO_CERTIFICATE), "{path}: {status} {said}");
    }
    assert!((server.metric(UNAUTHENTICATED).await - 6.0).abs() < 0.1);
    let metrics = server.metrics().await;
    let mut judged = metrics.lines().filter(|line| line.starts_with("podgate_requests_total{"));
    assert!(judged.all(|line| line.ends_with(" 0")), "a review was judged: {metrics}");
}

#[tokio::test]
async fn with_a_certificate_reviews_are_answered() {
    let authority = Authority::new();
    let client = authority.client("kube-apiserver", &[]);
    let server = asking(&authority, &[]).await;
    let mut stream = server.connect_showing(&client).await;
    for path in ["/mutate", "/validate", "/mutate"] {
        assert_eq!(ask(&mut stream, post(path, "{}")).await.status, 200, "{path}");
    }
    for path in ["/mutate", "/validate"] {
        let stream = connect(server.addr, showing(&server.root(), HTTP2, &client)).await;
        assert_eq!(post_http2(stream, path).await.0, 200, "{path}");
    }
    // Not even a name is needed.
    let mut stream = server.connect_showing(&authority.client("", &[])).await;
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
    assert!(server.metric(UNAUTHENTICATED).await < 0.1);
}

#[tokio::test]
async fn a_certificate_has_to_have_an_allowed_name() {
    let authority = Authority::new();
    let server = asking(&authority, &["kube-apiserver", "api.example.com"]).await;
    for client in [
        authority.client("kube-apiserver", &[]),
        authority.client("api.example.com", &["other.example.com"]),
        authority.client("other", &["other.example.com", "api.example.com"]),
        authority.client("", &["kube-apiserver"]),
    ] {
        for path in ["/mutate", "/validate"] {
            let mut stream = server.connect_showing(&client).await;
            assert_eq!(ask(&mut stream, post(path, "{}")).await.status, 200);
            let stream = connect(server.addr, showing(&server.root(), HTTP2, &client)).await;
            assert_eq!(post_http2(stream, path).await.0, 200);
        }
    }
    for (client, found) in [
        (authority.client("kubelet", &[]), "\"kubelet\""),
        (authority.client("kubelet", &["node.example.com"]), "\"kubelet\", \"node.example.com\""),
        (authority.client("", &["x.api.example.com"]), "\"x.api.example.com\""),
        (authority.client("Kube-APIserver", &[]), "\"Kube-APIserver\""),
        (authority.client("", &[]), "no name"),
    ] {
        let message = format!(
            "the client's certificate is for {found}, and allowed are \"kube-apiserver\", \"api.example.com\": have \
             kube-apiserver show one of these, or name the other with this server's --client-name"
        );
        let mut stream = server.connect_showing(&client).await;
        for path in ["/mutate", "/validate"] {
            assert_eq!(ask(&mut stream, post(path, "{}")).await.refusal(403, "Forbidden"), message);
        }
        assert_eq!(ask(&mut stream, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.status, 200);
        let stream = connect(server.addr, showing(&server.root(), HTTP2, &client)).await;
        assert_eq!(post_http2(stream, "/mutate").await.0, 403);
    }
    // No name helps without a certificate.
    let reply = ask(&mut server.connect().await, post("/mutate", "{}")).await;
    assert_eq!(reply.refusal(403, "Forbidden"), NO_CERTIFICATE);
    assert!((server.metric(UNAUTHENTICATED).await - 16.0).abs() < 0.1);
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_ends_the_handshake() {
    let (authority, foreign) = (Authority::new(), Authority::new());
    let server = asking(&authority, &["kube-apiserver"]).await;
    let expired = authority.signed("kube-apiserver", &[], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let future = authority.signed("kube-apiserver", &[], |params| {
        params.not_before = rcgen::date_time_ymd(2090, 1, 1);
        params.not_after = rcgen::date_time_ymd(2091, 1, 1);
    });
    let of_a_server = authority.signed("kube-apiserver", &[], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    // The foreign one's issuer has the right name, and another key.
    let clients = [
        (foreign.client("kube-apiserver", &[]), ["UnknownCA", "DecryptError", "BadCertificate"].as_slice()),
        (expired, &["CertificateExpired"]),
        (future, &["BadCertificate", "CertificateExpired"]),
        (of_a_server, &["BadCertificate", "UnsupportedCertificate"]),
    ];
    for (count, (client, alerts)) in (1_u32..).zip(clients) {
        let said = refused(server.addr, showing(&server.root(), HTTP1, &client)).await;
        assert!(alerts.iter().any(|alert| said.contains(alert)), "{said}");
        server.until_metric(HANDSHAKES_REFUSED, f64::from(count)).await;
    }
    // Others go on.
    let mut stream = server.connect_showing(&authority.client("kube-apiserver", &[])).await;
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
    assert!(server.metric(UNAUTHENTICATED).await < 0.1);
}

#[tokio::test]
async fn a_server_that_was_not_told_to_asks_for_no_certificate() {
    let server = Running::start(|_| {}).await;
    let foreign = Authority::new().client("anyone", &[]);
    let mut stream = server.connect_showing(&foreign).await;
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
}

/// A file of authorities, with another file put in its place at each change, so that nobody reads half of one.
struct AuthorityFile(TempDir);

impl AuthorityFile {
    fn new(text: &str) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.replace(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("client-ca.crt")
    }

    fn replace(&self, text: &str) {
        let new = self.0.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Whether `/metrics` has this line.
async fn has_metric(server: &Binary, line: &str) -> bool {
    let mut stream = TcpStream::connect(server.admin_addr).await.unwrap();
    ask(&mut stream, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.text().lines().any(|found| found == line)
}

const REVIEW: &str = include_str!("../../examples/reviews/mutated.json");

#[tokio::test]
async fn the_authorities_are_read_again() {
    let (old, new) = (Authority::new(), Authority::new());
    let (old_client, new_client) = (old.client("kube-apiserver", &[]), new.client("", &["kube-apiserver"]));
    let file = AuthorityFile::new(&old.certificate);
    let path = file.path();
    let mut server = Binary::serve(&[
        "--client-ca",
        text(&path),
        "--client-name",
        "someone",
        "--client-name",
        "kube-apiserver",
        "--reload-interval",
        "20ms",
    ])
    .await;
    let of = |client: &Arc<CertifiedKey>| showing(&server.root, HTTP1, client);
    let (with_old, with_new, addr) = (of(&old_client), of(&new_client), server.addr);
    let mut early = connect(addr, Arc::clone(&with_old)).await;
    assert_eq!(ask(&mut early, post("/mutate", REVIEW)).await.status, 200);
    assert!(refused(addr, Arc::clone(&with_new)).await.contains("alert"));
    server.until_logged("a client certificate was refused").await;

    // Both, as while clients change over.
    file.replace(&format!("{}{}", old.certificate, new.certificate));
    server.until_logged("authorities=2").await;
    for config in [&with_old, &with_new] {
        let mut stream = connect(addr, Arc::clone(config)).await;
        assert_eq!(ask(&mut stream, post("/mutate", REVIEW)).await.status, 200);
    }

    // What is wrong changes nothing.
    for (wrong, what) in [
        ("", "holds no certificate"),
        (&new.certificate[..200], "it is half written"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "is not that of a certificate authority"),
    ] {
        file.replace(wrong);
        server.until_logged(what).await;
        let mut stream = connect(addr, Arc::clone(&with_new)).await;
        assert_eq!(ask(&mut stream, post("/mutate", REVIEW)).await.status, 200, "{what}");
    }
    assert!(has_metric(&server, "podgate_last_reload_successful{file=\"client_ca\"} 0").await);
    assert!(has_metric(&server, "podgate_reloads_total{file=\"client_ca\",result=\"failure\"} 3").await);

    file.replace(&new.certificate);
    until("the new authority alone", async || {
        has_metric(&server, "podgate_reloads_total{file=\"client_ca\",result=\"success\"} 2").await
    })
    .await;
    assert!(has_metric(&server, "podgate_last_reload_successful{file=\"client_ca\"} 1").await);
    assert!(refused(addr, with_old).await.contains("alert"));
    let mut stream = connect(addr, with_new).await;
    assert_eq!(ask(&mut stream, post("/mutate", REVIEW)).await.status, 200);
    // What was proved before stays proved.
    send(&mut early, post("/mutate", REVIEW)).await;
    assert_eq!(read_reply(&mut early).await.status, 200);
}

#[tokio::test]
async fn the_log_says_whose_certificate_was_refused_and_why() {
    let authority = Authority::new();
    let file = AuthorityFile::new(&authority.certificate);
    let path = file.path();
    let server = Binary::serve(&["--client-ca", text(&path), "--drain-delay", "0s"]).await;
    let expired = authority.signed("kube-\napiserver", &[], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    refused(server.addr, showing(&server.root, HTTP1, &expired)).await;
    server.signal("TERM").await;
    let (_, log) = server.ended().await;
    let line = log.lines().find(|line| line.contains("a client certificate was refused")).expect(&log);
    for part in ["CN=kube-", "issuer=\"CN=client CA\"", "certificate expired"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn a_file_that_holds_no_authority_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::new();
    let leaf = podgate::certs::issue(&[]).unwrap().certificate;
    for (name, content) in [
        ("empty", ""),
        ("cut", &authority.certificate[..200]),
        ("garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("leaf", &format!("{}{leaf}", authority.certificate)),
    ] {
        fs::write(path(name), content).unwrap();
    }
    for (name, what) in [
        (
            "missing",
            "cannot read FILE: No such file or directory (os error 2); see that it exists and that podgate may read it\n",
        ),
        ("empty", "FILE holds no certificate: it needs a section that begins with -----BEGIN CERTIFICATE-----\n"),
        ("cut", "FILE ends inside a section: it is half written"),
        ("garbage", "certificate 1 in FILE is not that of a certificate authority: "),
        (
            "leaf",
            "certificate 2 in FILE is not that of a certificate authority: it is a certificate that may not sign others \
             (its basic constraints do not say CA); take the one that signed the clients' certificates\n",
        ),
    ] {
        let file = path(name);
        let output =
            podgate(&["serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--client-ca", text(&file)])
                .await;
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("podgate: {}", what.replace("FILE", text(&file)));
        assert!(said.contains(&expected), "{said}");
    }
}
