//! What `podgate serve` does when its files change: the new is used if it is right, and else the
//! old is kept and the log says why.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use time::{Date, OffsetDateTime};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::certs::{ClientAuthority, ServerCertificate, Standing};
use crate::config;
use crate::metrics::ReloadedFile;
use crate::policy::Policies;
use crate::reload::Followed;
use crate::server::Control;

/// The files of `--tls-cert` and `--tls-key`.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) followed: Followed,
}

impl CertificateFiles {
    /// Remembers what the files hold before they are read.
    pub(super) fn new(certificate: PathBuf, key: PathBuf) -> Self {
        let followed = Followed::new(vec![certificate.clone(), key.clone()]);
        Self { certificate, key, followed }
    }

    /// Shows what the files hold whenever that changes, for ever.
    pub(super) async fn follow(mut self, control: Control, interval: Duration) {
        let mut valid_in = None;
        loop {
            let changed = self.followed.changed(interval);
            match valid_in.take() {
                None => changed.await,
                // Whichever comes first.
                Some(duration) => timeout(duration, changed).await.unwrap_or(()),
            }
            match ServerCertificate::from_files(&self.certificate, &self.key) {
                Ok(certificate) => valid_in = self.show(&certificate, &control),
                Err(reason) => {
                    error!(%reason, "the new certificate cannot be used: the old one is kept");
                    control.count_reload(ReloadedFile::Certificate, false);
                }
            }
        }
    }

    /// Shows a certificate that clients take. For one that they do not take yet: how long until they do.
    fn show(&self, certificate: &ServerCertificate, control: &Control) -> Option<Duration> {
        let (file, expires) = (self.certificate.display(), certificate.expires().date());
        let standing = certificate.standing();
        let valid_in = match standing {
            Standing::Valid => {
                control.replace_certificate(certificate);
                info!(%file, %expires, "new certificate");
                None
            }
            Standing::NotYetValid => {
                let starts = certificate.validity().starts;
                error!(%file, %starts, "the new certificate is not valid yet: the old one is kept until then");
                Duration::try_from(starts - OffsetDateTime::now_utc()).ok()
            }
            Standing::Expired => {
                error!(%file, expired = %expires, "the new certificate has expired already: the old one is kept");
                None
            }
        };
        control.count_reload(ReloadedFile::Certificate, standing == Standing::Valid);
        valid_in
    }
}

/// The file of `--client-ca`.
#[derive(Debug)]
pub(super) struct ClientAuthorityFile {
    pub(super) path: PathBuf,
    pub(super) followed: Followed,
}

impl ClientAuthorityFile {
    /// Remembers what the file holds before it is read.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { followed: Followed::new(vec![path.clone()]), path }
    }

    /// Has new connections checked against what the file holds whenever that changes, for ever.
    pub(super) async fn follow(mut self, control: Control, interval: Duration) {
        loop {
            self.followed.changed(interval).await;
            let loaded = ClientAuthority::from_file(&self.path);
            let is_used = loaded.is_ok();
            match loaded {
                Ok(authority) => {
                    let (file, authorities) = (self.path.display(), authority.count());
                    info!(%file, authorities, "new client authority: open connections keep what they have proved");
                    control.replace_client_authority(authority);
                }
                Err(reason) => error!(%reason, "the new client authority cannot be used: the old one is kept"),
            }
            control.count_reload(ReloadedFile::ClientAuthority, is_used);
        }
    }
}

/// How often to look for exclusions that have expired: days end at any time of a server's life.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// Says what is right in a configuration, and yet hardly meant.
pub(super) fn warn_of(policies: &Policies) {
    for advice in policies.advice(super::today()) {
        warn!("{advice}");
    }
}

/// Shows how many exclusions have expired by the day that `today` tells, for ever.
pub(super) async fn show_expired_exclusions(
    policies: Arc<ArcSwap<Policies>>,
    today: impl Fn() -> Date,
    show: impl Fn(usize),
) {
    loop {
        show(policies.load().expired_exclusions(today()));
        tokio::time::sleep(EXPIRY_INTERVAL).await;
    }
}

/// The file of `--config`.
#[derive(Debug)]
pub(super) struct ConfigurationFile {
    pub(super) path: PathBuf,
    pub(super) followed: Followed,
}

impl ConfigurationFile {
    /// Remembers what the file holds before it is read.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { followed: Followed::new(vec![path.clone()]), path }
    }

    /// Puts what the file says into force whenever that changes, for ever; all of it or nothing. Then it
    /// tells `reloaded`.
    pub(super) async fn follow(
        mut self,
        policies: Arc<ArcSwap<Policies>>,
        reloaded: Arc<Notify>,
        control: Control,
        interval: Duration,
    ) {
        loop {
            self.followed.changed(interval).await;
            let loaded = config::load(&self.path);
            let is_used = loaded.is_ok();
            match loaded {
                Ok(new) => {
                    info!(file = %self.path.display(), "new configuration");
                    warn_of(&new);
                    control.show_expired_exclusions(new.expired_exclusions(super::today()));
                    policies.store(Arc::new(new));
                    reloaded.notify_one();
                }
                Err(reason) => error!(%reason, "the new configuration cannot be used: the old one is kept"),
            }
            control.count_reload(ReloadedFile::Configuration, is_used);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use time::Month;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_exclusion_that_expires_while_the_server_runs_is_shown() {
        let policies = config::parse("exclude: { users: [a, { name: b, until: 2026-12-31 }] }").unwrap();
        let last_day = Date::from_calendar_date(2026, Month::December, 31).unwrap();
        let (today, shown) = (Arc::new(Mutex::new(last_day)), Arc::new(AtomicUsize::new(usize::MAX)));
        let (clock, display) = (Arc::clone(&today), Arc::clone(&shown));
        tokio::spawn(show_expired_exclusions(
            Arc::new(ArcSwap::from_pointee(policies)),
            move || *clock.lock().unwrap(),
            move |count| display.store(count, Ordering::Relaxed),
        ));
        tokio::time::sleep(EXPIRY_INTERVAL * 3 / 2).await;
        assert_eq!(shown.load(Ordering::Relaxed), 0);
        *today.lock().unwrap() = last_day.next_day().unwrap();
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        assert_eq!(shown.load(Ordering::Relaxed), 1);
    }
}
