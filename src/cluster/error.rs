//! Requests to the API server that fail.

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use tokio::time::timeout;

use super::in_full;

/// The longest that a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read the Secret.
    ReadSecret,
    /// Create the Secret, or replace what is in it.
    WriteSecret,
    /// Read a webhook configuration.
    ReadRegistration,
    /// Set the caBundle of a webhook configuration.
    WriteRegistration,
    /// Be told when one of them changes.
    Watch,
}

impl Operation {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::ReadSecret, Self::WriteSecret, Self::ReadRegistration, Self::WriteRegistration, Self::Watch];

    /// The name that metrics count it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadSecret => "read_secret",
            Self::WriteSecret => "write_secret",
            Self::ReadRegistration => "read_registration",
            Self::WriteRegistration => "write_registration",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReadSecret | Self::ReadRegistration => "read",
            Self::WriteSecret => "write",
            Self::WriteRegistration => "set the caBundle of",
            Self::Watch => "watch",
        })
    }
}

/// Why the API server did not do what it was asked.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// HTTP 403.
    #[error("podgate may not {operation} {object}: {message}; grant it what deploy/base/rbac.yaml does")]
    Forbidden {
        /// What was asked.
        operation: Operation,
        /// Of what.
        object: String,
        /// What the API server said.
        message: String,
    },
    /// HTTP 409: someone else changed it meanwhile.
    #[error("cannot {operation} {object}, for somebody else did so first; it is read again")]
    Conflict {
        /// What was asked.
        operation: Operation,
        /// Of what.
        object: String,
    },
    /// Any other refusal.
    #[error("cannot {operation} {object}: the API server answers: {message}")]
    Refused {
        /// What was asked.
        operation: Operation,
        /// Of what.
        object: String,
        /// What the API server said.
        message: String,
    },
    /// No answer.
    #[error("cannot {operation} {object}: {reason}; see whether the API server can be reached from this node")]
    Unreachable {
        /// What was asked.
        operation: Operation,
        /// Of what.
        object: String,
        /// What went wrong on the way.
        reason: String,
    },
    /// The API server was not asked, for there is nothing to give it.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl ClusterError {
    pub(super) fn new(operation: Operation, object: &str, error: &kube::Error) -> Self {
        let object = object.to_owned();
        let kube::Error::Api(status) = error else {
            return Self::Unreachable { operation, object, reason: in_full(error) };
        };
        if status.is_conflict() {
            return Self::Conflict { operation, object };
        }
        let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
        if status.is_forbidden() {
            return Self::Forbidden { operation, object, message };
        }
        Self::Refused { operation, object, message }
    }

    /// Whether somebody else was faster, which is nobody's fault.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// The answer to a request, which has to come in time.
pub(super) async fn ask<T>(
    operation: Operation,
    object: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, ClusterError> {
    match timeout(PATIENCE, request).await {
        Ok(answer) => answer.map_err(|error| ClusterError::new(operation, object, &error)),
        Err(_) => Err(ClusterError::Unreachable {
            operation,
            object: object.to_owned(),
            reason: format!("no answer within {} s", PATIENCE.as_secs()),
        }),
    }
}
