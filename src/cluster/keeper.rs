//! Keeps the Secret and the caBundles as [`Rotation`] says, for as long as the server runs.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{debug, error, info};

use super::complaints::Complaints;
use super::error::{ClusterError, Operation};
use super::random;
use super::registration::{self, Configuration};
use super::secret::{SecretName, SharedSecret, material};
use super::watch::{Told, watch};
use crate::certs::{Change, Lifetimes, Registration, Rotation, ServerCertificate};

/// Between two looks, however much there is to do.
const REST: Duration = Duration::from_millis(100);
/// Between two looks, when they fail all the time.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How many changes in a row are no sign of somebody who undoes them.
const CHANGES_MAX: u32 = 5;

/// Who is told what comes of it.
pub trait Listener: Send + Sync + 'static {
    /// This certificate is to be shown from now on.
    fn show(&self, certificate: &ServerCertificate);

    /// The API server did not do what it was asked.
    fn failed(&self, operation: Operation, error: &ClusterError);
}

/// What came of a look.
enum Look {
    /// There is nothing more to do until then, as far as the clock goes.
    Done(Option<OffsetDateTime>),
    /// Something was changed, here or by another replica: what it is now has to be seen.
    Again,
    /// Something did not work.
    Failed,
}

/// Keeps the certificate of one replica.
pub struct Keeper<L> {
    secret: SharedSecret,
    mutating: Api<MutatingWebhookConfiguration>,
    validating: Api<ValidatingWebhookConfiguration>,
    rotation: Rotation,
    listener: Arc<L>,
    interval: Duration,
    complaints: Complaints,
}

impl<L: Listener> Keeper<L> {
    /// Keeps the certificate in `secret`, and tells `listener`. It looks every `interval`, and at
    /// once when something changes.
    pub fn new(client: Client, secret: SecretName, lifetimes: Lifetimes, interval: Duration, listener: L) -> Self {
        Self {
            secret: SharedSecret::new(client.clone(), secret),
            mutating: Api::all(client.clone()),
            validating: Api::all(client),
            rotation: Rotation::new(lifetimes),
            listener: Arc::new(listener),
            interval,
            complaints: Complaints::default(),
        }
    }

