//! A certificate authority that signs one server certificate and is forgotten, and the certificate
//! for localhost of a server that was given none.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::ServerName;
use thiserror::Error;
use time::{Duration, OffsetDateTime};

/// The names that reach the server in a cluster: as other namespaces call the Service, as
/// kube-apiserver does, and in full.
pub const SERVICE_NAMES: [&str; 4] = [
    "webhook-service.security-system.svc",
    "webhook-service",
    "webhook-service.security-system",
    "webhook-service.security-system.svc.cluster.local",
];

/// The names of the machine itself, for trying things out.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// How long before now a certificate is valid, for clocks that are late.
const BACKDATED: Duration = Duration::hours(1);
const AUTHORITY_LIFETIME: Duration = Duration::days(3650);
const SERVER_LIFETIME: Duration = Duration::days(365);

/// Why no certificate could be made.
#[derive(Debug, Error)]
pub enum IssueError {
    /// A host is no name that a certificate can hold.
    #[error("{host:?} is neither a host name nor an IP address: give --host a name such as webhook.example.com")]
    Host {
        /// The host as given.
        host: String,
    },
    /// The cryptographic library failed.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// A server certificate, and the authority that signed it. All in PEM (RFC 7468).
#[derive(Debug)]
pub struct Issued {
    /// The authority's certificate: what clients trust, and what a caBundle holds. Its key is
    /// gone, so that nobody can have it sign another.
    pub authority: String,
    /// The server's certificate.
    pub certificate: String,
    /// The server's private key, in PKCS#8.
    pub key: String,
}

/// Makes an authority and a server certificate (ECDSA P-256) for [`SERVICE_NAMES`], localhost and
/// `hosts`, valid for ten years and for one.
///
/// # Errors
///
/// Where a host is neither a DNS name nor an IP address.
pub fn issue(hosts: &[String]) -> Result<Issued, IssueError> {
    let mut names: Vec<String> = SERVICE_NAMES.iter().chain(&LOCAL_NAMES).map(|&name| name.to_owned()).collect();
    for host in hosts {
        ServerName::try_from(host.as_str()).map_err(|_| IssueError::Host { host: host.clone() })?;
        if !names.contains(host) {
            names.push(host.clone());
        }
    }
    let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let authority_params = authority_params();
    let authority = authority_params.self_signed(&authority_key)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = server_params(names, SERVICE_NAMES[0])?
        .signed_by(&key, &Issuer::from_params(&authority_params, &authority_key))?;
    Ok(Issued { authority: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A certificate for localhost that signs itself, with its key.
pub(super) fn for_localhost() -> Result<(Certificate, KeyPair), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let names: Vec<String> = LOCAL_NAMES.map(str::to_owned).into();
    let certificate = server_params(names, LOCAL_NAMES[0])?.self_signed(&key)?;
    Ok((certificate, key))
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("podgate CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, AUTHORITY_LIFETIME);
    params
}

fn server_params(names: Vec<String>, common_name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named(common_name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid_for(&mut params, SERVER_LIFETIME);
    Ok(params)
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn valid_for(params: &mut CertificateParams, lifetime: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BACKDATED;
    params.not_after = now + lifetime;
}
