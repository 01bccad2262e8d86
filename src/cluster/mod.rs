//! What podgate asks of the API server, beside the requests that it answers: to keep its certificate
//! in a Secret, the authority of that certificate in the webhook configurations, and a `ResourceQuota`
//! in the namespaces of `namespaceQuota`.
//!
//! Nothing of this is in the way of a review: with the API server out of reach, podgate serves on
//! with the certificate that it has, and the quotas hold as they are.

mod complaints;
mod error;
mod follow;
mod keeper;
mod quota;
mod registration;
mod secret;
mod watch;

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};

use kube::{Client, Config};
use thiserror::Error;

pub use self::error::{ClusterError, Operation};
pub use self::keeper::{Keeper, Listener};
pub use self::quota::{QuotaCounts, QuotaKeeper, QuotaListener};
pub use self::secret::{SecretName, SecretNameError};

/// Why there is no API server to talk to.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor the token of a ServiceAccount.
    #[error(
        "cannot tell where the API server is: {0}; in a pod, set automountServiceAccountToken: true, elsewhere KUBECONFIG"
    )]
    Config(String),
    /// What was found cannot be used.
    #[error("cannot make a client for the API server: {0}; look at the kubeconfig, or at the ServiceAccount's ca.crt")]
    Client(String),
}

/// A client for the API server of the kubeconfig, or of the cluster that podgate runs in.
///
/// To be called inside a runtime, which the client's tasks need.
///
/// # Errors
///
/// Where neither names an API server, or what they name cannot be used.
pub async fn connect() -> Result<Client, ConnectError> {
    let config = Config::infer().await.map_err(|error| ConnectError::Config(in_full(&error)))?;
    Client::try_from(config).map_err(|error| ConnectError::Client(in_full(&error)))
}

/// The namespace of the pod that podgate runs in; `None` outside of a cluster.
#[must_use]
pub fn own_namespace() -> Option<String> {
    Config::incluster().ok().map(|config| config.default_namespace)
}

/// Another number each time.
fn random() -> u32 {
    u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or_default()
}

/// An error with all its causes.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Some repeat their cause, others do not.
        if !text.contains(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        next = cause.source();
    }
    text
}
