//! `exclude`: whom policies do not concern.
//!
//! By namespace, user or group, which only the cluster's administrators hand out; of a single
//! policy also by image or by container name. Never by a pod's labels or annotations, which its
//! author writes. Namespaces are exact by default: a glob such as `kube-*` would be open to
//! everyone who may name a namespace.

use serde::Deserialize;
use time::Date;

use super::{Exclusions, ImageExclusions, exclusions};
use crate::json::Text;

/// Who asks, where, and when.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'r> {
    /// `request.namespace`.
    pub namespace: &'r str,
    /// `request.userInfo.username`.
    pub user: &'r str,
    /// `request.userInfo.groups`.
    pub groups: &'r [Text<'r>],
    /// The day in UTC, by which exclusions expire.
    pub today: Date,
}

/// Whose requests no policy concerns.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exclude {
    /// Namespaces; `[kube-system, kube-public, kube-node-lease]` by default.
    #[serde(deserialize_with = "exclusions::of_namespaces")]
    pub namespaces: Exclusions,
    /// Users, such as `system:serviceaccount:backup:*`.
    pub users: Exclusions,
    /// Groups.
    pub groups: Exclusions,
}

impl Default for Exclude {
    fn default() -> Self {
        Self {
            namespaces: ["kube-system", "kube-public", "kube-node-lease"].into_iter().collect(),
            users: Exclusions::default(),
            groups: Exclusions::default(),
        }
    }
}

/// Whose requests one policy does not concern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodExclude {
    /// Namespaces.
    #[serde(deserialize_with = "exclusions::of_namespaces")]
    pub namespaces: Exclusions,
    /// Users, such as `system:serviceaccount:backup:*`.
    pub users: Exclusions,
    /// Groups.
    pub groups: Exclusions,
}

/// Whose requests, and which containers, one policy does not concern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerExclude {
    /// Namespaces.
    #[serde(deserialize_with = "exclusions::of_namespaces")]
    pub namespaces: Exclusions,
    /// Users, such as `system:serviceaccount:backup:*`.
    pub users: Exclusions,
    /// Groups.
    pub groups: Exclusions,
    /// Images, as they are after the mutation `images`: repositories such as
    /// `quay.io/acme/agent`, with a tag or without, or globs of images in full.
    pub images: ImageExclusions,
    /// Names of containers, in any of the three lists.
    pub containers: Exclusions,
}

/// The three lists that every exclusion has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requesters<'e> {
    pub(super) namespaces: &'e Exclusions,
    pub(super) users: &'e Exclusions,
    pub(super) groups: &'e Exclusions,
}

impl Requesters<'_> {
    /// Whether nobody is excluded.
    pub(super) fn are_none(&self) -> bool {
        self.namespaces.is_empty() && self.users.is_empty() && self.groups.is_empty()
    }

    /// Whether the request is excluded.
    pub(super) fn cover(&self, requester: &Requester<'_>) -> bool {
        let Requester { namespace, user, groups, today } = *requester;
        self.namespaces.cover(namespace, today)
            || self.users.cover(user, today)
            || (!self.groups.is_empty() && groups.iter().any(|group| self.groups.cover(group, today)))
    }
}

impl Exclude {
    pub(super) const fn requesters(&self) -> Requesters<'_> {
        Requesters { namespaces: &self.namespaces, users: &self.users, groups: &self.groups }
    }
}

impl PodExclude {
    pub(super) const fn requesters(&self) -> Requesters<'_> {
        Requesters { namespaces: &self.namespaces, users: &self.users, groups: &self.groups }
    }
}

impl ContainerExclude {
    pub(super) const fn requesters(&self) -> Requesters<'_> {
        Requesters { namespaces: &self.namespaces, users: &self.users, groups: &self.groups }
    }

    /// Whether a container of that name and image is excluded.
    pub(super) fn covers_container<I: AsRef<str>>(&self, name: &str, image: impl FnOnce() -> I, today: Date) -> bool {
        self.containers.cover(name, today) || self.covers_image(image, today)
    }

    /// Whether an image is excluded, that of a volume too.
    pub(super) fn covers_image<I: AsRef<str>>(&self, image: impl FnOnce() -> I, today: Date) -> bool {
        !self.images.exclusions().is_empty() && self.images.cover(image().as_ref(), today)
    }
}

/// Whom one validation does not concern.
#[derive(Debug, Clone, Copy)]
pub enum RuleExclude<'r> {
    /// Of a validation that looks at pods as a whole.
    Pod(&'r PodExclude),
    /// Of a validation that looks at containers.
    Container(&'r ContainerExclude),
}

impl<'r> RuleExclude<'r> {
    pub(super) const fn requesters(self) -> Requesters<'r> {
        match self {
            Self::Pod(exclude) => exclude.requesters(),
            Self::Container(exclude) => exclude.requesters(),
        }
    }
}
