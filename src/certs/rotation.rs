//! When the certificate of the Secret is replaced, and by what. Pure: no IO, no clock.
//!
//! A new authority is published beside the old one before anything that it signed is shown, and the
//! old one stays until nobody can show anything of it any more:
//!
//! ```text
//!            ca.crt       signs  tls.crt of
//! steady     A            A      A            → two thirds of A's life
//! published  B, A         B      A            → B is in every caBundle, and the leaf is due
//! switched   B, A         B      B            → a third of the leaf's life
//! steady     B            B      B
//! ```
//!
//! All of that state is in the Secret, so every replica comes to the same decision, and whoever
//! writes first has made it for all. Only how long a caBundle has been seen in place is remembered
//! by each replica for itself.

use rcgen::Error as MakeError;
use time::{Duration, OffsetDateTime};

use super::holdings::{Authority, Holdings, Trusted, bundle};
use super::issue;
use super::load::ServerCertificate;
use super::material::Material;
use super::validity::Validity;

/// The longest that API servers may take to see a new caBundle.
const SETTLE_MAX: Duration = Duration::minutes(1);
/// Certificates of short lives are for trying things out, where nobody waits a minute.
const SETTLE_SHARE: i32 = 20;
/// A third of an authority's life has to be enough for the whole life of a leaf.
const LEAVES_MIN: i32 = 3;

/// How long what is issued lives.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    authority: Duration,
    leaf: Duration,
}

/// Why lifetimes do not go together.
#[derive(Debug, thiserror::Error)]
#[error(
    "--tls-ca-lifetime has to be at least three times --tls-leaf-lifetime, for a new authority takes over in the last \
     third of the old one's life; and a leaf has to live for 5s or more"
)]
pub struct LifetimesError;

impl Lifetimes {
    /// Lifetimes of an authority and of a server certificate.
    ///
    /// # Errors
    ///
    /// Where the authority lives for less than three leaves, or a leaf for less than 5 s.
    pub fn new(authority: Duration, leaf: Duration) -> Result<Self, LifetimesError> {
        let fits = leaf.checked_mul(LEAVES_MIN).is_some_and(|leaves| leaves <= authority);
        if fits && leaf >= Duration::seconds(5) { Ok(Self { authority, leaf }) } else { Err(LifetimesError) }
    }

    /// How long a caBundle has to be in place before a leaf of a new authority is shown.
    fn settle(self) -> Duration {
        SETTLE_MAX.min(self.leaf / SETTLE_SHARE)
    }
}

/// A webhook configuration, as far as certificates go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// It could not be read.
    Unknown,
    /// It is not there: nobody asks podgate, and nobody needs a caBundle.
    Absent,
    /// The caBundle of each of its webhooks; empty where there is none.
    Present(Vec<Vec<u8>>),
}

impl Registration {
    /// Whether nobody who asks podgate lacks the bundle.
    #[must_use]
    pub fn has(&self, bundle: &[u8]) -> bool {
        match self {
            Self::Unknown => false,
            Self::Absent => true,
            Self::Present(bundles) => bundles.iter().all(|found| found == bundle),
        }
    }
}

/// What to do now. Each part on its own, in any order.
#[derive(Debug, Default)]
pub struct Steps {
    /// Show this certificate from now on.
    pub serve: Option<ServerCertificate>,
    /// What every caBundle has to be.
    pub bundle: Option<Vec<u8>>,
    /// Write the Secret, if it is still what it was, and look again.
    pub write: Option<Change>,
    /// Look again then, or before.
    pub wake: Option<OffsetDateTime>,
}

/// What has to become of the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing there is of use: a new authority and a new leaf.
    Begin,
    /// Nothing there is of use any more: what this replica knows was there before.
    Restore,
    /// A new authority beside the old, to sign from now on; the leaf stays.
    AddAuthority,
    /// A new leaf.
    RenewLeaf,
    /// Only the authority that signs is needed.
    DropOldAuthorities,
}

