//! A refusal and its words.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use crate::policy::{Judgement, Shown};

/// The most violations that one message lists.
const LISTED_MAX: usize = 100;

/// A refusal, as `metav1.Status` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What the author sees; may have several lines.
    pub message: String,
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) details: Option<Details>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Details {
    name: String,
    kind: &'static str,
    causes: Vec<Cause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

/// The object that a message is about.
#[derive(Debug, Clone)]
pub struct Described {
    /// How a message calls its kind: `pod`, `Deployment`.
    pub kind: &'static str,
    /// The resource, such as `pods`.
    pub resource: &'static str,
    /// Its namespace, from the request.
    pub namespace: String,
    /// Its name, or its generateName and `*`.
    pub name: String,
    /// Where the pod stands in the object: nothing, or `spec.template.` and the like.
    pub root: &'static str,
}

impl Denial {
    /// A refusal by policies: code 403, with a line and a cause for each violation.
    #[must_use]
    pub fn forbidden(described: Described, judgements: &[&Judgement<'_>]) -> Self {
        let Described { kind, resource, namespace, name, root } = described;
        let policies: BTreeSet<&str> = judgements.iter().map(|judgement| judgement.violation.policy.as_str()).collect();
        let noun = if policies.len() == 1 { "policy" } else { "policies" };
        let mut message = format!("{kind} {}/{} breaks {} {noun}", Shown(&namespace), Shown(&name), policies.len());
        let mut causes = Vec::new();
        for judgement in judgements.iter().take(LISTED_MAX) {
            let line = judgement.line(root);
            message.push('\n');
            message.push_str(&line);
            let field = format!("{root}{}", judgement.violation.field_path());
            causes.push(Cause { reason: "FieldValueForbidden", message: line, field });
        }
        if judgements.len() > LISTED_MAX {
            // Writing to a String does not fail.
            let _ = write!(message, "\nand {} more", judgements.len() - LISTED_MAX);
        }
        let details = Some(Details { name, kind: resource, causes });
        Self { message, code: 403, reason: "Forbidden", details }
    }

    /// A refusal of what cannot be judged: code 400.
    #[must_use]
    pub fn bad_request(message: String) -> Self {
        Self { message, code: 400, reason: "BadRequest", details: None }
    }
}
