//! How long and how much the server lets its clients have.

use std::time::Duration;

use super::body::FREE_BYTES;

const MIB: usize = 1 << 20;

/// Every limit of the server. The defaults suit kube-apiserver, which keeps an idle connection for
/// 90 s and may send two objects of 3 MiB in one review.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From the TCP connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// HTTP/1.1: from the first byte of a request to the end of its head.
    pub head: Duration,
    /// From the end of a request's head to the end of its body.
    pub body: Duration,
    /// How long an answer may wait for a client to take it.
    pub write: Duration,
    /// Between two requests. More than the 90 s after which kube-apiserver closes an idle
    /// connection: whoever closes first loses the race against the next request.
    pub idle: Duration,
    /// How long the rest of a refused request is read and thrown away before the refusal is sent;
    /// a client that is still writing would see a reset instead of the answer.
    pub discard: Duration,
    /// After the listeners have closed: how long requests in flight may take to finish.
    pub drain: Duration,
    /// HTTP/1.1 connections to the webhooks, with their handshake done.
    pub connections: usize,
    /// HTTP/2 connections, beside those: each may carry many requests. kube-apiserver makes them only
    /// where a webhook is registered by a url on its own host, and then one for all requests.
    pub http2_connections: usize,
    /// TLS handshakes going on at the same time.
    pub handshakes: usize,
    /// Connections to the admin listener.
    pub admin_connections: usize,
    /// Bytes of one body.
    pub body_bytes: usize,
    /// Bytes of all the bodies in memory, those of requests and those of answers; of each, the first
    /// 16 KiB do not count, so that small reviews always have room.
    pub bodies_bytes: usize,
    /// Bytes of a body from which on it is large: of those, only one is evaluated at a time.
    pub large_body_bytes: usize,
    /// Bytes of a refused request that are read and thrown away.
    pub discard_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            write: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            discard: Duration::from_secs(1),
            drain: Duration::from_secs(10),
            connections: 768,
            http2_connections: 8,
            handshakes: 128,
            admin_connections: 64,
            body_bytes: 8 * MIB,
            bodies_bytes: 40 * MIB,
            large_body_bytes: 64 << 10,
            discard_bytes: 64 * MIB,
        }
    }
}

/// What podgate takes with nobody connected: its code, its runtime, the allocator's own.
const BASE_BYTES: usize = 32 * MIB;
/// What a connection takes beside its bodies: a TLS record each way, what is read ahead of a head, what
/// waits to be encrypted, and its task.
const CONNECTION_BYTES: usize = 64 << 10;
/// What an HTTP/2 connection takes beside its bodies: its flow-control window, its streams and their heads,
/// its answers' heads.
const HTTP2_CONNECTION_BYTES: usize = MIB;
/// The requests that an HTTP/2 connection may have at a time.
pub(super) const HTTP2_STREAMS: u32 = 64;
/// What a handshake takes: the largest message that TLS reads (RFC 8446, section 4), and its keys.
const HANDSHAKE_BYTES: usize = 80 << 10;

/// How many times its size the largest body takes while it is evaluated, beside itself: its keys.
const EVALUATION_FACTOR: usize = 4;

impl Limits {
    /// The most bytes of memory that the server takes, as the README explains.
    #[must_use]
    pub fn memory_max(&self) -> usize {
        BASE_BYTES
            + self.connections * (CONNECTION_BYTES + FREE_BYTES)
            + self.admin_connections * CONNECTION_BYTES
            + self.http2_connections * (HTTP2_CONNECTION_BYTES + HTTP2_STREAMS as usize * FREE_BYTES)
            + self.handshakes * HANDSHAKE_BYTES
            + self.bodies_bytes
            + EVALUATION_FACTOR * self.body_bytes
    }

    /// How long a request in flight may go without an end: its body, and its answer.
    pub(super) fn exchange(&self) -> Duration {
        self.body + self.discard + self.write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_leave_room_in_the_deployments_limit() {
        assert!(Limits::default().memory_max() < 200 * MIB, "{}", Limits::default().memory_max());
    }
}
