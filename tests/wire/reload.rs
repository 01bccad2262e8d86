//! Files that change under a running server: the certificate and the configuration.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use podgate::certs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::support::{HTTP1, ask, client_config, post, try_connect, until, within};

/// A folder as a kubelet lays a Secret and a ConfigMap out: every file is a link through `..data`,
/// which points at the folder of one version.
struct Mounted {
    folder: TempDir,
    versions: usize,
}

impl Mounted {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut mounted = Self { folder: tempfile::tempdir().unwrap(), versions: 0 };
        mounted.swap(files);
        for (name, _) in files {
            std::os::unix::fs::symlink(Path::new("..data").join(name), mounted.path(name)).unwrap();
        }
        mounted
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a new version in place, all files at once.
    fn swap(&mut self, files: &[(&str, &str)]) {
        self.versions += 1;
        let version = format!("..v{}", self.versions);
        fs::create_dir(self.path(&version)).unwrap();
        for (name, text) in files {
            fs::write(self.path(&version).join(name), text).unwrap();
        }
        std::os::unix::fs::symlink(&version, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
    }
}

/// A certificate and its key, and the authority that clients trust.
struct Pair {
    root: CertificateDer<'static>,
    certificate: String,
    key: String,
}

impl Pair {
    fn new() -> Self {
        let issued = certs::issue(&[]).unwrap();
        let root = CertificateDer::from_pem_slice(issued.authority.as_bytes()).unwrap();
        Self { root, certificate: issued.certificate, key: issued.key }
    }

    /// One that was valid in the year 2020.
    fn expired() -> Self {
        Self::valid(rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1))
    }

