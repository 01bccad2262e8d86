//! What a new connection costs the server: by the key of its certificate and the group of the key exchange.

use std::path::Path;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};
use rustls::crypto::{SupportedKxGroup, aws_lc_rs};

use crate::contestant::Contestant;
use crate::{client, process};

/// How long handshakes are made in one turn.
const TURN: Duration = Duration::from_secs(1);
/// How many turns each choice has.
const TURNS: usize = 4;

/// Prints the table.
pub(crate) fn compare() {
    let keys = [("ECDSA P-256", ecdsa_p256()), ("RSA 2048", rsa_2048())];
    let groups: [(&str, &'static dyn SupportedKxGroup); 3] = [
        ("X25519MLKEM768", aws_lc_rs::kx_group::X25519MLKEM768),
        ("X25519", aws_lc_rs::kx_group::X25519),
        ("P-256", aws_lc_rs::kx_group::SECP256R1),
    ];
    let mut rows: Vec<Row> = Vec::new();
    let folders: Vec<_> = keys.into_iter().map(|(name, key)| (name, folder(&key))).collect();
    let contestants: Vec<_> =
        folders.iter().map(|(name, folder)| (*name, Contestant::podgate(folder.path()))).collect();
    for turn in 0..TURNS {
        let choices = contestants.iter().flat_map(|contestant| groups.iter().map(move |group| (contestant, group)));
        for (index, ((key, contestant), (group_name, group))) in choices.enumerate() {
            if turn == 0 {
                rows.push(Row { key, group: group_name, handshakes: 0.0, seconds: 0.0, cpu: 0.0 });
            }
            rows[index].add(contestant, *group);
        }
    }
    println!("| key | group | handshakes/s | CPU µs of the server |");
    println!("|---|---|---|---|");
    for row in rows {
        let Row { key, group, handshakes, seconds, cpu } = row;
        println!("| {key} | {group} | {:.0} | {:.0} |", handshakes / seconds, cpu * 1e6 / handshakes);
    }
    println!("\nOne client after the other; TCP's part and the client's on the other core are in the rate.");
}

struct Row {
    key: &'static str,
    group: &'static str,
    handshakes: f64,
    seconds: f64,
    cpu: f64,
}

impl Row {
    fn add(&mut self, contestant: &Contestant, group: &'static dyn SupportedKxGroup) {
        let tls = client::trusting(&contestant.authority, &[b"http/1.1"], Some(group));
        let (cpu, started) = (process::cpu_seconds(contestant.id()), Instant::now());
        while started.elapsed() < TURN {
            let stream = client::connect(contestant.addr, &tls).expect("the server accepts");
            assert_eq!(stream.conn.negotiated_key_exchange_group().map(SupportedKxGroup::name), Some(group.name()));
            self.handshakes += 1.0;
        }
        self.seconds += started.elapsed().as_secs_f64();
        self.cpu += process::cpu_seconds(contestant.id()) - cpu;
    }
}

fn ecdsa_p256() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key")
}

fn rsa_2048() -> KeyPair {
    KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key")
}

/// A folder with a certificate for localhost that has this key, signed by itself.
fn folder(key: &KeyPair) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let issuer_key = ecdsa_p256();
    let authority_certificate = authority.self_signed(&issuer_key).expect("an authority");
    let issuer = rcgen::Issuer::new(authority, issuer_key);
    let certificate = leaf.signed_by(key, &issuer).expect("a certificate");
    write(folder.path(), "ca.crt", &authority_certificate.pem());
    write(folder.path(), "tls.crt", &certificate.pem());
    write(folder.path(), "tls.key", &key.serialize_pem());
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("the folder is writable");
}
