//! AdmissionReview (`admission.k8s.io/v1`): the request read, the response written.

mod denial;
mod error;
mod payload;
mod request;
mod response;

pub use denial::{Denial, Described};
pub use error::{Invalid, Malformed};
pub use payload::{Requested, Subresource};
pub use request::{Operation, Review, read};
pub use response::{Response, malformed};
