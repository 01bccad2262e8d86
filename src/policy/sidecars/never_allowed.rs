//! Sidecars that the validations deny in every pod.

use time::Date;

use super::super::active::ActiveMutations;
use super::super::in_force::{InForce, Stage};
use super::super::{Action, Cpu, Field, Memory, Policies, PolicyName, Requester, Subject, Validation, Violation};
use super::invalid::Place;
use super::selector::Selector;
use super::{Candidate, InvalidSidecar, Os, Prepared, Sidecar, SidecarFault, read_container};
use crate::json::TextMap;
use crate::pod::{ContainerList, PodSpec, ResourceName, SpecText};

/// Somebody in a namespace without a name, before any exclusion has expired.
const NOBODY: Requester<'static> = Requester { namespace: "", user: "", groups: &[], today: Date::MIN };

/// A container that asks for the least there is, by a name that no container can have.
const LEAST: &str = r#"{"name":"the pod's own","image":"a:1","resources":{"limits":{"cpu":"1m","memory":"1"}}}"#;

impl Policies {
    /// A sidecar that no pod could have, where there is one.
    pub(in super::super) fn invalid_sidecar(&self) -> Option<InvalidSidecar> {
        let sidecars = self.mutations.sidecars.each();
        let alone = |(index, sidecar)| self.never_allowed(index, &[sidecar]);
        let together = |(index, sidecar): (_, &_)| {
            let others = sidecars.iter().filter(|other| std::ptr::eq(*other, sidecar) || other.is_wherever(sidecar));
            self.never_allowed(index, &others.collect::<Vec<_>>())
        };
        let invalid = self.mutations.sidecars.invalid().cloned();
        let invalid = invalid.or_else(|| sidecars.iter().enumerate().find_map(alone));
        invalid.or_else(|| sidecars.iter().enumerate().find_map(together))
    }

    /// What is denied in the least of pods for these sidecars, whoever creates it; the first of
    /// them is at that index. What may be allowed to some, because they are excluded from a
    /// validation or from a mutation that it looks at, shows only in a pod.
    fn never_allowed(&self, index: usize, sidecars: &[&Sidecar]) -> Option<InvalidSidecar> {
        let spec = least_pod(sidecars.first()?.os);
        let [always, often] =
            [ActiveMutations::of_everybody(self, NOBODY.today), ActiveMutations::all(self, NOBODY.today)].map(
                |mutations| {
                    let of_pod = self.denied(index, &spec, &[], mutations);
                    let mut denied = self.denied(index, &spec, sidecars, mutations);
                    // What is denied without any sidecar is no fault of theirs.
                    denied.retain(|(policy, _)| !of_pod.iter().any(|(other, _)| other == policy));
                    denied
                },
            );
        always.into_iter().find(|denied| often.contains(denied)).map(|(_, invalid)| invalid)
    }

    /// What everybody is denied in a pod with these sidecars, by policy.
    fn denied(
        &self,
        index: usize,
        spec: &PodSpec<'_>,
        sidecars: &[&Sidecar],
        mutations: ActiveMutations<'_>,
    ) -> Vec<(PolicyName, InvalidSidecar)> {
        let candidate = Candidate { labels: &TextMap::default(), spec, text: SpecText::default() };
        let prepared = Prepared::injected(&candidate, sidecars.to_vec(), mutations);
        let found = InForce::with(self, NOBODY, mutations).violations(Stage::Template, &prepared).into_iter();
        let denied = found.filter(|(_, rule)| rule.action == Action::Deny && rule.exclude.requesters().are_none());
        let place = Place::new(index);
        denied.filter_map(|(violation, _)| Some((violation.policy, fault_of(&place, sidecars, violation)?))).collect()
    }
}

/// A pod of one container that asks for the least there is.
#[expect(clippy::expect_used, reason = "the text is a constant, which every configuration with a sidecar reads")]
fn least_pod(os: Os) -> PodSpec<'static> {
    let mut spec = PodSpec::of_os(if os == Os::Windows { "windows" } else { "linux" });
    spec.list_mut(ContainerList::Containers).push(read_container(LEAST).expect("the text is a container"));
    spec
}

/// The resource that a policy limits for the pod as a whole.
fn limited_by(policy: PolicyName) -> Option<ResourceName> {
    match policy {
        Cpu::NAME => Some(ResourceName::Cpu),
        Memory::NAME => Some(ResourceName::Memory),
        _ => None,
    }
}

/// What is said of a violation; `None` where it is one of the pod's own container.
fn fault_of(place: &Place, sidecars: &[&Sidecar], violation: Violation<'_>) -> Option<InvalidSidecar> {
    let Violation { policy, subject, field, statement, .. } = violation;
    let owner = match subject {
        Subject::Container { .. } => return None,
        Subject::Pod | Subject::Sidecar { .. } => place.member("container"),
        Subject::Volume { index, .. } => place.member("volumes").member(&index.to_string()),
    };
    let below = |member: &str| member.split('.').fold(owner.clone(), |place, key| place.member(key));
    let policy_name = policy.as_str();
    if subject == Subject::Pod {
        let limited = limited_by(policy);
        let place = limited.map_or_else(|| owner.clone(), |name| below(name.limit_field()));
        let sidecars = sidecars.iter().map(|sidecar| sidecar.name().to_owned()).collect();
        return Some(place.fault(SidecarFault::PodDenied { policy: policy_name, limited, sidecars, statement }));
    }
    let place = match field {
        Field::Own(member) => below(member),
        Field::HostPort(index) => below("ports").member(&index.to_string()).member("hostPort"),
        Field::Whole | Field::OfPod(_) | Field::OfContainer { .. } => owner,
    };
    Some(place.fault(SidecarFault::Denied { policy: policy_name, statement }))
}

impl Sidecar {
    /// Whether every pod that has the other one has this one too.
    fn is_wherever(&self, other: &Self) -> bool {
        let Self { namespaces, selector, os, exclude, .. } = self;
        *os == other.os
            && (namespaces.is_empty() || *namespaces == other.namespaces)
            && (*selector == Selector::default() || *selector == other.selector)
            && (exclude.requesters().are_none() || *exclude == other.exclude)
    }
}
