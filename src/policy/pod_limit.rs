//! What `cpu` and `memory` share: how much the containers of a pod may use at one time.
//!
//! App containers and native sidecars run together; an init container that finishes runs beside
//! the sidecars before it. The largest of these sums counts, or the pod-level limit where one is
//! set. A container without a limit is unlimited, and so is its pod. Ephemeral containers have
//! no limits and are not counted; nor is `spec.overhead`, which the cluster's `RuntimeClass` sets, not the author.
//!
//! A limit that podgate set cannot be told from one that its author wrote. The message says of one that could be
//! podgate's that it is the default, or as the request.

use std::cmp::Ordering;

use serde::Deserialize;

use super::resources::LimitSource;
use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, PositiveQuantity, Quoted, Rule, RuleExclude,
    Subject, Violation, null_is_default,
};
use crate::pod::{Amount, Container, ContainerList, PodSpec, ResourceName};

/// The most containers that a message names.
const NAMED_MAX: usize = 5;

/// The settings of `cpu` and of `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Settings")]
pub struct PodLimit {
    /// What is done about it; by default `deny` where there is a maximum, else `off`.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    pub exclude: PodExclude,
    /// The most that a pod may use; there unless the policy is off.
    max: Option<PositiveQuantity>,
}

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("anyOf" = [
    {"required": ["max"], "properties": {"max": {"not": {"type": "null"}}}},
    {"properties": {"action": {"enum": ["off", null]}}},
]))]
struct Settings {
    /// What is done about it; by default `deny` where there is a maximum, else `off`.
    action: Option<Action>,
    /// What is said of it, in place of podgate's own words.
    message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    exclude: PodExclude,
    /// The most that a pod may use; needed unless the policy is off.
    max: Option<PositiveQuantity>,
}

/// A policy that is on, with nothing to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no max: write the most that a pod may use, such as max: \"2\" for cpu or max: 4Gi for memory")]
pub struct MissingMax;

impl TryFrom<Settings> for PodLimit {
    type Error = MissingMax;

    fn try_from(settings: Settings) -> Result<Self, MissingMax> {
        let Settings { action, message, exclude, max } = settings;
        let action = action.unwrap_or(if max.is_some() { Action::Deny } else { Action::Off });
        if action != Action::Off && max.is_none() {
            return Err(MissingMax);
        }
        Ok(Self { action, message, exclude, max })
    }
}

impl Default for PodLimit {
    fn default() -> Self {
        Self { action: Action::Off, message: None, exclude: PodExclude::default(), max: None }
    }
}

impl PodLimit {
    /// The most that a pod may use, where the policy is on.
    pub(super) const fn max(&self) -> Option<&PositiveQuantity> {
        self.max.as_ref()
    }

    pub(super) fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    /// What the pod has above the most that it may.
    pub(super) fn check<'a>(
        &self,
        policy: PolicyName,
        name: ResourceName,
        pod: &'a PodSpec<'a>,
        context: &Context<'_>,
    ) -> Option<Violation<'a>> {
        let max = self.max.as_ref()?.as_quantity();
        let use_of_pod = match context.pod_limit(pod, name) {
            Some(limit) => Use::SetForPod(limit, context.source_of_pod_limit(pod, name, limit)),
            None => Use::of_containers(pod, name, context),
        };
        if use_of_pod.nano().is_some_and(|nano| nano <= max.nano()) {
            return None;
        }
        Some(Violation {
            policy,
            subject: Subject::Pod,
            field: use_of_pod.field(name),
            found: use_of_pod.found(),
            statement: use_of_pod.statement(name, max.as_str()),
        })
    }
}

/// A container and its limit.
struct Part<'a> {
    list: ContainerList,
    index: usize,
    container: &'a Container<'a>,
    limit: Amount,
    source: Option<LimitSource>,
}

/// The most that a pod may use at one time.
enum Use<'a> {
    /// As `spec.resources.limits` has it.
    SetForPod(Amount, Option<LimitSource>),
    /// A container has no limit.
    Unlimited(ContainerList, usize, &'a Container<'a>),
    /// What these containers, which run together, come to.
    Together(Amount, Vec<Part<'a>>),
}

