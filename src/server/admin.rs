//! What the admin port answers: metrics, and the probes that need no TLS.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use hyper::StatusCode;

use super::refusal::{Refusal, typed};
use super::{Shared, health};
use crate::metrics;

/// The routes of the admin port.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/metrics", get(text).fallback(health::only_get))
        .merge(health::routes(&["/readyz"]))
        .fallback(nothing_there)
        .with_state(shared)
}

async fn text(State(shared): State<Arc<Shared>>) -> Response {
    shared.metrics.ready(shared.health.is_ready());
    typed(StatusCode::OK, metrics::CONTENT_TYPE, shared.metrics.text())
}

async fn nothing_there(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let refusal = Refusal::not_found(request.uri().path(), "get /metrics, /livez or /readyz");
    shared.refuse(&refusal, request).await
}
