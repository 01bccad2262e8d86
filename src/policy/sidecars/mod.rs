//! `sidecars`: containers that every pod gets, with their volumes.
//!
//! A native sidecar (an init container with `restartPolicy: Always`, KEP-753) unless told
//! otherwise, before the pod's own init containers; one of `spec.containers` comes after the pod's
//! own. Pods are selected by their namespace, by `spec.os.name`, and by labels, which are the
//! author's: a pod without the label gets no sidecar. Only pods that are created get them. The
//! first of the mutations: the others see the container as they see the pod's own, and so do all
//! validations, except that `containerCount` does not count it.
//!
//! By name, a pod that has the container already is left as it is, where it is *the same*: every
//! field that is set here has that value after the other mutations (see `difference`). A pod whose
//! container or volume of that name differs, or whose container is in another list, is denied. A
//! volume that is the same is shared.
//!
//! What the API server would refuse in a certain pod, such as an amount of a resource that is set for the
//! pod as a whole, becomes what it takes there (see `adapted`); a sidecar that cannot is no part of the
//! pod, which is denied (see `unfit`). A pod without containers gets none in `spec.containers`, for it
//! would become one that the API server takes.

mod adapted;
mod additions;
mod difference;
mod invalid;
mod manifest;
mod mounts;
mod never_allowed;
mod prepared;
mod selector;
mod unfit;

use std::borrow::Cow;

use k8s_openapi::api::core::v1 as api;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub use invalid::{InvalidSidecar, SidecarFault};
pub use prepared::{Candidate, Prepared};

use self::invalid::Place;
use self::selector::Selector;
use super::namespace_quota::NamespacePattern;
use super::patterns::Patterns;
use super::{Action, PodExclude, PolicyName, Requester, Rule, RuleExclude, null_is_default};
use crate::json::{Object, TextMap};
use crate::pod::{Container, ContainerList, PodSpec, Quantity, ResourceName, Volume};

/// The containers that every pod gets. What is wrong with one is told by
/// [`Policies::contradiction`](super::Policies::contradiction), with its place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Settings>")]
pub struct Sidecars(Result<Vec<Sidecar>, InvalidSidecar>);

impl Default for Sidecars {
    fn default() -> Self {
        Self(Ok(Vec::new()))
    }
}

impl From<Vec<Settings>> for Sidecars {
    fn from(settings: Vec<Settings>) -> Self {
        let each: Result<Vec<Sidecar>, InvalidSidecar> =
            settings.into_iter().enumerate().map(|(index, settings)| Sidecar::new(index, settings)).collect();
        Self(each.and_then(|each| match invalid::at_odds(&each) {
            Some(invalid) => Err(invalid),
            None => Ok(each),
        }))
    }
}

impl Sidecars {
    /// The mutation's key in the configuration file.
    pub(super) const NAME: PolicyName = PolicyName("sidecars");

    pub(super) fn each(&self) -> &[Sidecar] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn invalid(&self) -> Option<&InvalidSidecar> {
        self.0.as_ref().err()
    }
}

/// A container that pods get, as the configuration file has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Sidecar")]
struct Settings {
    /// Names of namespaces, or globs with `*`; none means all.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>")]
    namespaces: Vec<NamespacePattern>,
    /// Labels that a pod must have; its author writes them.
    #[serde(default, deserialize_with = "null_is_default")]
    selector: Selector,
    /// The operating system of the nodes that the container is for.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Os>")]
    os: Os,
    /// Whether it is an init container with `restartPolicy: Always`, or one of `spec.containers`.
    #[serde(default = "on", deserialize_with = "super::truth::or_true")]
    #[schemars(with = "Option<bool>")]
    native: bool,
    /// Where it comes among those of its list: before where it is native, after otherwise.
    #[serde(default)]
    position: Option<Position>,
    /// The container, as in a pod.
    #[schemars(schema_with = "schema_of_container")]
    container: Value,
    /// The volumes that come with it, as in a pod.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(schema_with = "schema_of_volumes")]
    volumes: Vec<Value>,
    /// Whose requests it does not concern.
    #[serde(default, deserialize_with = "null_is_default")]
    exclude: PodExclude,
}

fn schema_of_container(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "required": ["name", "image"]})
}

fn schema_of_volumes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "items": {"type": "object", "required": ["name"]}})
}

impl JsonSchema for Sidecars {
    fn schema_name() -> Cow<'static, str> {
        "Sidecars".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["array", "null"], "items": generator.subschema_for::<Settings>()})
    }
}

const fn on() -> bool {
    true
}

/// The operating system of the nodes that the container is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Os {
    /// Pods whose `spec.os.name` is not windows.
    #[default]
    Linux,
    /// Pods whose `spec.os.name` is windows.
    Windows,
}

