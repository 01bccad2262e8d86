//! From when to when a certificate is valid, and when in between it is due.

use time::{Duration, OffsetDateTime};
use x509_parser::certificate::X509Certificate;

/// How long before it is made a certificate is valid, for clocks that are late.
const BACKDATED_MAX: Duration = Duration::hours(1);
/// A certificate that lives for minutes is not backdated by an hour: it would be due at once.
const BACKDATED_SHARE: i32 = 10;

/// The validity of a certificate (RFC 5280, section 4.1.2.5), both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// notBefore.
    pub starts: OffsetDateTime,
    /// notAfter.
    pub ends: OffsetDateTime,
}

/// How a certificate stands at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Clients do not take it yet.
    NotYetValid,
    /// Clients take it.
    Valid,
    /// Clients take it no more.
    Expired,
}

impl Validity {
    /// The validity of a certificate that is made now and lives for `lifetime`.
    #[must_use]
    pub fn from(now: OffsetDateTime, lifetime: Duration) -> Self {
        Self { starts: now - BACKDATED_MAX.min(lifetime / BACKDATED_SHARE), ends: now + lifetime }
    }

    pub(super) fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        Self { starts: validity.not_before.to_datetime(), ends: validity.not_after.to_datetime() }
    }

    /// Whether a clock that says `now` takes the certificate.
    #[must_use]
    pub fn includes(self, now: OffsetDateTime) -> bool {
        self.starts <= now && now <= self.ends
    }

    /// How the certificate stands for a clock that says `now`.
    #[must_use]
    pub fn standing(self, now: OffsetDateTime) -> Standing {
        if now < self.starts {
            Standing::NotYetValid
        } else if self.has_ended(now) {
            Standing::Expired
        } else {
            Standing::Valid
        }
    }

    /// Whether it is over.
    #[must_use]
    pub fn has_ended(self, now: OffsetDateTime) -> bool {
        self.ends < now
    }

    /// Two thirds of the life: when a successor is due.
    #[must_use]
    pub fn due(self) -> OffsetDateTime {
        self.starts + (self.ends - self.starts) / 3 * 2
    }

    /// A third of the life: by then the last user of the predecessor has changed over.
    #[must_use]
    pub fn established(self) -> OffsetDateTime {
        self.starts + (self.ends - self.starts) / 3
    }
}
