//! Certificates: made, and read from files.

mod issue;
mod load;

pub use issue::{IssueError, Issued, SERVICE_NAMES, issue};
pub use load::{CertificateError, ServerCertificate};
