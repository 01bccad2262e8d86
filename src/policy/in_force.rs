//! The policies as they are for one request: all of them run from here.

use std::collections::HashSet;

use super::active::ActiveMutations;
use super::mutating::Mutating;
use super::promises::{self, Cause};
use super::sidecars::Sidecar;
use super::{
    Action, Candidate, ContainerExclude, Context, Cpu, Existing, Field, Judgement, Memory, Mutated, Policies, Prepared,
    Promises, Quoted, Requester, Resources, Rule, RuleExclude, Sidecars, Subject, Validation, Violation, Workloads,
};
use crate::pod::{ContainerList, PodSpec};

/// What is said first of a container or volume that the configuration put there: a warning is cut at its end.
const OF_SIDECARS: &str = "comes from mutations.sidecars of podgate's configuration, where it is to be changed,";

/// What is said besides of the containers of a pod as a whole, where the configuration put them there.
fn of_sidecars(names: &[String]) -> String {
    let (names, come, are) = match names {
        [before @ .., last] if !before.is_empty() => (format!("{} and {last}", before.join(", ")), "come", "are"),
        names => (names.concat(), "comes", "is"),
    };
    format!("; {names} {come} from mutations.sidecars of podgate's configuration, and {are} to be changed there")
}

/// The policies, for a requester that is not excluded from all of them.
#[derive(Debug, Clone, Copy)]
pub struct InForce<'r> {
    policies: &'r Policies,
    requester: Requester<'r>,
    mutations: ActiveMutations<'r>,
}

/// Which validations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// On `/mutate`, those that judge what the mutations concern.
    Early,
    /// On `/validate`, all.
    Final,
    /// On a workload's template, all but `promises`: its pods will go through `/mutate`.
    Template,
}

impl Stage {
    /// Whether the pod that is judged has yet to go through the mutations.
    pub(super) const fn is_before_mutations(self) -> bool {
        matches!(self, Self::Early | Self::Template)
    }
}

impl Policies {
    /// The policies for a requester; `None` where it is excluded from all of them.
    #[must_use]
    pub fn in_force<'r>(&'r self, requester: Requester<'r>) -> Option<InForce<'r>> {
        let is_excluded = self.exclude.requesters().cover(&requester);
        (!is_excluded).then(|| InForce { policies: self, requester, mutations: ActiveMutations::of(self, &requester) })
    }
}

impl<'r> InForce<'r> {
    /// The policies with mutations that were chosen already.
    pub(super) const fn with(policies: &'r Policies, requester: Requester<'r>, mutations: ActiveMutations<'r>) -> Self {
        Self { policies, requester, mutations }
    }

    /// A new pod, or the template of one, with the sidecars that it lacks.
    #[must_use]
    pub fn with_sidecars<'a>(&self, candidate: &'a Candidate<'a>) -> Prepared<'a>
    where
        'r: 'a,
    {
        Prepared::injected(candidate, self.sidecars(candidate), self.mutations)
    }

    /// A pod as it is.
    #[must_use]
    pub fn as_it_is<'a>(&self, candidate: &'a Candidate<'a>) -> Prepared<'a>
    where
        'r: 'a,
    {
        Prepared::stored(candidate, self.sidecars(candidate), self.mutations)
    }

