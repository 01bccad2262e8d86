//! Sidecars that the validations deny in every pod.

use time::Date;

use super::super::active::ActiveMutations;
use super::super::in_force::{InForce, Stage};
use super::super::{Action, Field, Policies, Requester, Subject, Violation};
use super::invalid::Place;
use super::{Candidate, InvalidSidecar, Os, Prepared, Sidecar, SidecarFault};
use crate::json::TextMap;
use crate::pod::{PodSpec, SpecText};

/// Somebody in a namespace without a name, before any exclusion has expired.
const NOBODY: Requester<'static> = Requester { namespace: "", user: "", groups: &[], today: Date::MIN };

impl Policies {
    /// A sidecar that no pod could have, where there is one.
    pub(in super::super) fn invalid_sidecar(&self) -> Option<InvalidSidecar> {
        let sidecars = &self.mutations.sidecars;
        let never_allowed = |(index, sidecar)| self.never_allowed(&Place::new(index), sidecar);
        sidecars.invalid().cloned().or_else(|| sidecars.each().iter().enumerate().find_map(never_allowed))
    }

    /// What is denied in a pod that has nothing but the sidecar, whoever creates it. What may be
    /// allowed to some, because they are excluded from a validation or from a mutation that it
    /// looks at, shows only in a pod.
    fn never_allowed(&self, place: &Place, sidecar: &Sidecar) -> Option<InvalidSidecar> {
        let spec = PodSpec::of_os(if sidecar.os == Os::Windows { "windows" } else { "linux" });
        let candidate = Candidate { labels: &TextMap::default(), spec: &spec, text: SpecText::default() };
        let [always, often] =
            [ActiveMutations::of_everybody(self, NOBODY.today), ActiveMutations::all(self, NOBODY.today)].map(
                |mutations| {
                    let prepared = Prepared::injected(&candidate, vec![sidecar], mutations);
                    let in_force = InForce::with(self, NOBODY, mutations);
                    let found = in_force.violations(Stage::Template, &prepared).into_iter();
                    let denied =
                        found.filter(|(_, rule)| rule.action == Action::Deny && rule.exclude.requesters().are_none());
                    denied
                        .filter_map(|(violation, _)| Some((place_of(place, &violation)?, violation)))
                        .map(|(place, violation)| {
                            let Violation { policy, statement, .. } = violation;
                            place.fault(SidecarFault::Denied { policy: policy.as_str(), statement })
                        })
                        .collect::<Vec<_>>()
                },
            );
        always.into_iter().find(|invalid| often.contains(invalid))
    }
}

/// Where in the configuration the field stands that is denied.
fn place_of(place: &Place, violation: &Violation<'_>) -> Option<Place> {
    let owner = match violation.subject {
        Subject::Pod => return None,
        Subject::Container { .. } | Subject::Sidecar { .. } => place.member("container"),
        Subject::Volume { index, .. } => place.member("volumes").member(&index.to_string()),
    };
    let port = |index: usize| owner.member("ports").member(&index.to_string()).member("hostPort");
    Some(match violation.field {
        Field::Own(member) => member.split('.').fold(owner, |place, key| place.member(key)),
        Field::HostPort(index) => port(index),
        Field::Whole | Field::OfPod(_) | Field::OfContainer { .. } => owner,
    })
}
