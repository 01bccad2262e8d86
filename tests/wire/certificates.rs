//! Certificates: what `podgate certs` writes, and what is said of files that do not fit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use podgate::certs::{self, SERVICE_NAMES, ServerCertificate};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;
use x509_parser::prelude::{GeneralName, X509Certificate};

use crate::support::{HTTP1, Running, ask, client_config, podgate, post, try_connect};

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[tokio::test]
async fn certs_writes_what_serve_and_its_clients_need() {
    let directory = tempfile::tempdir().unwrap();
    let certs = directory.path().join("made/here");
    let output = podgate(&["certs", "--dir", text(&certs), "--host", "example.com", "--host", "10.0.0.7"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files: Vec<_> = fs::read_dir(&certs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["ca.crt", "tls.crt", "tls.key"]);
    let mode = |name| fs::metadata(certs.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("tls.key"), 0o600);

    let certificate = ServerCertificate::from_files(&certs.join("tls.crt"), &certs.join("tls.key")).unwrap();
    let root = CertificateDer::from_pem_file(certs.join("ca.crt")).unwrap();
    let server = Running::start_with(certificate, |_| {}).await;
    let config = client_config(root, &[HTTP1]);
    for name in SERVICE_NAMES.iter().chain(&["localhost", "127.0.0.1", "::1", "example.com", "10.0.0.7"]) {
        let mut stream = try_connect(server.addr, config.clone(), name).await.expect(name);
        assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200, "{name}");
    }
    for name in ["example.org", "webhook-service.default.svc", "10.0.0.8"] {
        assert!(try_connect(server.addr, config.clone(), name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn certs_overwrites_nothing_unless_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("tls.key");
    fs::write(&key, "precious").unwrap();
    let output = podgate(&["certs", "--dir", text(directory.path())]).await;
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    let expected =
        format!("podgate: {} is there already: choose another --dir, or overwrite it with --force\n", key.display());
    assert_eq!(message, expected);
    assert_eq!(fs::read_to_string(&key).unwrap(), "precious");
    assert!(!directory.path().join("ca.crt").exists());

    let output = podgate(&["certs", "--dir", text(directory.path()), "--force"]).await;
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    ServerCertificate::from_files(&directory.path().join("tls.crt"), &key).unwrap();
}

#[tokio::test]
async fn certs_refuses_what_is_no_host() {
    let directory = tempfile::tempdir().unwrap();
    let output = podgate(&["certs", "--dir", text(directory.path()), "--host", "https://example.com"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "podgate: \"https://example.com\" is neither a host name nor an IP address: give --host a name such as \
         webhook.example.com\n"
    );
}

#[test]
fn certificates_say_what_they_are_for() {
    let issued = certs::issue(&[]).unwrap();
    let authority = CertificateDer::from_pem_slice(issued.authority.as_bytes()).unwrap();
    let (_, authority) = x509_parser::parse_x509_certificate(&authority).unwrap();
    let constraints = authority.basic_constraints().unwrap().unwrap();
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    assert!(authority.key_usage().unwrap().unwrap().value.key_cert_sign());
    assert_eq!(days(&authority), 3650);

    let server = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let (_, server) = x509_parser::parse_x509_certificate(&server).unwrap();
    assert!(!server.is_ca());
    assert_eq!(days(&server), 365);
    let usage = server.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any);
    let names: Vec<String> =
        server.subject_alternative_name().unwrap().unwrap().value.general_names.iter().map(name).collect();
    assert_eq!(
        names,
        [
            "webhook-service.security-system.svc",
            "webhook-service",
            "webhook-service.security-system",
            "webhook-service.security-system.svc.cluster.local",
            "localhost",
            "[127, 0, 0, 1]",
            "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]",
        ]
    );
}

fn days(certificate: &X509Certificate<'_>) -> i64 {
    let validity = certificate.validity();
    (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400
}

fn name(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(address) => format!("{address:?}"),
        other => panic!("{other:?}"),
    }
}

/// A directory with a certificate, its key, and files that are neither.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let issued = certs::issue(&[]).unwrap();
        let other = certs::issue(&[]).unwrap();
        let texts = [
            ("tls.crt", issued.certificate.as_str()),
            ("tls.key", &issued.key),
            ("other.key", &other.key),
            ("empty", ""),
            ("cut", &issued.key[..100]),
            ("not-x509", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            ("not-a-key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            ("encrypted", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
        ];
        for (name, text) in texts {
            fs::write(files.path(name), text).unwrap();
        }
        let spoiled = format!("{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", issued.certificate);
        fs::write(files.path("spoiled-chain"), spoiled).unwrap();
        fs::write(files.path("full-chain"), issued.certificate + &issued.authority).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What is said of a pair, without the directory.
    fn refusal(&self, certificate: &str, key: &str) -> String {
        let error =
            ServerCertificate::from_files(&self.path(certificate), &self.path(key)).expect_err("they do not fit");
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn a_pair_that_fits_is_taken() {
    let files = Files::new();
    for certificate in ["tls.crt", "full-chain"] {
        ServerCertificate::from_files(&files.path(certificate), &files.path("tls.key")).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let files = Files::new();
    let no_key = "holds no private key that podgate can read: it needs an unencrypted PRIVATE KEY, EC PRIVATE KEY or RSA \
                  PRIVATE KEY section";
    let expected = [
        (
            "tls.crt",
            "other.key",
            "the key in other.key does not belong to the first certificate in tls.crt: take the two that were made \
             together, the server's own certificate first"
                .to_owned(),
        ),
        (
            "empty",
            "tls.key",
            "empty holds no certificate: it needs a section that begins with -----BEGIN CERTIFICATE-----".to_owned(),
        ),
        (
            "tls.key",
            "tls.key",
            "tls.key holds no certificate: it needs a section that begins with -----BEGIN CERTIFICATE-----".to_owned(),
        ),
        ("tls.crt", "tls.crt", format!("tls.crt {no_key}")),
        ("tls.crt", "encrypted", format!("encrypted {no_key}")),
        (
            "missing.crt",
            "tls.key",
            "cannot read missing.crt: No such file or directory (os error 2); see that it exists and that podgate may \
             read it"
                .to_owned(),
        ),
    ];
    for (certificate, key, message) in expected {
        assert_eq!(files.refusal(certificate, key), message);
    }
    for (certificate, key, start) in [
        ("tls.crt", "cut", "cut ends inside a section: it is half written"),
        ("not-x509", "tls.key", "certificate 1 in not-x509 is no X.509 certificate"),
        ("spoiled-chain", "tls.key", "certificate 2 in spoiled-chain is no X.509 certificate"),
        ("tls.crt", "not-a-key", "the key in not-a-key cannot be used"),
    ] {
        let message = files.refusal(certificate, key);
        assert!(message.starts_with(start), "{message}");
    }
}

#[tokio::test]
async fn serve_says_why_it_does_not_start() {
    let files = Files::new();
    let (certificate, key) = (files.path("tls.crt"), files.path("other.key"));
    let output = podgate(&["serve", "--tls-cert", text(&certificate), "--tls-key", text(&key)]).await;
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("podgate: the key in "), "{message}");

    let output = podgate(&["serve", "--tls-cert", text(&certificate)]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--tls-key"));

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for flag in ["--addr", "--admin-addr"] {
        let other = if flag == "--addr" { "--admin-addr" } else { "--addr" };
        let output = podgate(&["serve", flag, &addr, other, "127.0.0.1:0"]).await;
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        let expected = format!(
            "cannot listen on {addr}: Address already in use (os error 98); choose another address with {flag}\n"
        );
        assert!(message.ends_with(&expected), "{message}");
    }
}