impl Change {
    /// What happens, for the log.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Begin => "a new authority and a new certificate",
            Self::Restore => "what was there before",
            Self::AddAuthority => "a new authority, which signs the next certificate; the old one stays trusted",
            Self::RenewLeaf => "a new certificate",
            Self::DropOldAuthorities => "without the authorities that no certificate in use needs any more",
        }
    }
}

/// What a replica knows, and what it decides from it.
#[derive(Debug)]
pub struct Rotation {
    lifetimes: Lifetimes,
    /// The last that was in the Secret and of use.
    remembered: Option<Holdings>,
    /// What is shown.
    shown: Option<Trusted>,
    /// A bundle that is in every caBundle, and since when it was seen there.
    published: Option<(Vec<u8>, OffsetDateTime)>,
}

impl Rotation {
    /// A replica that knows nothing yet.
    #[must_use]
    pub fn new(lifetimes: Lifetimes) -> Self {
        Self { lifetimes, remembered: None, shown: None, published: None }
    }

    /// What to do about what is in the Secret and in the webhook configurations. `None` where the
    /// Secret is not there; where it could not be read, there is nothing to decide.
    pub fn next(&mut self, secret: Option<&Material>, registrations: &[Registration], now: OffsetDateTime) -> Steps {
        let holdings = secret.map(Holdings::read).filter(|holdings| is_of_use(holdings, now));
        let Some(holdings) = holdings else {
            self.published = None;
            return Steps { write: Some(self.begin(now)), ..Steps::default() };
        };
        self.look_at(&holdings, registrations, now);
        let serve = self.serve(&holdings, now);
        let write = self.change(&holdings, now);
        let wake = self.wake(&holdings, now);
        let bundle = Some(holdings.bundle());
        if holdings.serves(now) {
            self.remembered = Some(holdings);
        }
        Steps { serve, bundle, write, wake }
    }

    /// What the Secret has to hold after a change.
    ///
    /// # Errors
    ///
    /// Where the cryptographic library fails.
    pub fn carry_out(
        &self,
        change: Change,
        secret: Option<&Material>,
        now: OffsetDateTime,
    ) -> Result<Material, MakeError> {
        let holdings = secret.map(Holdings::read);
        match (change, holdings) {
            (Change::Restore, _) => match &self.remembered {
                Some(holdings) => Ok(holdings.material.clone()),
                None => self.everything(now),
            },
            (Change::Begin, _) | (_, None) => self.everything(now),
            (Change::AddAuthority, Some(holdings)) => self.add_authority(&holdings, now),
            (Change::RenewLeaf, Some(holdings)) => self.renew_leaf(holdings, now),
            (Change::DropOldAuthorities, Some(holdings)) => {
                Ok(Material { authorities: bundle(holdings.signer.as_ref()), ..holdings.material })
            }
        }
    }

    fn begin(&self, now: OffsetDateTime) -> Change {
        let remembers = self.remembered.as_ref().is_some_and(|holdings| holdings.serves(now));
        if remembers { Change::Restore } else { Change::Begin }
    }

    /// Remembers since when the bundle has been in place.
    fn look_at(&mut self, holdings: &Holdings, registrations: &[Registration], now: OffsetDateTime) {
        let bundle = holdings.bundle();
        if !registrations.iter().all(|registration| registration.has(&bundle)) {
            self.published = None;
        } else if self.published.as_ref().is_none_or(|(published, _)| *published != bundle) {
            self.published = Some((bundle, now));
        }
    }

    /// The certificate of the Secret, where it is another than the one that is shown. One that is
    /// not valid yet by this clock waits while the old one is.
    fn serve(&mut self, holdings: &Holdings, now: OffsetDateTime) -> Option<ServerCertificate> {
        let server = holdings.server.as_ref()?;
        if let Some(shown) = &self.shown {
            let is_early = now < server.validity().starts && shown.validity().includes(now);
            if is_early || shown.certificate.chain() == server.certificate.chain() {
                return None;
            }
        }
        self.shown = Some(server.clone());
        Some(server.certificate.clone())
    }

