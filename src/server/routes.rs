//! What the HTTPS port answers: the two webhooks, and the probes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::response::Response;
use axum::routing::post;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use tokio::time::Instant;
use tracing::{debug, info};

use super::body::{self, Budget, Turns};
use super::clients::Allowed;
use super::refusal::{Refusal, echo, json};
use super::{Shared, health};
use crate::admission::{Answer, Event, EventKind, Webhook};
use crate::beginning::beginning;
use crate::metrics;

/// Answers one review: what a webhook is, to the server. It is called on a worker thread for every
/// request, so it takes microseconds and never blocks.
pub type Admit = dyn Fn(Webhook, &[u8]) -> Answer + Send + Sync;

/// What the webhooks need to answer.
#[derive(Clone)]
pub(super) struct Webhooks {
    pub(super) admit: Arc<Admit>,
    pub(super) allowed: Allowed,
    pub(super) budget: Budget,
    pub(super) turns: Turns,
    pub(super) shared: Arc<Shared>,
}

impl FromRef<Webhooks> for Arc<Shared> {
    fn from_ref(webhooks: &Webhooks) -> Self {
        Self::clone(&webhooks.shared)
    }
}

/// The routes of the HTTPS port.
pub(super) fn router(webhooks: Webhooks) -> Router {
    let mutate =
        |State(webhooks): State<Webhooks>, request| async move { webhooks.review(Webhook::Mutate, request).await };
    let validate =
        |State(webhooks): State<Webhooks>, request| async move { webhooks.review(Webhook::Validate, request).await };
    Router::new()
        .route("/mutate", post(mutate).fallback(only_post))
        .route("/validate", post(validate).fallback(only_post))
        .merge(health::routes(&["/healthz", "/readyz"]))
        .fallback(nothing_there)
        .with_state(webhooks)
}

async fn only_post(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    shared.refuse(&Refusal::method(&request, "POST"), request).await
}

async fn nothing_there(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let instead = "post AdmissionReviews to /mutate and /validate, probe /healthz, /readyz and /livez";
    shared.refuse(&Refusal::not_found(request.uri().path(), instead), request).await
}

impl Webhooks {
    async fn review(&self, webhook: Webhook, mut request: Request) -> Response {
        match self.try_review(webhook, &mut request).await {
            Ok(response) => response,
            Err(refusal) => self.shared.refuse(&refusal, request).await,
        }
    }

    async fn try_review(&self, webhook: Webhook, request: &mut Request) -> Result<Response, Refusal> {
        let started = Instant::now();
        let _in_flight = self.shared.metrics.in_flight();
        self.allowed.check(request.extensions())?;
        readable(request.headers())?;
        let received = body::read(request.body_mut(), &self.shared.limits, &self.budget).await?;
        let _turn = self.turns.wait(received.as_ref().len()).await;
        let mut answer = (self.admit)(webhook, received.as_ref());
        drop(received);
        let body = self.budget.hold(std::mem::take(&mut answer.body))?;
        self.shared.metrics.answered(webhook, &answer, started.elapsed());
        if let Some(event) = &answer.event {
            log(webhook, &answer, event);
        }
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(json(status, body))
    }
}

/// The most characters of one text that the log repeats: more than any message that somebody would read.
const LOGGED: usize = 4 << 10;

/// Refuses what is not plain JSON by its own account.
fn readable(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let found = headers.get(CONTENT_TYPE).ok_or(Refusal::NoContentType)?;
    let media_type = found.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    if !media_type.trim_ascii().eq_ignore_ascii_case(b"application/json") {
        return Err(Refusal::ContentType { found: echo(&text(found)) });
    }
    let is_identity = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"identity");
    for found in headers.get_all(CONTENT_ENCODING) {
        if !found.as_bytes().split(|&byte| byte == b',').all(is_identity) {
            return Err(Refusal::ContentEncoding { found: echo(&text(found)) });
        }
    }
    Ok(())
}

/// One line in the log. What clients sent is in fields, which the log escapes, and never in its words.
fn log(webhook: Webhook, answer: &Answer, event: &Event) {
    let kind = event.kind;
    let texts = [&event.uid, &event.namespace, &event.name, &event.user, &event.policies, &event.message];
    let texts = texts.map(|text| beginning(text, LOGGED));
    let [uid, namespace, name, user, policies, message] = texts.each_ref().map(|text| &**text);
    let Answer { operation, resource, .. } = answer;
    let webhook = metrics::webhook_name(webhook);
    let what = match kind {
        // Nothing else is known of it.
        EventKind::Unreadable => return info!(webhook, reason = message, "not an AdmissionReview"),
        EventKind::Invalid => "cannot be judged",
        EventKind::Denied => "denied",
        EventKind::Audited => "not denied, only audited",
        EventKind::MirrorPod => "a mirror pod that policies would deny",
        EventKind::Unremarkable => {
            let what = metrics::verdict_name(answer.verdict);
            return debug!(webhook, uid, namespace, name, user, operation, resource, "{what}");
        }
    };
    info!(webhook, uid, namespace, name, user, operation, resource, policies, reason = message, "{what}");
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn verdict(headers: &[(HeaderName, &'static str)]) -> Option<&'static str> {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        readable(&headers).err().map(|refusal| refusal.name())
    }

    #[test]
    fn json_is_readable_however_it_is_written() {
        for content_type in
            ["application/json", "Application/JSON", "application/json;charset=utf-8", "application/json ; a=b"]
        {
            assert_eq!(verdict(&[(CONTENT_TYPE, content_type)]), None, "{content_type}");
        }
        for encoding in ["identity", "Identity"] {
            assert_eq!(verdict(&[(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, encoding)]), None);
        }
    }

    #[test]
    fn anything_else_is_not() {
        assert_eq!(verdict(&[]), Some("content_type"));
        for content_type in ["text/plain", "application/jsonp", "application/json-patch+json", "application/yaml", ""] {
            assert_eq!(verdict(&[(CONTENT_TYPE, content_type)]), Some("content_type"), "{content_type}");
        }
        for encoding in ["gzip", "identity, gzip", "br"] {
            let headers = [(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, encoding)];
            assert_eq!(verdict(&headers), Some("content_encoding"), "{encoding}");
        }
    }
}
