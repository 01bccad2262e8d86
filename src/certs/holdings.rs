//! What the bytes of the Secret are good for. Nothing in it is trusted to be right: what cannot be
//! read, or does not belong together, counts as not there.

use std::path::Path;

use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{Issuer, KeyPair, PublicKeyData};
use rustls::RootCertStore;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use time::OffsetDateTime;

use super::issue::SERVICE_NAMES;
use super::load::ServerCertificate;
use super::material::{self, Material};
use super::validity::Validity;

/// An authority that clients trust, or will.
#[derive(Debug, Clone)]
pub(super) struct Authority {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) validity: Validity,
    /// `SubjectPublicKeyInfo` (RFC 5280, section 4.1.2.7), in DER.
    public_key: Vec<u8>,
}

/// A certificate that clients take from the server, as long as they trust `issuer`.
#[derive(Debug, Clone)]
pub(super) struct Trusted {
    pub(super) certificate: ServerCertificate,
    pub(super) issuer: Authority,
}

/// What is in the Secret.
#[derive(Debug, Clone)]
pub(super) struct Holdings {
    pub(super) material: Material,
    pub(super) authorities: Vec<Authority>,
    /// The authority whose key is there.
    pub(super) signer: Option<Authority>,
    /// The server's certificate, where its key is there too, and one of the authorities signed it
    /// for the Service.
    pub(super) server: Option<Trusted>,
}

impl Authority {
    fn read(certificate: CertificateDer<'static>) -> Option<Self> {
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).ok()?;
        if !parsed.is_ca() {
            return None;
        }
        let (validity, public_key) = (Validity::of(&parsed), parsed.public_key().raw.to_vec());
        Some(Self { certificate, validity, public_key })
    }

    /// Whether both are the same certificate.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.certificate == other.certificate
    }

    /// Whether it signed the certificate, for the Service, at a time when both were valid.
    pub(super) fn signed(&self, server: &ServerCertificate) -> bool {
        let Some((first, intermediates)) = server.chain().split_first() else { return false };
        let Ok(parsed) = ParsedCertificate::try_from(first) else { return false };
        let mut roots = RootCertStore::empty();
        if roots.add(self.certificate.clone()).is_err() {
            return false;
        }
        // Whether it is valid now is another question, which has other answers.
        let when = server.validity().starts.max(self.validity.starts).unix_timestamp();
        let when = UnixTime::since_unix_epoch(std::time::Duration::from_secs(when.try_into().unwrap_or_default()));
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, when, algorithms).is_ok()
            && ServerName::try_from(SERVICE_NAMES[0]).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    }
}

impl Holdings {
    /// Reads what is there.
    pub(super) fn read(material: &Material) -> Self {
        let authorities: Vec<Authority> = CertificateDer::pem_slice_iter(&material.authorities)
            .map_while(Result::ok)
            .filter_map(Authority::read)
            .collect();
        let signer = key(&material.authority_key)
            .and_then(|key| authorities.iter().find(|authority| authority.public_key == key.subject_public_key_info()))
            .cloned();
        let server = ServerCertificate::from_pem(
            &material.certificate,
            &material.key,
            Path::new(material::CERTIFICATE),
            Path::new(material::KEY),
        );
        let server = server.ok().and_then(|certificate| {
            let issuer = authorities.iter().find(|authority| authority.signed(&certificate))?.clone();
            Some(Trusted { certificate, issuer })
        });
        Self { material: material.clone(), authorities, signer, server }
    }

    /// What every caBundle (admissionregistration.k8s.io/v1 `WebhookClientConfig`) has to be.
    pub(super) fn bundle(&self) -> Vec<u8> {
        bundle(&self.authorities)
    }

    /// The authority that signs, ready to.
    pub(super) fn signing(&self) -> Option<Issuer<'static, KeyPair>> {
        let signer = self.signer.as_ref()?;
        Issuer::from_ca_cert_der(&signer.certificate, key(&self.material.authority_key)?).ok()
    }

    /// Whether clients take the certificate at `now`.
    pub(super) fn serves(&self, now: OffsetDateTime) -> bool {
        self.server.as_ref().is_some_and(|server| !server.has_ended(now))
    }
}

impl Trusted {
    pub(super) fn validity(&self) -> Validity {
        self.certificate.validity()
    }

    /// Whether no client takes it any more.
    pub(super) fn has_ended(&self, now: OffsetDateTime) -> bool {
        self.validity().has_ended(now) || self.issuer.validity.has_ended(now)
    }
}

/// The authorities in PEM.
pub(super) fn bundle<'a>(authorities: impl IntoIterator<Item = &'a Authority>) -> Vec<u8> {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let pem =
        |authority: &Authority| pem::encode_config(&Pem::new("CERTIFICATE", authority.certificate.as_ref()), config);
    authorities.into_iter().map(pem).collect::<String>().into_bytes()
}

fn key(pem: &[u8]) -> Option<KeyPair> {
    KeyPair::from_pem(std::str::from_utf8(pem).ok()?).ok()
}