    /// The sidecars that a pod is to have.
    fn sidecars(&self, candidate: &Candidate<'_>) -> Vec<&'r Sidecar> {
        let Candidate { labels, spec, .. } = candidate;
        let sidecars = self.policies.mutations.sidecars.each().iter();
        sidecars.filter(|sidecar| sidecar.is_due(&self.requester, labels, spec)).collect()
    }

    /// What makes a new pod safe; `None` where nothing is to be changed.
    #[must_use]
    pub fn mutate_pod(&self, prepared: &Prepared<'_>) -> Option<Mutated> {
        let pod = prepared.spec();
        let mut mutating = Mutating::default();
        mutating.run(Sidecars::NAME, |patch| prepared.patch(patch));
        if let Some(resources) = self.mutations.resources_of_pod() {
            mutating.run(Resources::NAME, |patch| resources.patch_pod(pod, patch));
        }
        for (list, index, container) in pod.all_containers() {
            self.mutations.mutate_container(pod, list, index, container, &mut mutating);
        }
        for (index, volume) in pod.volumes.iter().enumerate() {
            self.mutations.mutate_volume(index, volume, &mut mutating);
        }
        mutating.finish()
    }

    /// What makes the ephemeral containers safe that an update adds to a pod.
    #[must_use]
    pub fn mutate_added_ephemeral_containers(&self, pod: &PodSpec<'_>, old: &PodSpec<'_>) -> Option<Mutated> {
        let list = ContainerList::EphemeralContainers;
        let known: HashSet<&str> = old.list(list).iter().map(|container| &*container.name).collect();
        let mut mutating = Mutating::default();
        for (index, container) in pod.list(list).iter().enumerate() {
            if !known.contains(&*container.name) {
                self.mutations.mutate_container(pod, list, index, container, &mut mutating);
            }
        }
        mutating.finish()
    }

    /// The denials with which `/mutate` answers at once, where a patch cannot mend the pod.
    #[must_use]
    pub fn deny_early<'a>(&self, pod: &'a Prepared<'a>, old: Option<&'a Prepared<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        let mut judgements = self.judge(Stage::Early, pod, old);
        judgements.retain(|judgement| judgement.action == Action::Deny);
        judgements
    }

    /// Everything that is not allowed in a pod that is about to be stored.
    #[must_use]
    pub fn validate_pod<'a>(&self, pod: &'a Prepared<'a>, old: Option<&'a Prepared<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        self.judge(Stage::Final, pod, old)
    }

    /// Everything that will not be allowed in the pods that a template makes.
    #[must_use]
    pub fn validate_template<'a>(&self, pod: &'a Prepared<'a>, old: Option<&'a Prepared<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        let workloads = self.policies.workloads;
        if workloads == Workloads::Off {
            return Vec::new();
        }
        let mut judgements = self.judge(Stage::Template, pod, old);
        for judgement in &mut judgements {
            judgement.action = judgement.action.min(workloads.action());
        }
        judgements
    }

    fn judge<'a>(&self, stage: Stage, pod: &'a Prepared<'a>, old: Option<&'a Prepared<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        let mut found = self.violations(stage, pod);
        if found.is_empty() {
            return Vec::new();
        }
        name_sidecars(pod, found.iter_mut().map(|(violation, _)| violation));
        let before = old.map(|old| self.violations(stage, old)).unwrap_or_default();
        let existing = Existing::new(before.into_iter().map(|(violation, _)| violation));
        let mut judgements = Vec::with_capacity(found.len());
        for (violation, rule) in found {
            let is_older = existing.has(&violation);
            let action = if is_older { rule.action.min(Action::Warn) } else { rule.action };
            let judgement = Judgement { violation, action, rule };
            if judgement.violation.policy == Promises::NAME {
                let cause = cause(is_older, old, judgement.violation.subject);
                promises::add(judgement, cause, &mut judgements);
            } else {
                judgements.push(judgement);
            }
        }
        judgements
    }

    pub(super) fn violations<'a>(&self, stage: Stage, prepared: &'a Prepared<'a>) -> Vec<(Violation<'a>, Rule<'a>)>
    where
        'r: 'a,
    {
        let Self { policies: Policies { validations, .. }, requester, mutations } = *self;
        let context = Context { mutations, stage, today: requester.today, prepared };
        let mut check = Check { pod: prepared.spec(), context, requester, found: Vec::new() };
        check.run(&validations.privileged);
        check.run(&validations.root_user);
        check.run(&validations.image_tag);
        if stage != Stage::Early {
            check.run(&validations.host_path);
            check.run(&validations.host_network);
            check.run(&validations.host_pid);
            check.run(&validations.host_ipc);
            check.run(&validations.host_ports);
            check.run(&validations.container_count);
            check.run(&validations.cpu);
            check.run(&validations.memory);
        }
        if stage == Stage::Final {
            check.run(&validations.promises);
        }
        for (violation, _) in &mut check.found {
            prepared.place_as_written(violation);
        }
        let conflicts = prepared.conflicts().iter().map(|(violation, sidecar)| (violation.clone(), sidecar.rule()));
        conflicts.chain(check.found).collect()
    }
}