    /// For ever.
    pub async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let _watches = self.watch(&changed);
        let mut in_a_row = 0;
        loop {
            let look = self.look().await;
            // Replicas that start together need not ask together for ever.
            let interval = self.interval + self.interval.mul_f64(chance() / 2.0);
            match look {
                Look::Done(wake) => {
                    in_a_row = 0;
                    self.complaints.clear();
                    tokio::select! {
                        () = sleep(until(wake).min(interval).max(REST)) => {}
                        () = changed.notified() => sleep(REST).await,
                    }
                }
                Look::Again if in_a_row < CHANGES_MAX => {
                    in_a_row += 1;
                    sleep(REST).await;
                }
                Look::Again | Look::Failed => {
                    in_a_row += 1;
                    let backoff = Duration::from_millis(500) * 2_u32.pow(in_a_row.min(6));
                    sleep(backoff.min(BACKOFF_MAX).mul_f64(0.5 + chance() / 2.0)).await;
                }
            }
        }
    }

    fn watch(&self, changed: &Arc<Notify>) -> JoinSet<()> {
        let listener = Arc::clone(&self.listener);
        let told = Told {
            changed: Arc::clone(changed),
            failed: Arc::new(move |error| listener.failed(Operation::Watch, error)),
        };
        let SharedSecret { api, name, title, .. } = &self.secret;
        let mut watches = JoinSet::new();
        watches.spawn(watch(api.clone(), name.clone(), title.clone(), told.clone()));
        watches.spawn(registration::watch(self.mutating.clone(), told.clone()));
        watches.spawn(registration::watch(self.validating.clone(), told));
        watches
    }

    /// Looks at everything, and does what is to be done.
    async fn look(&mut self) -> Look {
        // The configurations first: an authority that another replica put into a caBundle was in the
        // Secret before, so what is read of the Secret now cannot be older than what is in them.
        let mutating = registration::read(&self.mutating).await;
        let validating = registration::read(&self.validating).await;
        let secret = match self.secret.read().await {
            Ok(secret) => secret,
            Err(error) => return self.fail(Operation::ReadSecret, &error),
        };
        let held = secret.as_ref().map(material);
        let registrations = [seen(&mutating), seen(&validating)];
        let steps = self.rotation.next(held.as_ref(), &registrations, OffsetDateTime::now_utc());
        if let Some(certificate) = steps.serve {
            info!(secret = self.secret.title, expires = %certificate.expires(), "new certificate");
            self.listener.show(&certificate);
        }
        let mut looks = Vec::new();
        if let Some(bundle) = steps.bundle {
            let api = self.mutating.clone();
            looks.push(self.publish(&api, mutating, &registrations[0], &bundle).await);
            let api = self.validating.clone();
            looks.push(self.publish(&api, validating, &registrations[1], &bundle).await);
        }
        if let Some(change) = steps.write {
            looks.push(self.write(change, secret).await);
        }
        looks.into_iter().fold(Look::Done(steps.wake), Look::and)
    }

    /// Puts the bundle into a configuration where it is not.
    async fn publish<K: Configuration>(
        &mut self,
        api: &Api<K>,
        read: Result<Option<K>, ClusterError>,
        seen: &Registration,
        bundle: &[u8],
    ) -> Look {
        let configuration = match read {
            Err(error) => return self.fail(Operation::ReadRegistration, &error),
            Ok(None) => return Look::Done(None),
            Ok(Some(_)) if seen.has(bundle) => return Look::Done(None),
            Ok(Some(configuration)) => configuration,
        };
        match registration::set_bundle(api, &configuration, bundle).await {
            Ok(()) => {
                info!("set the caBundle of {}", K::TITLE);
                Look::Again
            }
            Err(error) => self.fail(Operation::WriteRegistration, &error),
        }
    }

    async fn write(&mut self, change: Change, secret: Option<Secret>) -> Look {
        let held = secret.as_ref().map(material);
        let written = match self.rotation.carry_out(change, held.as_ref(), OffsetDateTime::now_utc()) {
            Ok(material) => self.secret.write(secret, material).await,
            Err(error) => Err(error.into()),
        };
        match written {
            Ok(()) => {
                info!("wrote {}: {}", self.secret.title, change.describe());
                Look::Again
            }
            Err(error) => self.fail(Operation::WriteSecret, &error),
        }
    }

    /// Tells of an error, once in a while if it stays the same.
    fn fail(&mut self, operation: Operation, error: &ClusterError) -> Look {
        if error.is_conflict() {
            debug!(%error, "another was faster");
            return Look::Again;
        }
        self.listener.failed(operation, error);
        let reason = error.to_string();
        if self.complaints.is_due(&reason) {
            error!(reason, "cannot keep the certificate fresh; what is served does not change");
        }
        Look::Failed
    }
}

impl Look {
    /// The more urgent of two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Again, _) | (_, Self::Again) => Self::Again,
            (done @ Self::Done(_), Self::Done(_)) => done,
        }
    }
}

fn seen<K: Configuration>(read: &Result<Option<K>, ClusterError>) -> Registration {
    read.as_ref().map_or(Registration::Unknown, |configuration| registration::registration(configuration.as_ref()))
}

/// How long it is until a moment; for ever without one.
fn until(moment: Option<OffsetDateTime>) -> Duration {
    let left = moment.map(|moment| moment - OffsetDateTime::now_utc());
    left.map_or(Duration::MAX, |left| left.try_into().unwrap_or(Duration::ZERO))
}

/// A number from 0 to 1, another one each time.
fn chance() -> f64 {
    f64::from(random()) / f64::from(u32::MAX)
}
