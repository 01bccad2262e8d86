//! Whether the server is alive, and whether it wants requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use hyper::StatusCode;

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
#[derive(Debug, Default)]
pub(super) struct Health {
    draining: AtomicBool,
}

impl Health {
    /// From now on, not ready.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed)
    }
}

async fn readiness(State(shared): State<Arc<Shared>>) -> Response {
    if shared.health.is_ready() { fine().await } else { Refusal::NotReady { state: "draining" }.response() }
}

/// The answer to a liveness probe: that there is one is all it says.
async fn fine() -> Response {
    typed(StatusCode::OK, "text/plain; charset=utf-8", Bytes::from_static(b"ok\n"))
}

/// Refuses every method but those of probes.
pub(super) async fn only_get(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    shared.refuse(&Refusal::method(&request, "GET, HEAD"), request).await
}
