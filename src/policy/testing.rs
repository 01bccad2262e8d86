//! What the policies' tests share.

use serde_json::Value;

use super::active::ActiveMutations;
use super::in_force::Stage;
use super::{Candidate, Context, Policies, Prepared, Requester, Validation};
use crate::json::{Object, TextMap};
use crate::pod::{PodSpec, SpecText};

/// Somebody whom nothing excludes.
pub(super) const ANYBODY: Requester<'static> =
    Requester { namespace: "team-a", user: "ann", groups: &[], today: time::Date::MIN };

/// Reads a pod's spec.
pub(super) fn pod(spec: &str) -> PodSpec<'_> {
    let Object(spec) = serde_json::from_str(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    spec
}

/// The lines that a policy has for a pod's spec.
#[expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without a borrow")]
pub(super) fn lines(validation: &impl Validation, spec: Value) -> Vec<String> {
    let text = spec.to_string();
    let pod = pod(&text);
    let mut violations = Vec::new();
    let policies = Policies::default();
    let mutations = ActiveMutations::of(&policies, &ANYBODY);
    let labels = TextMap::default();
    let candidate = Candidate { labels: &labels, spec: &pod, text: SpecText::default() };
    let prepared = Prepared::stored(&candidate, Vec::new(), mutations);
    let context = Context { mutations, stage: Stage::Final, today: ANYBODY.today, prepared: &prepared };
    validation.check(&pod, &context, &mut violations);
    violations.iter().map(|violation| violation.line("")).collect()
}

/// A pod's spec after the mutations.
pub(super) fn patched(policies: &Policies, spec: Value) -> Value {
    let text = spec.to_string();
    let mut object = Value::from_iter([("spec", spec)]);
    let in_force = policies.in_force(ANYBODY).unwrap_or_else(|| panic!("nobody is excluded"));
    let labels = TextMap::default();
    let (spec, labels) = (pod(&text), &labels);
    let candidate = Candidate { labels, spec: &spec, text: SpecText::default() };
    if let Some(mutated) = in_force.mutate_pod(&in_force.with_sidecars(&candidate)) {
        let patch = serde_json::to_value(&mutated.patch).unwrap_or_default();
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap_or_else(|error| panic!("{error}"));
        json_patch::patch(&mut object, &patch).unwrap_or_else(|error| panic!("{error}"));
    }
    object["spec"].take()
}
