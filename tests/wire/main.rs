//! The server on real sockets, with real TLS. Limits are shortened by setting them; upper bounds on
//! time are generous, so that a slow machine changes nothing.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod certificates;
mod client_certificates;
mod crowd;
mod drain;
mod limits;
mod logs;
mod memory;
mod metrics;
mod monitoring;
mod reload;
mod requests;
mod support;
mod tls;
