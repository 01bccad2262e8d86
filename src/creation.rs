//! What a cluster with podgate would do with one new object: both webhooks, in the order in which
//! kube-apiserver calls them.
//!
//! Each is asked with a review, as the server is, so that the verdict is the server's.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use time::Date;

use crate::admission::{self, Finding, Unexaminable, Webhook};
use crate::pod::WorkloadKind;
use crate::policy::{Policies, PolicyName};

/// The kinds of objects that podgate judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `v1` Pod.
    Pod,
    /// An object with a pod template.
    Workload(WorkloadKind),
}

impl Kind {
    /// The kind of that `apiVersion` and `kind`, where podgate judges it.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        if (api_version, kind) == ("v1", "Pod") {
            return Some(Self::Pod);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        WorkloadKind::of(group, version, kind).map(Self::Workload)
    }

    /// The kind's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Workload(kind) => kind.as_str(),
        }
    }

    const fn group_and_resource(self) -> (&'static str, &'static str) {
        match self {
            Self::Pod => ("", "pods"),
            Self::Workload(kind) => (kind.group(), kind.resource()),
        }
    }
}

/// What both webhooks say of a new object.
#[derive(Debug)]
pub struct Creation {
    /// Every violation, those that `/mutate` denies first, each once.
    pub findings: Vec<Finding>,
    /// The object after the mutations.
    pub mutated: Value,
}

/// Why it cannot be said what would become of an object.
#[derive(Debug, thiserror::Error)]
pub enum CreationError {
    /// The object cannot be judged.
    #[error(transparent)]
    Unexaminable(#[from] Unexaminable),
    /// The object or its review is no JSON.
    #[error("cannot write the review: {0}")]
    Json(#[from] serde_json::Error),
    /// The patch does not apply.
    #[error("cannot apply the patch: {0}")]
    Patch(#[from] json_patch::PatchError),
}

/// Judges the creation of an object, which is JSON, in a namespace, by nobody in particular.
///
/// # Errors
/// An object that a cluster would refuse with code 400.
pub fn create(
    policies: &Policies,
    kind: Kind,
    namespace: &str,
    object: &[u8],
    today: Date,
) -> Result<Creation, CreationError> {
    let ask = |webhook, object: &[u8]| -> Result<_, CreationError> {
        let review = serde_json::to_vec(&Review::of(kind, namespace, serde_json::from_slice(object)?))?;
        Ok(admission::examine(policies, webhook, &review, today)?)
    };
    let first = ask(Webhook::Mutate, object)?;
    let mut mutated: Value = serde_json::from_slice(object)?;
    if let Some(patch) = first.patch {
        let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(patch)?)?;
        json_patch::patch(&mut mutated, &patch)?;
    }
    let last = ask(Webhook::Validate, &serde_json::to_vec(&mutated)?)?;
    let mut findings = first.findings;
    // What /mutate denies, /validate finds again, in other words where a mutation changed the field.
    let known: HashSet<(PolicyName, String)> =
        findings.iter().map(|finding| (finding.policy, finding.field.clone())).collect();
    let is_new = |finding: &Finding| !known.contains(&(finding.policy, finding.field.clone()));
    let written: Value = serde_json::from_slice(object)?;
    let last = last.findings.into_iter().map(|finding| place_as_written(finding, &written, &mutated));
    findings.extend(last.filter(is_new));
    Ok(Creation { findings, mutated })
}

/// A finding in a pod that got sidecars, at the place that the container or volume at fault has in the
/// file; one that is not there is named by its name.
fn place_as_written(finding: Finding, written: &Value, mutated: &Value) -> Finding {
    let place = || {
        let (list, rest) = finding.field.strip_prefix("spec.")?.split_once('[')?;
        let (index, _) = rest.split_once(']')?;
        let element = mutated["spec"][list].get(index.parse::<usize>().ok()?)?;
        let known = written["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
        let place = known.iter().position(|known| known["name"] == element["name"]);
        let place = place.map_or_else(|| element["name"].as_str().unwrap_or_default().to_owned(), |at| at.to_string());
        (place != index).then(|| (format!("spec.{list}[{index}]"), format!("spec.{list}[{place}]")))
    };
    let Some((stored, written)) = place() else { return finding };
    let replace = |text: &str| text.replacen(&stored, &written, 1);
    Finding { field: replace(&finding.field), line: replace(&finding.line), ..finding }
}

/// An AdmissionReview of a CREATE.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    request: Request<'a>,
}

#[derive(Serialize)]
struct Request<'a> {
    uid: &'static str,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    operation: &'static str,
    namespace: &'a str,
    object: &'a RawValue,
}

#[derive(Serialize)]
struct GroupVersionKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

#[derive(Serialize)]
struct GroupVersionResource {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

impl<'a> Review<'a> {
    const fn of(kind: Kind, namespace: &'a str, object: &'a RawValue) -> Self {
        let (group, resource) = kind.group_and_resource();
        Self {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            request: Request {
                uid: "check",
                kind: GroupVersionKind { group, version: "v1", kind: kind.as_str() },
                resource: GroupVersionResource { group, version: "v1", resource },
                operation: "CREATE",
                namespace,
                object,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_file() {
        let configuration = "mutations:\n  sidecars:\n    - container: { name: agent, image: \"agent:1\", securityContext: { privileged: \
                             true } }\nvalidations:\n  privileged: { exclude: { namespaces: [ops] } }\n";
        let policies = crate::config::parse(configuration).unwrap_or_else(|fault| panic!("{fault}"));
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
            "containers": [{"name": "app", "image": "app:1"}], "initContainers": [{"name": "step", "image": "step"}]}}"#;
        let creation = create(&policies, Kind::Pod, "team-a", pod.as_bytes(), Date::MIN);
        let creation = creation.unwrap_or_else(|error| panic!("{error}"));
        let fields: Vec<_> = creation.findings.iter().map(|finding| finding.field.as_str()).collect();
        assert_eq!(fields, ["spec.initContainers[agent].securityContext.privileged", "spec.initContainers[0].image"]);
        assert_eq!(creation.mutated["spec"]["initContainers"][1]["name"], "step");
    }
}
