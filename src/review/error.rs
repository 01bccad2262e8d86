//! What can be wrong with a review.

use crate::policy::Quoted;

/// A body that is no AdmissionReview, or one that cannot be answered: HTTP 400.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Nothing was sent.
    #[error("the body is empty: send an AdmissionReview")]
    Empty,
    /// The body begins with U+FEFF, which RFC 8259 section 8.1 forbids.
    #[error("the body begins with a byte order mark: send JSON without one")]
    ByteOrderMark,
    /// RFC 8259 section 8.1: JSON is UTF-8.
    #[error("the body is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// No JSON, more than one document, too deep a nesting, or an object with a repeated key.
    #[error("the body is not JSON that podgate can read: {0}")]
    Json(serde_json::Error),
    /// A member of the envelope has another type.
    #[error("{path}: {error}")]
    Type {
        /// Where, such as `request.uid`.
        path: String,
        /// What was found and what was expected.
        error: String,
    },
    /// A member of the envelope is not there, `null` or empty.
    #[error("{0} is missing or empty")]
    Missing(&'static str),
    /// Another kind of object, or another version of it.
    #[error(
        "the body is {} of {}, but podgate answers AdmissionReview of admission.k8s.io/v1 only: in the webhook \
         configuration set admissionReviewVersions: [v1]",
        Quoted(kind),
        Quoted(api_version)
    )]
    NotAReview {
        /// `apiVersion` as sent.
        api_version: String,
        /// `kind` as sent.
        kind: String,
    },
    /// An operation that Kubernetes does not have.
    #[error("request.operation is {}: Kubernetes has CREATE, UPDATE, DELETE and CONNECT", Quoted(.0))]
    Operation(String),
}

/// A good envelope around an object that cannot be judged: denied with code 400.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// `object`, `oldObject` or what in it makes a pod is not there or `null`.
    #[error("{0} is missing: there is nothing to judge")]
    Missing(String),
    /// A member that podgate reads has another type.
    #[error("{path}: {error}")]
    Type {
        /// Where, such as `request.object.spec.containers[0].image`.
        path: String,
        /// What was found and what was expected.
        error: String,
    },
}
