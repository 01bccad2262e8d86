//! Manifests, as people have them in files: YAML or JSON, several documents, anchors and merges,
//! lists; each node with its place.
//!
//! Pure: text in, objects out. Scalars are read as kubectl reads them (YAML 1.1, by
//! `sigs.k8s.io/yaml`), so that what is a number or a boolean here is one in the cluster. What
//! aliases may add, and how deep a document may nest, is limited.

mod builder;
mod fault;
mod kinds;
mod language;
mod node;
mod object;
mod scalar;

pub use fault::{Fault, Problem};
pub use language::{Language, documents};
pub use node::{Entry, Node, Position, Value};
pub use object::{Object, objects};