    fn change(&self, holdings: &Holdings, now: OffsetDateTime) -> Option<Change> {
        let Some(signer) = holdings.signer.as_ref().filter(|signer| now < signer.validity.due()) else {
            return Some(Change::AddAuthority);
        };
        let Some(server) = holdings.server.as_ref().filter(|server| now < server.validity().due()) else {
            return self.may_show(signer, holdings, now).then_some(Change::RenewLeaf);
        };
        let is_over =
            holdings.authorities.len() > 1 && server.issuer.is(signer) && now >= server.validity().established();
        is_over.then_some(Change::DropOldAuthorities)
    }

    /// Whether a certificate of `signer` may be shown: API servers trust it, or they trust what is
    /// shown no longer than they need to see what is published.
    fn may_show(&self, signer: &Authority, holdings: &Holdings, now: OffsetDateTime) -> bool {
        let settle = self.lifetimes.settle();
        let is_issuer = |server: &Trusted| server.issuer.is(signer);
        let is_trusted = |server: &Trusted| {
            !server.has_ended(now + settle) && holdings.authorities.iter().any(|authority| authority.is(&server.issuer))
        };
        holdings.server.as_ref().is_some_and(is_issuer)
            || self.published.as_ref().is_some_and(|(_, since)| now >= *since + settle)
            || !self.shown.as_ref().is_some_and(is_trusted)
    }

    /// The next moment at which something else is to be done.
    fn wake(&self, holdings: &Holdings, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let settled = self.published.as_ref().map(|(_, since)| *since + self.lifetimes.settle());
        let of_signer = holdings.signer.as_ref().map(|signer| signer.validity.due());
        let of_server = holdings.server.as_ref().map(Trusted::validity);
        let of_server = of_server.map(|validity| [validity.starts, validity.established(), validity.due()]);
        let moments = settled.into_iter().chain(of_signer).chain(of_server.into_iter().flatten());
        moments.filter(|&moment| moment > now).min()
    }

    fn everything(&self, now: OffsetDateTime) -> Result<Material, MakeError> {
        let (authority, signer) = issue::authority(Validity::from(now, self.lifetimes.authority))?;
        let (certificate, key) = issue::server_for_the_service(&signer, Validity::from(now, self.lifetimes.leaf))?;
        Ok(Material {
            authorities: authority.into(),
            authority_key: signer.key().serialize_pem().into(),
            certificate: certificate.into(),
            key: key.serialize_pem().into(),
        })
    }

    fn add_authority(&self, holdings: &Holdings, now: OffsetDateTime) -> Result<Material, MakeError> {
        let (mut authorities, signer) = issue::authority(Validity::from(now, self.lifetimes.authority))?;
        let trusted = holdings.authorities.iter().filter(|authority| !authority.validity.has_ended(now));
        authorities.push_str(&String::from_utf8_lossy(&bundle(trusted)));
        Ok(Material {
            authorities: authorities.into(),
            authority_key: signer.key().serialize_pem().into(),
            ..holdings.material.clone()
        })
    }

    fn renew_leaf(&self, holdings: Holdings, now: OffsetDateTime) -> Result<Material, MakeError> {
        let Some((signing, signer)) = holdings.signing().zip(holdings.signer.as_ref()) else {
            return self.everything(now);
        };
        let mut validity = Validity::from(now, self.lifetimes.leaf);
        // Never without its authority.
        validity.starts = validity.starts.max(signer.validity.starts);
        validity.ends = validity.ends.min(signer.validity.ends);
        let (certificate, key) = issue::server_for_the_service(&signing, validity)?;
        Ok(Material { certificate: certificate.into(), key: key.serialize_pem().into(), ..holdings.material })
    }
}

/// Whether there is something to go on with: an authority that can sign, or a certificate that is
/// trusted.
fn is_of_use(holdings: &Holdings, now: OffsetDateTime) -> bool {
    holdings.signer.as_ref().is_some_and(|signer| !signer.validity.has_ended(now)) || holdings.serves(now)
}

#[cfg(test)]
mod tests;
