//! What the Secret holds, in bytes: an authority, its key, and the server's pair.

use std::collections::BTreeMap;

/// The authorities that clients trust, in PEM; what a caBundle is.
pub(super) const AUTHORITIES: &str = "ca.crt";
/// The key of the authority that signs.
pub(super) const AUTHORITY_KEY: &str = "ca.key";
/// The server's certificate (v1.Secret of type kubernetes.io/tls, `TLSCertKey`).
pub(super) const CERTIFICATE: &str = "tls.crt";
/// The server's key (v1.Secret of type kubernetes.io/tls, `TLSPrivateKeyKey`).
pub(super) const KEY: &str = "tls.key";

/// The `data` of the Secret, as far as podgate reads and writes it. All in PEM (RFC 7468); what is
/// missing is empty.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Material {
    /// `ca.crt`: the authorities; the one that signs comes first.
    pub authorities: Vec<u8>,
    /// `ca.key`: the key of the authority that signs.
    pub authority_key: Vec<u8>,
    /// `tls.crt`: the certificate that the server shows.
    pub certificate: Vec<u8>,
    /// `tls.key`: the key of that certificate.
    pub key: Vec<u8>,
}

impl Material {
    /// What is in the `data` of a Secret.
    #[must_use]
    pub fn from_data(mut entry: impl FnMut(&str) -> Option<Vec<u8>>) -> Self {
        let mut take = |name| entry(name).unwrap_or_default();
        Self {
            authorities: take(AUTHORITIES),
            authority_key: take(AUTHORITY_KEY),
            certificate: take(CERTIFICATE),
            key: take(KEY),
        }
    }

    /// The entries for the `data` of a Secret.
    #[must_use]
    pub fn into_data(self) -> BTreeMap<&'static str, Vec<u8>> {
        BTreeMap::from([
            (AUTHORITIES, self.authorities),
            (AUTHORITY_KEY, self.authority_key),
            (CERTIFICATE, self.certificate),
            (KEY, self.key),
        ])
    }
}

/// Keys are not for logs.
impl std::fmt::Debug for Material {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Material").finish_non_exhaustive()
    }
}
