//! AdmissionReview (`admission.k8s.io/v1`): the request read, the response written.

mod denial;
mod error;
mod request;
mod response;

pub use denial::{Denial, Described};
pub use error::{Invalid, Malformed};
pub use request::{Operation, Requested, Review, Subresource, read};
pub use response::{Response, malformed};
