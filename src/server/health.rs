//! Whether the server is alive, and whether it wants requests.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Response, StatusCode};

use super::refusal::{Refusal, typed};

/// The methods that probes may use.
pub(super) const PROBE_METHODS: &str = "GET, HEAD";

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

    /// The answer to a readiness probe.
    pub(super) fn ready(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        if self.draining.load(Ordering::Relaxed) {
            return Err(Refusal::NotReady { state: "draining" });
        }
        Ok(fine())
    }
}

/// The answer to a liveness probe: that there is one is all it says.
pub(super) fn fine() -> Response<Full<Bytes>> {
    typed(StatusCode::OK, "text/plain; charset=utf-8", Bytes::from_static(b"ok\n"))
}

/// Refuses every method but those of probes.
pub(super) fn probed_with(method: &Method, path: &'static str) -> Result<(), Refusal> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    Err(Refusal::Method { method: method.clone(), path, allowed: PROBE_METHODS })
}
