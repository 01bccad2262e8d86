//! What the admin port answers: metrics, and the probes that need no TLS.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use super::connection::Respond;
use super::refusal::{Refusal, echo, typed};
use super::{Shared, body, health};
use crate::metrics;

/// The responder of the admin port.
pub(super) struct Admin {
    pub(super) shared: Arc<Shared>,
}

impl Respond for Admin {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        let answer = match head.uri.path() {
            "/metrics" => health::probed_with(&head.method, "/metrics")
                .map(|()| typed(StatusCode::OK, metrics::CONTENT_TYPE, self.shared.metrics.text())),
            "/readyz" => health::probed_with(&head.method, "/readyz").and_then(|()| self.shared.health.ready()),
            "/livez" => health::probed_with(&head.method, "/livez").map(|()| health::fine()),
            path => Err(Refusal::NotFound { path: echo(path), instead: "get /metrics, /livez or /readyz" }),
        };
        match answer {
            Ok(response) => response,
            Err(refusal) => {
                body::discard(&mut body, &self.shared.limits).await;
                refusal.response()
            }
        }
    }
}
