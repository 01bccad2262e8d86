//! Requests to the API server that fail.

use std::fmt;
use std::time::Duration;

use kube::core::Status;
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
    /// List the namespaces, and be told when one changes.
    ReadNamespaces,
    /// List the quotas, and be told when one changes.
    ReadQuotas,
    /// Make a quota, or put it right.
    WriteQuota,
    /// Take a quota away.
    RemoveQuota,
}

impl Operation {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::ReadSecret,
        Self::WriteSecret,
        Self::ReadRegistration,
        Self::WriteRegistration,
        Self::Watch,
        Self::ReadNamespaces,
        Self::ReadQuotas,
        Self::WriteQuota,
        Self::RemoveQuota,
    ];

    /// The name that metrics count it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadSecret => "read_secret",
            Self::WriteSecret => "write_secret",
            Self::ReadRegistration => "read_registration",
            Self::WriteRegistration => "write_registration",
            Self::Watch => "watch",
            Self::ReadNamespaces => "read_namespaces",
            Self::ReadQuotas => "read_quotas",
            Self::WriteQuota => "write_quota",
            Self::RemoveQuota => "remove_quota",
        }
    }

    /// The part of `deploy/` that allows it.
    const fn granted_by(self) -> &'static str {
        match self {
            Self::ReadSecret | Self::WriteSecret | Self::ReadRegistration | Self::WriteRegistration | Self::Watch => {
                "deploy/base/rbac.yaml does"
            }
            Self::ReadNamespaces | Self::ReadQuotas | Self::WriteQuota | Self::RemoveQuota => {
                "the kustomize component deploy/quota does"
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReadSecret | Self::ReadRegistration => "read",
            Self::WriteSecret => "write",
            Self::ReadNamespaces | Self::ReadQuotas => "list and watch",
            Self::WriteQuota => "apply",
            Self::RemoveQuota => "delete",
            Self::WriteRegistration => "set the caBundle of",
            Self::Watch => "watch",
        })
    }
}

/// Why the API server did not do what it was asked.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// HTTP 403.
    #[error("podgate may not {operation} {object}: {message}; grant it what {}", operation.granted_by())]
    Forbidden {
        /// What was asked.
        operation: Operation,
        /// Of what.
        object: String,
        /// What the API server said.
        message: String,
    },
    /// HTTP 409, or 404 for what was there: someone else changed it meanwhile, or removed it.
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
    /// No answer, or one of a server that is too busy to have a better one.
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
        if status.is_conflict() || status.is_already_exists() || status.is_not_found() || is_going(status) {
            return Self::Conflict { operation, object };
        }
        let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
        if status.is_forbidden() {
            return Self::Forbidden { operation, object, message };
        }
        // What is too busy, or broken, is so whatever it is asked for.
        if status.code == 429 || status.code >= 500 {
            return Self::Unreachable { operation, object, reason: message };
        }
        Self::Refused { operation, object, message }
    }

    /// What was asked; nothing, where the API server was not asked.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Self::Forbidden { operation, .. }
            | Self::Conflict { operation, .. }
            | Self::Refused { operation, .. }
            | Self::Unreachable { operation, .. } => Some(*operation),
            Self::Make(_) => None,
        }
    }

    /// Whether the same request for another object may well succeed.
    pub(super) fn is_of_this_object(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Refused { .. })
    }

    /// Whether somebody else was faster, which is nobody's fault.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// Whether the namespace of the object is being removed (v1.NamespaceTerminatingCause).
fn is_going(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "NamespaceTerminating")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, reason: &str, message: &str) -> Status {
        Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() }
    }

    fn error(operation: Operation, status: Status) -> ClusterError {
        ClusterError::new(operation, "the namespaces", &kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn what_is_forbidden_is_told_with_what_grants_it() {
        let said = |operation| error(operation, status(403, "Forbidden", "no")).to_string();
        assert_eq!(
            said(Operation::ReadNamespaces),
            "podgate may not list and watch the namespaces: no; grant it what the kustomize component deploy/quota does"
        );
        assert!(said(Operation::ReadSecret).ends_with("grant it what deploy/base/rbac.yaml does"));
    }

    #[test]
    fn what_is_too_busy_is_so_for_every_object() {
        for (code, is_of_this_object) in [(422, true), (429, false), (500, false), (503, false)] {
            let error = error(Operation::WriteQuota, status(code, "", "no"));
            assert_eq!(error.is_of_this_object(), is_of_this_object, "{code}");
        }
    }

    #[test]
    fn what_is_on_its_way_out_is_nobodys_fault() {
        let mut going = status(403, "Forbidden", "it is being terminated");
        let details = serde_json::json!({"causes": [{"reason": "NamespaceTerminating"}]});
        going.details = serde_json::from_value(details).unwrap();
        for status in [going, status(404, "NotFound", ""), status(409, "Conflict", "")] {
            assert!(error(Operation::WriteQuota, status).is_conflict());
        }
        assert!(error(Operation::WriteQuota, status(409, "AlreadyExists", "it is there")).is_conflict());
        assert!(!error(Operation::WriteQuota, status(403, "Forbidden", "no")).is_conflict());
    }
}
