//! A certificate authority that signs one server certificate and is forgotten, and the certificate
//! for localhost of a server that was given none.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::ServerName;
use thiserror::Error;
use time::{Duration, OffsetDateTime};

use super::validity::Validity;

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
    let now = OffsetDateTime::now_utc();
    let (authority, signer) = authority(Validity::from(now, AUTHORITY_LIFETIME))?;
    let (certificate, key) = server(names, &signer, Validity::from(now, SERVER_LIFETIME))?;
    Ok(Issued { authority, certificate, key: key.serialize_pem() })
}

/// Makes an authority: its certificate in PEM, and what signs for it.
pub(super) fn authority(validity: Validity) -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let params = authority_params(validity);
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), Issuer::new(params, key)))
}

/// Makes a server certificate for [`SERVICE_NAMES`] and localhost: in PEM, and its key.
pub(super) fn server_for_the_service(
    signer: &Issuer<'_, KeyPair>,
    validity: Validity,
) -> Result<(String, KeyPair), rcgen::Error> {
    server(SERVICE_NAMES.iter().chain(&LOCAL_NAMES).map(|&name| name.to_owned()).collect(), signer, validity)
}

fn server(
    names: Vec<String>,
    signer: &Issuer<'_, KeyPair>,
    validity: Validity,
) -> Result<(String, KeyPair), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = server_params(names, SERVICE_NAMES[0], validity)?.signed_by(&key, signer)?;
    Ok((certificate.pem(), key))
}

/// A certificate for localhost that signs itself, with its key.
pub(super) fn for_localhost() -> Result<(Certificate, KeyPair), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let names: Vec<String> = LOCAL_NAMES.map(str::to_owned).into();
    let validity = Validity::from(OffsetDateTime::now_utc(), SERVER_LIFETIME);
    let certificate = server_params(names, LOCAL_NAMES[0], validity)?.self_signed(&key)?;
    Ok((certificate, key))
}

fn authority_params(validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("podgate CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = (validity.starts, validity.ends);
    params
}

fn server_params(names: Vec<String>, common_name: &str, validity: Validity) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named(common_name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = (validity.starts, validity.ends);
    Ok(params)
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}
