//! The policies as they are for one request: all of them run from here.

use std::collections::HashSet;

use super::active::ActiveMutations;
use super::{
    Action, ContainerExclude, Context, Existing, Images, Judgement, Policies, PolicyName, Requester, Resources, Rule,
    RuleExclude, SecurityContext, Subject, Validation, Violation, Workloads,
};
use crate::patch::{Patch, Pointer};
use crate::pod::{Container, ContainerList, PodSpec};

/// The policies, for a requester that is not excluded from all of them.
#[derive(Debug, Clone, Copy)]
pub struct InForce<'r> {
    policies: &'r Policies,
    requester: Requester<'r>,
    mutations: ActiveMutations<'r>,
}

/// What the mutations make of a pod.
#[derive(Debug)]
pub struct Mutated {
    /// The patch; it changes something.
    pub patch: Patch,
    /// The mutations that are at work in it.
    pub by: Vec<PolicyName>,
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
    /// What makes a new pod safe; `None` where nothing is to be changed.
    #[must_use]
    pub fn mutate_pod(&self, pod: &PodSpec<'_>) -> Option<Mutated> {
        let mut mutating = Mutating::default();
        if let Some(resources) = self.mutations.resources_of_pod() {
            mutating.run(Resources::NAME, |patch| resources.patch_pod(pod, patch));
        }
        for (list, index, container) in pod.all_containers() {
            self.mutate_container(pod, list, index, container, &mut mutating);
        }
        for (index, volume) in pod.volumes.iter().enumerate() {
            if let Some(image) = volume.image.as_ref().and_then(|image| self.mutations.new_volume_image(image)) {
                let path = Pointer::volume(index).member("image").member("reference");
                mutating.run(Images::NAME, |patch| patch.add(path, image));
            }
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
                self.mutate_container(pod, list, index, container, &mut mutating);
            }
        }
        mutating.finish()
    }

    fn mutate_container(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        index: usize,
        container: &Container<'_>,
        mutating: &mut Mutating,
    ) {
        if let Some(image) = self.mutations.new_image(container) {
            let path = Pointer::container(list, index).member("image");
            mutating.run(Images::NAME, |patch| patch.add(path, image));
        }
        if let Some(security_context) = self.mutations.security_context(container) {
            mutating.run(SecurityContext::NAME, |patch| security_context.patch(pod, list, index, container, patch));
        }
        if let Some(resources) = self.mutations.resources(container) {
            mutating.run(Resources::NAME, |patch| resources.patch(pod, list, index, container, patch));
        }
    }

    /// The denials with which `/mutate` answers at once, where a patch cannot mend the pod.
    #[must_use]
    pub fn deny_early<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        let mut judgements = self.judge(Stage::Early, pod, old);
        judgements.retain(|judgement| judgement.action == Action::Deny);
        judgements
    }

    /// Everything that is not allowed in a pod that is about to be stored.
    #[must_use]
    pub fn validate_pod<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        self.judge(Stage::Final, pod, old)
    }

    /// Everything that will not be allowed in the pods that a template makes.
    #[must_use]
    pub fn validate_template<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>>
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

    fn judge<'a>(&self, stage: Stage, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>>
    where
        'r: 'a,
    {
        let found = self.violations(stage, pod);
        if found.is_empty() {
            return Vec::new();
        }
        let before = old.map(|old| self.violations(stage, old)).unwrap_or_default();
        let existing = Existing::new(before.into_iter().map(|(violation, _)| violation));
        found
            .into_iter()
            .map(|(violation, rule)| {
                let action = if existing.has(&violation) { rule.action.min(Action::Warn) } else { rule.action };
                Judgement { violation, action, rule }
            })
            .collect()
    }

    fn violations<'a>(&self, stage: Stage, pod: &'a PodSpec<'a>) -> Vec<(Violation<'a>, Rule<'a>)>
    where
        'r: 'a,
    {
        let Self { policies: Policies { validations, .. }, requester, mutations } = *self;
        let context = Context { mutations, stage, today: requester.today };
        let mut check = Check { pod, context, requester, found: Vec::new() };
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
        check.found
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
            Subject::Pod => false,
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

/// A patch, and who has added to it.
#[derive(Debug, Default)]
struct Mutating {
    patch: Patch,
    by: Vec<PolicyName>,
}

impl Mutating {
    fn run(&mut self, name: PolicyName, mutate: impl FnOnce(&mut Patch)) {
        let before = self.patch.len();
        mutate(&mut self.patch);
        if self.patch.len() > before && !self.by.contains(&name) {
            self.by.push(name);
        }
    }

    fn finish(self) -> Option<Mutated> {
        let Self { patch, by } = self;
        (!patch.is_empty()).then_some(Mutated { patch, by })
    }
}