impl<'a> Use<'a> {
    fn of_containers(pod: &'a PodSpec<'a>, name: ResourceName, context: &Context<'_>) -> Self {
        let mut sidecars: Vec<Part<'a>> = Vec::new();
        let mut steps: Vec<(Part<'a>, usize)> = Vec::new();
        let mut apps: Vec<Part<'a>> = Vec::new();
        for (list, index, container) in pod.all_containers() {
            if list == ContainerList::EphemeralContainers {
                continue;
            }
            let Some(limit) = context.limit(pod, list, container, name) else {
                return Self::Unlimited(list, index, container);
            };
            let source = context.source_of_limit(pod, container, name, limit);
            let part = Part { list, index, container, limit, source };
            match list {
                ContainerList::InitContainers if container.restarts_always() => sidecars.push(part),
                ContainerList::InitContainers => steps.push((part, sidecars.len())),
                _ => apps.push(part),
            }
        }
        Self::largest(Amount::none(name), sidecars, steps, apps)
    }

    /// The larger of what runs for good, and of each step with the sidecars before it.
    fn largest(
        none: Amount,
        mut sidecars: Vec<Part<'a>>,
        steps: Vec<(Part<'a>, usize)>,
        mut apps: Vec<Part<'a>>,
    ) -> Self {
        // The sums of the first sidecars, of none of them first.
        let mut before = vec![none];
        before.extend(sidecars.iter().scan(none, |sum, part| {
            *sum = sum.plus(part.limit);
            Some(*sum)
        }));
        let all_sidecars = before.last().copied().unwrap_or(none);
        let together = apps.iter().fold(all_sidecars, |sum, part| sum.plus(part.limit));
        let largest_step = steps
            .into_iter()
            .map(|(part, count)| (part.limit.plus(before[count]), part, count))
            .max_by(|(one, ..), (other, ..)| one.nano().cmp(&other.nano()));
        match largest_step {
            Some((amount, part, count)) if amount.nano().cmp(&together.nano()) == Ordering::Greater => {
                sidecars.truncate(count);
                sidecars.push(part);
                Self::Together(amount, sidecars)
            }
            _ => {
                apps.append(&mut sidecars);
                Self::Together(together, apps)
            }
        }
    }

    /// The amount; `None` where there is no end to it.
    fn nano(&self) -> Option<i128> {
        match self {
            Self::SetForPod(amount, _) | Self::Together(amount, _) => Some(amount.nano()),
            Self::Unlimited(..) => None,
        }
    }

    /// The field to change first: that of the container with the largest limit.
    fn field(&self, name: ResourceName) -> Field {
        let member = name.limit_field();
        match self {
            Self::SetForPod(..) => Field::Own(member),
            Self::Unlimited(list, index, _) => Field::OfContainer { list: *list, index: *index, member },
            Self::Together(_, parts) => match parts.iter().max_by_key(|part| part.limit.nano()) {
                Some(part) => Field::OfContainer { list: part.list, index: part.index, member },
                None => Field::Own("containers"),
            },
        }
    }

    fn found(&self) -> Found<'a> {
        match self {
            Self::SetForPod(amount, _) | Self::Together(amount, _) => {
                Found::Amount { amount: amount.nano(), shown: amount.to_string() }
            }
            Self::Unlimited(..) => Found::Amount { amount: i128::MAX, shown: "unlimited".to_owned() },
        }
    }

    fn statement(&self, name: ResourceName, max: &str) -> String {
        let name = name.as_str();
        match self {
            Self::SetForPod(amount, source) => {
                format!("has a {name} limit of {amount}{}: at most {max} is allowed, so lower it", in_brackets(*source))
            }
            Self::Unlimited(list, _, container) => format!(
                "has no {name} limit, because {list} {} has none: at most {max} is allowed for the pod, so set one",
                Quoted(&container.name)
            ),
            Self::Together(amount, parts) => {
                let mut named: Vec<String> = parts
                    .iter()
                    .take(NAMED_MAX)
                    .map(|part| format!("{} {}{}", Quoted(&part.container.name), part.limit, in_brackets(part.source)))
                    .collect();
                if parts.len() > NAMED_MAX {
                    named.push(format!("{} more", parts.len() - NAMED_MAX));
                }
                let named = named.join(", ");
                format!(
                    "may use {amount} of {name} at one time ({named}): at most {max} is allowed, so lower the limits"
                )
            }
        }
    }
}

/// What is said of a limit that may be podgate's, behind it.
const fn in_brackets(source: Option<LimitSource>) -> &'static str {
    match source {
        Some(LimitSource::Default) => " (the default)",
        Some(LimitSource::Request) => " (as its request)",
        None => "",
    }
}