/// How it came that the pod lacks what the mutations set.
fn cause(is_older: bool, old: Option<&Prepared<'_>>, subject: Subject<'_>) -> Cause {
    let is_ephemeral = matches!(subject, Subject::Container { list: ContainerList::EphemeralContainers, .. });
    match old {
        Some(_) if is_older => Cause::Older,
        // An update only adds ephemeral containers, for which /mutate is asked, and never changes them.
        Some(_) if !is_ephemeral => Cause::Update,
        _ => Cause::Undone,
    }
}

/// Tells of a sidecar at fault that it is no work of the pod's author.
fn name_sidecars<'v, 'a: 'v>(pod: &Prepared<'a>, violations: impl Iterator<Item = &'v mut Violation<'a>>) {
    let (containers, volumes) = (pod.own_containers(), pod.own_volumes());
    for violation in violations {
        let is_own = match violation.subject {
            Subject::Pod => {
                name_amounts_of_sidecars(&containers, violation);
                false
            }
            Subject::Container { name, .. } | Subject::Sidecar { name, .. } => containers.contains(name),
            Subject::Volume { name, .. } => volumes.contains(name),
        };
        // What it has of the pod, and what others took from it, is not of its configuration.
        let is_of_others = violation.policy == Promises::NAME || matches!(violation.field, Field::OfPod(_));
        if is_own && !is_of_others {
            violation.statement = format!("{OF_SIDECARS} and {}", violation.statement);
        }
    }
}

/// Tells of the containers that a statement of the pod as a whole names, which of them the pod's
/// author cannot change.
fn name_amounts_of_sidecars(own_containers: &HashSet<&str>, violation: &mut Violation<'_>) {
    if ![Cpu::NAME, Memory::NAME].contains(&violation.policy) {
        return;
    }
    let quoted = own_containers.iter().map(|name| Quoted(name).to_string());
    let mut named: Vec<String> = quoted.filter(|name| violation.statement.contains(name)).collect();
    if !named.is_empty() {
        named.sort_unstable();
        violation.statement += &of_sidecars(&named);
    }
}

struct Check<'a> {
    pod: &'a PodSpec<'a>,
    context: Context<'a>,
    requester: Requester<'a>,
    found: Vec<(Violation<'a>, Rule<'a>)>,
}

impl<'a> Check<'a> {
    fn run<V: Validation>(&mut self, validation: &'a V) {
        let rule = validation.rule();
        if rule.action == Action::Off {
            return;
        }
        let mut violations = Vec::new();
        validation.check(self.pod, &self.context, &mut violations);
        // Asked last: most pods violate nothing.
        if violations.is_empty() || rule.exclude.requesters().cover(&self.requester) {
            return;
        }
        if let RuleExclude::Container(exclude) = rule.exclude {
            violations.retain(|violation| !self.is_excluded(exclude, violation.subject));
        }
        self.found.extend(violations.into_iter().map(|violation| (violation, rule)));
    }

    fn is_excluded(&self, exclude: &ContainerExclude, subject: Subject<'_>) -> bool {
        let Self { pod, context, .. } = self;
        match subject {
            Subject::Pod | Subject::Sidecar { .. } => false,
            Subject::Container { list, index, name } => {
                exclude.covers_container(name, || context.image(&pod.list(list)[index]), context.today)
            }
            Subject::Volume { index, .. } => pod.volumes[index]
                .image
                .as_ref()
                .is_some_and(|image| exclude.covers_image(|| context.volume_image(image), context.today)),
        }
    }
}
