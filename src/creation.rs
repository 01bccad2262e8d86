//! What a cluster with podgate would do with one new object: both webhooks, in the order in which
//! kube-apiserver calls them.
//!
//! Each is asked with a review, as the server is, so that the verdict is the server's.

use std::collections::{HashMap, HashSet};

use json_patch::{AddOperation, Patch, PatchOperation};
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
    let mut places = WrittenPlaces::default();
    if let Some(patch) = first.patch {
        let patch: Patch = serde_json::from_value(serde_json::to_value(patch)?)?;
        places = WrittenPlaces::before(&patch, &mutated);
        json_patch::patch(&mut mutated, &patch)?;
    }
    let last = ask(Webhook::Validate, &serde_json::to_vec(&mutated)?)?;
    let mut findings = first.findings;
    // What /mutate denies, /validate finds again, in other words where a mutation changed the field.
    let known: HashSet<(PolicyName, String)> =
        findings.iter().map(|finding| (finding.policy, finding.field.clone())).collect();
    let is_new = |finding: &Finding| !known.contains(&(finding.policy, finding.field.clone()));
    let last = last.findings.into_iter().map(|finding| places.place(finding, &mutated));
    findings.extend(last.filter(is_new));
    Ok(Creation { findings, mutated })
}

/// Where the containers and volumes of a pod that got sidecars stand in the file: for each place in a list of
/// its spec the place there, `None` for what it got. Lists that got nothing are left out.
#[derive(Debug, Default)]
struct WrittenPlaces(HashMap<String, Vec<Option<usize>>>);

impl WrittenPlaces {
    /// The places of an object that a patch is about to change.
    fn before(patch: &Patch, object: &Value) -> Self {
        let mut lists = HashMap::<_, Vec<_>>::new();
        for operation in &patch.0 {
            let PatchOperation::Add(AddOperation { path, value }) = operation else { continue };
            let tokens: Vec<_> = path.tokens().map(|token| token.decoded().into_owned()).collect();
            let written = |list: &str| object["spec"][list].as_array().map_or(0, Vec::len);
            match &tokens[..] {
                [spec, list, place] if spec == "spec" => {
                    let Ok(place) = place.parse::<usize>() else { continue };
                    let places = lists.entry(list.clone()).or_insert_with(|| (0..written(list)).map(Some).collect());
                    places.insert(place.min(places.len()), None);
                }
                [spec, list] if spec == "spec" => {
                    let Some(added) = value.as_array() else { continue };
                    lists.insert(list.clone(), vec![None; added.len()]);
                }
                _ => {}
            }
        }
        Self(lists)
    }

    /// A finding in the pod as it would be stored, at the place in the file; one in a sidecar is named by the
    /// sidecar's name.
    fn place(&self, finding: Finding, stored: &Value) -> Finding {
        let place = || {
            let (list, rest) = finding.field.strip_prefix("spec.")?.split_once('[')?;
            let index: usize = rest.split_once(']')?.0.parse().ok()?;
            let place = match self.0.get(list)?.get(index)? {
                Some(place) => place.to_string(),
                None => stored["spec"][list][index]["name"].as_str().unwrap_or_default().to_owned(),
            };
            Some((format!("spec.{list}[{index}]"), format!("spec.{list}[{place}]")))
        };
        let Some((stored, written)) = place() else { return finding };
        let replace = |text: &str| text.replacen(&stored, &written, 1);
        Finding { field: replace(&finding.field), line: replace(&finding.line), ..finding }
    }
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

    /// The API server refuses such names, but not before podgate has told of what else is wrong.
    #[test]
    fn places_do_not_depend_on_names() {
        let with_sidecars = "mutations:\n  sidecars:\n    - container: { name: agent, image: \"agent:1\" }\n      native: false\n      \
                             position: before\n      volumes: [{ name: logs, emptyDir: {} }]\n";
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
            "containers": [{"image": "app:1"}, {"image": "app:1", "ports": [{"hostPort": 80}]}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/a"}}, {},
                        {"hostPath": {"path": "/b"}}]}}"#;
        for sidecars in ["", with_sidecars] {
            let configuration = format!("{sidecars}validations:\n  hostPorts: {{ action: deny }}\n");
            let policies = crate::config::parse(&configuration).unwrap_or_else(|fault| panic!("{fault}"));
            let creation = create(&policies, Kind::Pod, "team-a", pod.as_bytes(), Date::MIN);
            let creation = creation.unwrap_or_else(|error| panic!("{error}"));
            let fields: Vec<_> = creation.findings.iter().map(|finding| finding.field.as_str()).collect();
            let expected = [
                "spec.volumes[1].hostPath.path",
                "spec.volumes[3].hostPath.path",
                "spec.containers[1].ports[0].hostPort",
            ];
            assert_eq!(fields, expected, "{sidecars}");
        }
    }
}