    /// One that signs itself.
    fn valid(from: OffsetDateTime, to: OffsetDateTime) -> Self {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = from;
        params.not_after = to;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { root: certificate.der().clone(), certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn files(&self) -> [(&str, &str); 2] {
        [("tls.crt", &self.certificate), ("tls.key", &self.key)]
    }
}

/// `podgate serve` with both kinds of files, looking at them all the time. Killed when dropped.
struct Serving {
    _child: Child,
    addr: SocketAddr,
    admin_addr: SocketAddr,
    secret: Mounted,
    config_map: Mounted,
}

impl Serving {
    async fn start(pair: &Pair, configuration: &str) -> Self {
        let secret = Mounted::new(&pair.files());
        let config_map = Mounted::new(&[("config.yaml", configuration)]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_podgate"))
            .args(["serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--reload-interval", "20ms"])
            .arg("--config")
            .arg(config_map.path("config.yaml"))
            .arg("--tls-cert")
            .arg(secret.path("tls.crt"))
            .arg("--tls-key")
            .arg(secret.path("tls.key"))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut addresses = None;
        while addresses.is_none() {
            let line = within(log.next_line()).await.unwrap().expect("podgate says where it listens");
            let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
            addresses = field("addr=").zip(field("admin_addr="));
        }
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        let (addr, admin_addr) = addresses.unwrap();
        Self { _child: child, addr, admin_addr, secret, config_map }
    }

    async fn shows(&self, pair: &Pair) -> bool {
        try_connect(self.addr, client_config(pair.root.clone(), &[HTTP1]), "localhost").await.is_ok()
    }

    async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.admin_addr).await.unwrap();
        ask(&mut stream, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.text()
    }

    async fn has_metric(&self, line: &str) -> bool {
        self.metrics().await.lines().any(|found| found == line)
    }

    /// The value of a metric; 0 where it is not there.
    async fn metric(&self, name: &str) -> f64 {
        let text = self.metrics().await;
        text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0.0)
    }

    /// Waits until the file has been refused so many times, or more: a certificate that is read on
    /// one side of a swap and its key on the other is refused as well.
    async fn until_refused(&self, file: &str, times: u32) {
        let name = format!("podgate_reloads_total{{file=\"{file}\",result=\"failure\"}} ");
        until(&name, async || self.metric(&name).await >= f64::from(times)).await;
        let flag = format!("podgate_last_reload_successful{{file=\"{file}\"}} 0");
        assert!(self.has_metric(&flag).await, "{flag}");
    }

    async fn answers(&self, pair: &Pair) -> String {
        let review = include_str!("../../examples/reviews/denied-by-validate.json");
        let config = client_config(pair.root.clone(), &[HTTP1]);
        let mut stream = try_connect(self.addr, config, "localhost").await.unwrap();
        ask(&mut stream, post("/validate", review)).await.text()
    }
}

#[tokio::test]
async fn a_new_certificate_is_shown_and_a_wrong_one_is_not() {
    let [first, second, third] = [Pair::new(), Pair::new(), Pair::new()];
    let mut serving = Serving::start(&first, "").await;
    let config = client_config(first.root.clone(), &[HTTP1]);
    let mut open = try_connect(serving.addr, config, "localhost").await.unwrap();
    assert!(!serving.shows(&second).await);

    serving.secret.swap(&second.files());
    until("the second certificate", async || serving.shows(&second).await).await;
    assert!(!serving.shows(&first).await);
    // A connection that was open goes on.
    assert_eq!(ask(&mut open, post("/mutate", "{}")).await.status, 400);

    // The key of another, half a file, an expired one: the last good pair stays.
    serving.secret.swap(&[("tls.crt", &third.certificate), ("tls.key", &first.key)]);
    serving.until_refused("certificate", 1).await;
    let half = &third.certificate[..third.certificate.len() / 2];
    serving.secret.swap(&[("tls.crt", half), ("tls.key", &third.key)]);
    serving.until_refused("certificate", 2).await;
    serving.secret.swap(&Pair::expired().files());
    serving.until_refused("certificate", 3).await;
    fs::remove_file(serving.secret.path("..data")).unwrap();
    serving.until_refused("certificate", 4).await;
    let spoiled = third.certificate.clone() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    serving.secret.swap(&[("tls.crt", &spoiled), ("tls.key", &third.key)]);
    serving.until_refused("certificate", 5).await;
    assert!(serving.shows(&second).await);

    // Written over in place, one file after the other.
    serving.secret.swap(&second.files());
    let in_place = serving.secret.path("..data");
    fs::write(in_place.join("tls.crt"), &third.certificate).unwrap();
    fs::write(in_place.join("tls.key"), &third.key).unwrap();
    until("the third certificate", async || serving.shows(&third).await).await;
    let flag = "podgate_last_reload_successful{file=\"certificate\"} 1";
    until(flag, async || serving.has_metric(flag).await).await;
}

#[tokio::test]
async fn a_certificate_is_shown_from_its_first_day_on() {
    let first = Pair::new();
    let mut serving = Serving::start(&first, "").await;
    let starts = OffsetDateTime::now_utc() + Duration::seconds(5);
    let early = Pair::valid(starts, starts + Duration::days(1));
    serving.secret.swap(&early.files());
    serving.until_refused("certificate", 1).await;
    assert!(serving.shows(&first).await || OffsetDateTime::now_utc() >= starts, "it is not shown before");
    until("the certificate is valid", async || serving.shows(&early).await).await;
    assert!(OffsetDateTime::now_utc() >= starts - Duration::seconds(1), "not before");
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_valid_yet_is_not_ready() {
    let starts = OffsetDateTime::now_utc() + Duration::days(5);
    let serving = Serving::start(&Pair::valid(starts, starts + Duration::days(1)), "").await;
    let mut admin = TcpStream::connect(serving.admin_addr).await.unwrap();
    let reply = ask(&mut admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(reply.refusal(503, "ServiceUnavailable").contains("its certificate is not valid before 2"));
}

#[tokio::test]
async fn a_server_with_an_expired_certificate_is_not_ready() {
    let serving = Serving::start(&Pair::expired(), "").await;
    let mut admin = TcpStream::connect(serving.admin_addr).await.unwrap();
    let reply = ask(&mut admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(
        reply.refusal(503, "ServiceUnavailable"),
        "the server is not ready, for its certificate has expired: replace the files, or see in the log why it \
         is not renewed"
    );
    assert_eq!(ask(&mut admin, "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.status, 200);
}

#[tokio::test]
async fn a_new_configuration_is_in_force_and_a_wrong_one_is_not() {
    let pair = Pair::new();
    let mut serving = Serving::start(&pair, "").await;
    assert!(serving.answers(&pair).await.contains("breaks 3 policies"));

    serving.config_map.swap(&[("config.yaml", "validations: { hostNetwork: { action: off } }\n")]);
    until("two policies", async || serving.answers(&pair).await.contains("breaks 2 policies")).await;

    let unknown_key = "validations: { hostNetwerk: { action: off } }\n";
    for (times, wrong) in [(1, unknown_key), (2, "validations: [\n"), (3, "- 1\n")] {
        serving.config_map.swap(&[("config.yaml", wrong)]);
        serving.until_refused("configuration", times).await;
        assert!(serving.answers(&pair).await.contains("breaks 2 policies"));
        assert!(serving.has_metric("podgate_configuration_generation 2").await);
    }

    serving.config_map.swap(&[("config.yaml", "exclude: { namespaces: [team-a] }\n")]);
    until("an exclusion", async || serving.answers(&pair).await.contains("\"allowed\":true")).await;
    for line in ["podgate_last_reload_successful{file=\"configuration\"} 1", "podgate_configuration_generation 3"] {
        until(line, async || serving.has_metric(line).await).await;
    }
}
