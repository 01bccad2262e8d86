//! Requests that never reach the policies, and what their senders are told.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use serde::Serialize;
use thiserror::Error;

use crate::beginning::beginning;

/// How much of what a client sent is repeated to it.
const ECHOED: usize = 100;

/// Why a request is not answered by the policies. The message says what to do instead.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("there is nothing at {path:?}: {instead}")]
    NotFound { path: String, instead: &'static str },
    #[error("{method} is not allowed on {path}: send {allowed}")]
    Method { method: Method, path: String, allowed: &'static str },
    #[error(
        "the client showed no certificate, and this server answers those with one of its --client-ca alone: in \
         kube-apiserver's --admission-control-config-file, give the webhook plugins a kubeConfigFile with \
         client-certificate and client-key for this server"
    )]
    NoClientCertificate,
    #[error(
        "the client's certificate is for {found}, and allowed are {allowed}: have kube-apiserver show one of these, \
         or name the other with this server's --client-name"
    )]
    ClientName { found: String, allowed: String },
    #[error("the request has no Content-Type: send an AdmissionReview as application/json")]
    NoContentType,
    #[error("the Content-Type is {found:?}: send an AdmissionReview as application/json")]
    ContentType { found: String },
    #[error("the Content-Encoding is {found:?}: send the body uncompressed, without Content-Encoding")]
    ContentEncoding { found: String },
    #[error("the body is larger than {limit} bytes: send a smaller one, or raise the server's --max-body-bytes")]
    TooLarge { limit: usize },
    #[error("the body was not complete {} ms after its head: send it faster", limit.as_millis())]
    TooSlow { limit: std::time::Duration },
    #[error("large reviews and their answers fill the memory that the server has for them: try again in a second")]
    Busy,
    #[error("the body cannot be read ({0}): send all the bytes that the head announces")]
    Broken(axum::Error),
    #[error("the server is not ready, for {why}")]
    NotReady { why: std::borrow::Cow<'static, str> },
}

/// The metav1.Status that every refusal is, so that the clients of an API server can show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    message: &'a str,
    reason: &'static str,
    code: u16,
}

#[derive(Debug, Serialize)]
struct Empty {}

impl Refusal {
    /// The names of those that metrics count.
    pub(super) const COUNTED: [&'static str; 9] = [
        "not_found",
        "method",
        "unauthenticated",
        "content_type",
        "content_encoding",
        "too_large",
        "timeout",
        "busy",
        "broken",
    ];

    /// Nothing is served under `path`.
    pub(super) fn not_found(path: &str, instead: &'static str) -> Self {
        Self::NotFound { path: echo(path), instead }
    }

    /// The request's path is served, but not by its method.
    pub(super) fn method(request: &Request, allowed: &'static str) -> Self {
        Self::Method { method: request.method().clone(), path: echo(request.uri().path()), allowed }
    }

    /// The name that metrics count it by.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Method { .. } => "method",
            Self::NoClientCertificate | Self::ClientName { .. } => "unauthenticated",
            Self::NoContentType | Self::ContentType { .. } => "content_type",
            Self::ContentEncoding { .. } => "content_encoding",
            Self::TooLarge { .. } => "too_large",
            Self::TooSlow { .. } => "timeout",
            Self::Busy => "busy",
            Self::Broken(_) => "broken",
            Self::NotReady { .. } => "not_ready",
        }
    }

    /// The HTTP status, and the reason that Kubernetes has for it (metav1.StatusReason).
    fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NotFound { .. } => (StatusCode::NOT_FOUND, "NotFound"),
            Self::Method { .. } => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Self::NoClientCertificate | Self::ClientName { .. } => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::NoContentType | Self::ContentType { .. } | Self::ContentEncoding { .. } => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType")
            }
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::TooSlow { .. } => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Self::Busy | Self::NotReady { .. } => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Self::Broken(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
        }
    }

    /// The answer that tells the client.
    pub(super) fn response(&self) -> Response {
        let (code, reason) = self.status();
        let message = self.to_string();
        let failure = Failure {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: "Failure",
            message: &message,
            reason,
            code: code.as_u16(),
        };
        let mut response = json(code, serde_json::to_vec(&failure).unwrap_or_default());
        match self {
            Self::Method { allowed, .. } => {
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            }
            // kube-apiserver tries again only where it is told when.
            Self::Busy => {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// An answer with a JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response {
    typed(status, "application/json", body)
}

/// An answer with a body of the given type.
pub(super) fn typed(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What a client sent, short enough to repeat to it.
pub(super) fn echo(sent: &str) -> String {
    beginning(sent, ECHOED).into_owned()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_refusal_is_a_status() {
        let response = Refusal::Busy.response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let body = response.into_body().collect().await.expect("a body in memory").to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(
            status,
            serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": Refusal::Busy.to_string(), "reason": "ServiceUnavailable", "code": 503
            })
        );
    }

    #[test]
    fn every_reason_is_known_beforehand() {
        let limit = std::time::Duration::ZERO;
        let (path, found) = (String::new, String::new);
        let refusals = [
            Refusal::NotFound { path: path(), instead: "" },
            Refusal::Method { method: Method::GET, path: path(), allowed: "" },
            Refusal::NoClientCertificate,
            Refusal::ClientName { found: found(), allowed: String::new() },
            Refusal::NoContentType,
            Refusal::ContentType { found: found() },
            Refusal::ContentEncoding { found: found() },
            Refusal::TooLarge { limit: 0 },
            Refusal::TooSlow { limit },
            Refusal::Busy,
            Refusal::Broken(axum::Error::new("")),
        ];
        let mut names: Vec<_> = refusals.iter().map(Refusal::name).collect();
        names.dedup();
        assert_eq!(names, Refusal::COUNTED);
    }
}
