//! Whether the server is alive, and whether it wants requests.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use hyper::StatusCode;
use time::OffsetDateTime;

use super::Shared;
use super::refusal::{Refusal, typed};
use crate::certs::{Standing, Validity};

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
    /// From when to when the certificate in use is valid; nothing without one.
    validity: ArcSwapOption<Validity>,
    /// What the first certificate waits for.
    waits_for: ArcSwapOption<String>,
}

impl Health {
    pub(super) fn new(validity: Option<Validity>) -> Self {
        Self {
            draining: AtomicBool::new(false),
            validity: ArcSwapOption::from_pointee(validity),
            waits_for: ArcSwapOption::empty(),
        }
    }

    /// From now on, not ready.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The certificate in use is valid from then to then.
    pub(super) fn certificate_is_valid(&self, validity: Validity) {
        self.validity.store(Some(Arc::new(validity)));
    }

    /// There is no certificate yet, and this is why.
    pub(super) fn certificate_waits_for(&self, reason: String) {
        self.waits_for.store(Some(Arc::new(reason)));
    }

    /// Whether requests should come.
    pub(super) fn is_ready(&self) -> bool {
        self.unready().is_none()
    }

    /// Why no requests should come, where there is a reason.
    fn unready(&self) -> Option<Refusal> {
        let refusal = |why: Cow<'static, str>| Some(Refusal::NotReady { why });
        if self.draining.load(Ordering::Relaxed) {
            return refusal("it is draining: use another replica".into());
        }
        let Some(validity) = self.validity.load_full() else {
            return refusal(match self.waits_for.load().as_deref() {
                Some(reason) => format!("it has no certificate yet: {reason}").into(),
                None => "it has no certificate yet: it is reading or making one".into(),
            });
        };
        match validity.standing(OffsetDateTime::now_utc()) {
            Standing::Valid => None,
            Standing::NotYetValid => {
                refusal(format!("its certificate is not valid before {}: replace the files", validity.starts).into())
            }
            Standing::Expired => refusal(
                "its certificate has expired: replace the files, or see in the log why it is not renewed".into(),
            ),
        }
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
