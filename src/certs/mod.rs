//! Certificates: made, read from files, and kept fresh.

mod client_authority;
mod holdings;
mod issue;
mod load;
mod material;
mod rotation;
mod validity;

pub use client_authority::ClientAuthority;
pub use issue::{IssueError, Issued, SERVICE_NAMES, issue};
pub use load::{CertificateError, ServerCertificate};
pub use material::Material;
pub use rotation::{Change, Lifetimes, LifetimesError, Registration, Rotation, Steps};
pub use validity::{Standing, Validity};
