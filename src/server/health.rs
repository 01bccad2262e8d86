//! Whether the server is alive, and whether it wants requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use hyper::StatusCode;
use time::OffsetDateTime;

use super::Shared;
use super::refusal::{Refusal, typed};

/// The routes of the probes, the same on both ports: `/livez`, and readiness under each of `ready`.
pub(super) fn routes<S>(ready: &[&str]) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<Shared>: FromRef<S>,
{
    let live = Router::new().route("/livez", get(fine).fallback(only_get));
    ready.iter().fold(live, |router, path| router.route(path, get(readiness).fallback(only_get)))
}

/// What the probes are told.
#[derive(Debug)]
pub(super) struct Health {
    draining: AtomicBool,
    /// When the certificate in use expires, in seconds since 1970.
    certificate_expires: AtomicI64,
}

impl Health {
    pub(super) fn new(certificate_expires: OffsetDateTime) -> Self {
        let certificate_expires = AtomicI64::new(certificate_expires.unix_timestamp());
        Self { draining: AtomicBool::new(false), certificate_expires }
    }

    /// From now on, not ready.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The certificate in use expires at `time`.
    pub(super) fn certificate_expires(&self, time: OffsetDateTime) {
        self.certificate_expires.store(time.unix_timestamp(), Ordering::Relaxed);
    }

    /// Why no requests should come, where there is a reason.
    fn unready(&self) -> Option<Refusal> {
        if self.draining.load(Ordering::Relaxed) {
            return Some(Refusal::NotReady { why: "it is draining: use another replica" });
        }
        let has_expired = self.certificate_expires.load(Ordering::Relaxed) < OffsetDateTime::now_utc().unix_timestamp();
        has_expired.then_some(Refusal::NotReady { why: "its certificate has expired: replace the files" })
    }
}

async fn readiness(State(shared): State<Arc<Shared>>) -> Response {
    match shared.health.unready() {
        Some(refusal) => refusal.response(),
        None => fine().await,
    }
}

/// The answer to a liveness probe: that there is one is all it says.
async fn fine() -> Response {
    typed(StatusCode::OK, "text/plain; charset=utf-8", Bytes::from_static(b"ok\n"))
}

/// Refuses every method but those of probes.
pub(super) async fn only_get(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    shared.refuse(&Refusal::method(&request, "GET, HEAD"), request).await
}