/// Where the container comes among those of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Position {
    Before,
    After,
}

/// A container that pods get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sidecar {
    namespaces: Patterns,
    selector: Selector,
    os: Os,
    list: ContainerList,
    position: Position,
    /// The container as the configuration has it.
    base: Form<Container<'static>>,
    volumes: Vec<Form<Volume<'static>>>,
    pub(super) exclude: PodExclude,
}

impl Sidecar {
    /// The container's limit of a resource, as the configuration has it.
    pub(super) fn limit(&self, name: ResourceName) -> Option<&Quantity<'static>> {
        self.base.view.resources.as_ref()?.limit(name)
    }

    fn new(index: usize, settings: Settings) -> Result<Self, InvalidSidecar> {
        let Settings { namespaces, selector, os, native, position, mut container, volumes, exclude } = settings;
        let (list, own_position) = if native {
            (ContainerList::InitContainers, Position::Before)
        } else {
            (ContainerList::Containers, Position::After)
        };
        let place = Place::new(index);
        let at_container = place.member("container");
        let typed: api::Container = manifest::read(&container).map_err(|misfit| at_container.misfit(misfit))?;
        invalid::check_container(&at_container, native, os, &typed)?;
        manifest::tidy(&mut container);
        if native {
            container["restartPolicy"] = "Always".into();
        }
        let at_volumes = place.member("volumes");
        let volumes = volumes.into_iter().enumerate().map(|(index, mut volume)| {
            let at_volume = at_volumes.element(index);
            let typed: api::Volume = manifest::read(&volume).map_err(|misfit| at_volume.misfit(misfit))?;
            invalid::check_volume(&at_volume, &volume, &typed)?;
            manifest::tidy(&mut volume);
            let form = Form::new(volume, read_volume).map_err(|error| at_volume.unreadable(&error))?;
            Ok((form, typed))
        });
        let (volumes, typed_volumes): (Vec<_>, Vec<_>) = volumes.collect::<Result<_, InvalidSidecar>>()?;
        invalid::check_mounts(&at_container, &typed, &typed_volumes)?;
        let base = Form::new(container, read_container).map_err(|error| at_container.unreadable(&error))?;
        let position = position.unwrap_or(own_position);
        let namespaces = namespaces.into_iter().map(|NamespacePattern(name)| name).collect();
        Ok(Self { namespaces, selector, os, list, position, base, volumes, exclude })
    }

    /// The namespaces that it names without a `*`, in the order of the alphabet.
    pub(super) fn named_namespaces(&self) -> Vec<&str> {
        self.namespaces.exact()
    }

    /// Whether a pod is to have it.
    pub(super) fn is_due(&self, requester: &Requester<'_>, labels: &TextMap<'_>, pod: &PodSpec<'_>) -> bool {
        (self.list != ContainerList::Containers || !pod.containers.is_empty())
            && (self.namespaces.is_empty() || self.namespaces.matches(requester.namespace))
            && pod.is_windows() == (self.os == Os::Windows)
            && self.selector.matches(labels)
            && !self.exclude.requesters().cover(requester)
    }

    /// The container as a pod gets it.
    fn form(&self, pod: &PodSpec<'_>) -> Cow<'_, Form<Container<'static>>> {
        match adapted::adapted(&self.base.json, pod) {
            Cow::Borrowed(_) => Cow::Borrowed(&self.base),
            // It is made of one that was read, by taking parts away: it is read, too.
            Cow::Owned(json) => Form::new(json, read_container).map_or(Cow::Borrowed(&self.base), Cow::Owned),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.base.view.name
    }

    /// What is done about a pod that could not get it.
    pub(super) const fn rule(&self) -> Rule<'_> {
        Rule { action: Action::Deny, message: None, exclude: RuleExclude::Pod(&self.exclude) }
    }
}

/// A part of a pod: what is put into it, and what policies read of it.
#[derive(Debug, Clone)]
struct Form<V> {
    json: Value,
    text: Box<RawValue>,
    view: V,
}

/// The rest follows from it.
impl<V> PartialEq for Form<V> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<V> Eq for Form<V> {}

impl<V> Form<V> {
    /// Reads it once and for all.
    fn new(json: Value, read: impl FnOnce(&str) -> serde_json::Result<V>) -> serde_json::Result<Self> {
        let text = to_raw_value(&json)?;
        let view = read(text.get())?;
        Ok(Self { json, text, view })
    }
}

fn read_container(text: &str) -> serde_json::Result<Container<'static>> {
    serde_json::from_str::<Object<Container<'_>>>(text).map(|Object(container)| container.into_owned())
}

fn read_volume(text: &str) -> serde_json::Result<Volume<'static>> {
    serde_json::from_str::<Object<Volume<'_>>>(text).map(|Object(volume)| volume.into_owned())
}
