//! `exclude`: whom no policy concerns.
//!
//! By namespace, user or group, which only the cluster's administrators hand out; never by a
//! pod's labels or annotations, which its author writes. Namespaces are exact by default: a glob
//! such as `kube-*` would be open to everyone who may name a namespace.

use serde::Deserialize;

use super::Patterns;

/// The namespaces, users and groups whose requests are allowed as they are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Exclude {
    /// Names or globs of namespaces; `[kube-system, kube-public, kube-node-lease]` by default.
    pub namespaces: Patterns,
    /// Names or globs of users, such as `system:serviceaccount:backup:*`.
    pub users: Patterns,
    /// Names or globs of groups.
    pub groups: Patterns,
}

impl Default for Exclude {
    fn default() -> Self {
        Self {
            namespaces: ["kube-system", "kube-public", "kube-node-lease"].into_iter().collect(),
            users: Patterns::default(),
            groups: Patterns::default(),
        }
    }
}

/// Who asks, and where.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requester<'r> {
    /// `request.namespace`.
    pub namespace: &'r str,
    /// `request.userInfo.username`.
    pub user: &'r str,
    /// `request.userInfo.groups`.
    pub groups: &'r [crate::json::Text<'r>],
}

impl Exclude {
    /// Whether the request is excluded.
    #[must_use]
    pub fn covers(&self, requester: Requester<'_>) -> bool {
        self.namespaces.matches(requester.namespace)
            || self.users.matches(requester.user)
            || (!self.groups.is_empty() && requester.groups.iter().any(|group| self.groups.matches(group)))
    }
}
