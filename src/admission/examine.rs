//! The same judgement, violation by violation.

use time::Date;

use super::{Judged, Webhook, describe, judge};
use crate::patch::Patch;
use crate::policy::{Action, Judgement, Policies, PolicyName};
use crate::review::{self, Invalid, Malformed};

/// What podgate makes of a review, violation by violation.
#[derive(Debug)]
pub struct Examined {
    /// Every violation, in the order of the policies.
    pub findings: Vec<Finding>,
    /// What the mutations set; where there is a denial too, what they would set without it.
    pub patch: Option<Patch>,
}

/// One violation, in the words in which [`super::answer`] tells of it.
#[derive(Debug)]
pub struct Finding {
    /// The policy.
    pub policy: PolicyName,
    /// What is done about it in this request.
    pub action: Action,
    /// What the policy does about it in a pod; of a workload, `action` may be less.
    pub action_on_pods: Action,
    /// The path of the field, from the root of the object.
    pub field: String,
    /// The line that its author sees.
    pub line: String,
}

/// Why a review has no answer to be examined.
#[derive(Debug, thiserror::Error)]
pub enum Unexaminable {
    /// Not an AdmissionReview that podgate can read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The object in it cannot be judged.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The same judgement as [`super::answer`]'s, for those who need each violation on its own.
///
/// # Errors
/// What [`super::answer`] answers with code 400.
pub fn examine(policies: &Policies, webhook: Webhook, body: &[u8], today: Date) -> Result<Examined, Unexaminable> {
    let review = review::read(body)?;
    if let Err(invalid) = review.requested {
        return Err(invalid.into());
    }
    let root = describe(&review).root;
    Ok(judge(policies, webhook, &review, today, |judged| {
        let Judged { judgements, mutated, .. } = judged;
        let finding = |judgement: &Judgement<'_>| Finding {
            policy: judgement.violation.policy,
            action: judgement.action,
            action_on_pods: judgement.rule.action,
            field: format!("{root}{}", judgement.violation.field_path()),
            line: judgement.line(root),
        };
        Examined { findings: judgements.iter().map(finding).collect(), patch: mutated.map(|mutated| mutated.patch) }
    }))
}
