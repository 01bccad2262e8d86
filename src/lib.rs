//! podgate: a Kubernetes admission webhook.
//!
//! ```text
//! bytes → TLS → HTTP → review → policies → patch and verdict → bytes
//! └── server ────┘  └─ review ┘└ policy ┘ └─ patch, review ─┘└ server
//! ```

pub mod admission;
mod beginning;
pub mod certs;
pub mod check;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod creation;
pub mod json;
pub mod manifest;
pub mod metrics;
pub mod patch;
pub mod pod;
pub mod policy;
pub mod reload;
pub mod review;
pub mod server;
