//! Sidecars that the validations deny in every pod.

use time::Date;

use super::super::active::ActiveMutations;
use super::super::in_force::{InForce, Stage};
use super::super::{Action, Cpu, Field, Memory, Policies, PolicyName, Requester, Subject, Validation, Violation};
use super::invalid::Place;
use super::selector::Selector;
use super::unfit::{host_process, needs_own_users};
use super::{Candidate, InvalidSidecar, Os, Prepared, Sidecar, SidecarFault, read_container};
use crate::json::TextMap;
use crate::pod::{ContainerList, PodSpec, ResourceName, SpecText, WindowsOptions};

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
        // Those that are in the same pods are together with the same others: the first stands for all of them.
        let stands_for_all = |(index, sidecar): &(usize, &Sidecar)| {
            let mut earlier = sidecars.iter().take(*index);
            !earlier.any(|earlier| earlier.is_wherever(sidecar) && sidecar.is_wherever(earlier))
        };
        invalid.or_else(|| sidecars.iter().enumerate().filter(stands_for_all).find_map(together))
    }

    /// What is denied in the least of pods for these sidecars, whoever creates it; the first of
    /// them is at that index. What may be allowed to some, because they are excluded from a
    /// validation or from a mutation that it looks at, shows only in a pod.
    fn never_allowed(&self, index: usize, sidecars: &[&Sidecar]) -> Option<InvalidSidecar> {
        let spec = least_pod(sidecars)?;
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

/// A pod of one container that asks for the least there is, and is otherwise such as sidecars need.
#[expect(clippy::expect_used, reason = "the text is a constant, which every configuration with a sidecar reads")]
fn least_pod(sidecars: &[&Sidecar]) -> Option<PodSpec<'static>> {
    let mut spec = PodSpec::of_os(if sidecars.first()?.os == Os::Windows { "windows" } else { "linux" });
    let mut container = read_container(LEAST).expect("the text is a container");
    if sidecars.iter().any(|sidecar| needs_own_users(sidecar)) {
        spec.host_users = Some(false);
    }
    if sidecars.iter().any(|sidecar| host_process(sidecar) == Some(true)) {
        let windows_options = Some(WindowsOptions { host_process: true, ..WindowsOptions::default() });
        container.security_context.get_or_insert_default().windows_options = windows_options;
    }
    spec.list_mut(ContainerList::Containers).push(container);
    Some(spec)
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
    pub(super) fn is_wherever(&self, other: &Self) -> bool {
        let Self { namespaces, selector, os, exclude, .. } = self;
        *os == other.os
            && (namespaces.is_empty() || *namespaces == other.namespaces)
            && (*selector == Selector::default() || *selector == other.selector)
            && (exclude.requesters().are_none() || *exclude == other.exclude)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    /// Sidecars of these limits, each with what else is said of it.
    fn text(sidecars: &[(&str, &str, &str)], more: &str) -> String {
        let line = |(name, cpu, more): &(&str, &str, &str)| {
            format!(
                "    - {{ container: {{ name: {name}, image: \"a:1\", resources: {{ limits: {{ cpu: {cpu} }} }} }}{more} }}\n"
            )
        };
        let sidecars: String = sidecars.iter().map(line).collect();
        format!("mutations:\n  sidecars:\n{sidecars}{more}")
    }

    const AT_MOST_2: &str = "validations: { cpu: { max: 2 } }\n";

    #[test]
    fn a_sidecar_with_which_every_pod_has_too_much_is_named() {
        for (text, said) in [
            (
                text(&[("a", "5", "")], AT_MOST_2),
                "line 3, column 73: validations.cpu denies every pod that has it and no spec.resources.limits.cpu: the pod may \
                 use 5001m of cpu at one time (\"the pod's own\" 1m, \"a\" 5): at most 2 is allowed, so lower the limits",
            ),
            // All of it, with nothing left for the pod's own containers.
            (
                text(&[("a", "2", ", selector: { matchLabels: { a: b } }")], AT_MOST_2),
                "line 3, column 73: validations.cpu",
            ),
            (text(&[("a", "5", ", native: false, os: windows")], AT_MOST_2), "line 3, column 73: validations.cpu"),
            (
                text(&[("a", "0", "")], "  resources: { limits: { cpu: null } }\nvalidations: { cpu: { max: 2 } }\n"),
                "line 3, column 73: validations.cpu denies every pod that has it and no spec.resources.limits.cpu: the pod \
                 has no cpu limit, because init container \"a\" has none",
            ),
            (
                text(&[("a", "0", "")], "validations: { memory: { max: 1Gi } }\n"),
                "line 3, column 66: validations.memory denies every pod that has it and no spec.resources.limits.memory: the \
                 pod may use 1073741825 of memory",
            ),
        ] {
            let fault = parse(&text).map(|_| text).expect_err("it is denied").to_string();
            assert!(fault.starts_with(said), "{fault}");
        }
    }

    #[test]
    fn sidecars_that_are_always_together_count_together() {
        let labelled = ", selector: { matchLabels: { a: b } }";
        let in_a = ", namespaces: [a]";
        for (sidecars, said) in [
            (
                &[("a", "1", ""), ("b", "1", "")][..],
                "line 3, column 73: validations.cpu denies every pod that has the sidecars a and b ",
            ),
            (
                &[("a", "1", ""), ("b", "1", labelled)],
                "line 4, column 73: validations.cpu denies every pod that has the sidecars a and b ",
            ),
            (
                &[("a", "1", labelled), ("b", "900m", ""), ("c", "100m", labelled)],
                "line 3, column 73: validations.cpu denies every pod that has the sidecars a, b and c ",
            ),
            (
                &[("a", "1", in_a), ("b", "1", in_a)],
                "line 3, column 73: validations.cpu denies every pod that has the sidecars a",
            ),
        ] {
            let fault = parse(&text(sidecars, AT_MOST_2)).map(|_| sidecars).expect_err("it is denied").to_string();
            assert!(fault.starts_with(said), "{fault}");
        }
    }

    #[test]
    fn sidecars_that_some_pod_could_have_are_taken() {
        for (sidecars, more) in [
            (&[("a", "1999m", "")][..], AT_MOST_2),
            (&[("a", "1", ", selector: { matchLabels: { a: b } }"), ("b", "1", ", namespaces: [a]")], AT_MOST_2),
            (&[("a", "1", ""), ("b", "1", ", os: windows")], AT_MOST_2),
            (&[("a", "1", ", exclude: { users: [ann] }"), ("b", "1", ", exclude: { users: [bob] }")], AT_MOST_2),
            (&[("a", "5", "")], "validations: { cpu: { max: 2, action: warn } }\n"),
            (&[("a", "5", "")], "validations: { cpu: { max: 2, exclude: { namespaces: [ops] } } }\n"),
            // What no pod may have is no fault of a sidecar.
            (&[("a", "5", "")], "validations: { containerCount: { max: 0 } }\n"),
        ] {
            let text = text(sidecars, more);
            parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        }
    }
}
