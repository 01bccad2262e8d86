//! `namespaceQuota`: at most so many pods in each namespace that matches.
//!
//! Replicas that each see a slightly old list of pods cannot count them; the API server can. So this
//! is no check on a request: podgate keeps a `ResourceQuota` with `spec.hard.pods` in each of the
//! namespaces ([`crate::cluster::QuotaKeeper`]), and the API server refuses the pod that is one too
//! many. Off by default.
//!
//! Never in a namespace that `exclude.namespaces` leaves out of all policies, and never, whatever the
//! file says, in the cluster's own namespaces or in podgate's: a quota there could keep a cluster from
//! coming back.

use std::fmt;
use std::num::NonZeroU32;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use time::Date;

use super::patterns::Patterns;
use super::{Policies, whole_number, words};

/// Namespaces that never get a quota, as the webhook configurations leave them out, too.
const NEVER: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "security-system"];

/// How many pods, and where.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamespaceQuota {
    /// The most pods that a namespace may have, those that have finished not counted.
    pub pods: PodCount,
    /// Names of namespaces, or globs with `*`.
    pub namespaces: NamespacePatterns,
}

/// A number of pods, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodCount(NonZeroU32);

impl PodCount {
    /// A number of pods; `None` for 0.
    #[must_use]
    pub const fn new(count: u32) -> Option<Self> {
        match NonZeroU32::new(count) {
            Some(count) => Some(Self(count)),
            None => None,
        }
    }
}

impl fmt::Display for PodCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A list of names and globs, at least one, each of which can match a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePatterns {
    patterns: Patterns,
    exact: Vec<String>,
}

impl Policies {
    /// How many pods a namespace may have; `None` where it gets no quota.
    #[must_use]
    pub fn pods_allowed(&self, namespace: &str, today: Date) -> Option<PodCount> {
        let quota = self.namespace_quota.as_ref()?;
        (quota.namespaces.patterns.matches(namespace) && !self.is_without_quota(namespace, today)).then_some(quota.pods)
    }

    /// The namespaces that `namespaceQuota` names, and that get none all the same.
    pub(super) fn named_without_quota(&self, today: Date) -> impl Iterator<Item = &str> {
        let named = self.namespace_quota.iter().flat_map(|quota| &quota.namespaces.exact);
        named.map(String::as_str).filter(move |name| self.is_without_quota(name, today))
    }

    fn is_without_quota(&self, namespace: &str, today: Date) -> bool {
        NEVER.contains(&namespace) || self.exclude.namespaces.cover(namespace, today)
    }
}

impl<'de> Deserialize<'de> for PodCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a whole number of pods, such as 50";
        let Some(count) = whole_number::optional(deserializer, EXPECTED)? else {
            return Err(D::Error::custom(format_args!("here belongs {EXPECTED}, and there is none")));
        };
        PodCount::new(count).ok_or_else(|| {
            D::Error::custom("0 would let no pod in: write a number from 1, or leave namespaceQuota out")
        })
    }
}

impl<'de> Deserialize<'de> for NamespacePatterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names: Vec<NamespacePattern> = Vec::deserialize(deserializer)?;
        if names.is_empty() {
            return Err(D::Error::custom(
                "no namespace would get the quota: name at least one, such as \"team-*\", or leave namespaceQuota out",
            ));
        }
        let names = || names.iter().map(|NamespacePattern(name)| name.clone());
        Ok(Self { patterns: names().collect(), exact: names().filter(|name| !name.contains('*')).collect() })
    }
}

/// A name or a glob that can match a namespace.
#[derive(Debug)]
pub(super) struct NamespacePattern(pub(super) String);

/// A text that no namespace can match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} matches no namespace: write small letters, digits, - and *, such as \"team-*\"")]
pub struct NoNamespace {
    name: String,
}

impl NamespacePattern {
    /// A name or a glob that can match a namespace.
    pub(super) fn new(name: String) -> Result<Self, NoNamespace> {
        // The characters of a DNS label (RFC 1123), of which the names of namespaces are made.
        let is_possible =
            !name.is_empty() && name.chars().all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-' | '*'));
        if is_possible { Ok(Self(name)) } else { Err(NoNamespace { name }) }
    }
}

impl<'de> Deserialize<'de> for NamespacePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(words::text(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(configuration: &str) -> Policies {
        crate::config::parse(configuration).unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn day(day: u8) -> Date {
        Date::from_calendar_date(2027, time::Month::January, day).unwrap()
    }

    fn allowed(configuration: &str, namespace: &str) -> Option<String> {
        policies(configuration).pods_allowed(namespace, day(1)).map(|count| count.to_string())
    }

    #[test]
    fn is_off_until_it_is_asked_for() {
        for configuration in ["", "namespaceQuota: null", "namespaceQuota:"] {
            assert_eq!(allowed(configuration, "team-a"), None, "{configuration}");
        }
    }

    #[test]
    fn names_and_globs_get_it_and_no_others() {
        let configuration = "namespaceQuota: { pods: 50, namespaces: [\"team-*\", sandbox] }";
        for namespace in ["team-a", "sandbox"] {
            assert_eq!(allowed(configuration, namespace).as_deref(), Some("50"), "{namespace}");
        }
        for namespace in ["team", "sandbox-2", "default"] {
            assert_eq!(allowed(configuration, namespace), None, "{namespace}");
        }
    }

    #[test]
    fn neither_the_clusters_own_namespaces_nor_podgates_nor_those_that_are_excluded() {
        let all = "namespaceQuota: { pods: 50, namespaces: [\"*\"] }\nexclude: { namespaces: [ops] }";
        for namespace in ["kube-system", "kube-public", "kube-node-lease", "security-system", "ops"] {
            assert_eq!(allowed(all, namespace), None, "{namespace}");
        }
        assert!(allowed(all, "default").is_some());
    }

    #[test]
    fn an_exclusion_that_is_over_no_longer_counts() {
        let policies = policies(
            "namespaceQuota: { pods: 5, namespaces: [a] }\n\
             exclude: { namespaces: [{ name: a, until: 2027-01-01 }] }",
        );
        assert_eq!(policies.pods_allowed("a", day(1)), None);
        assert_eq!(policies.pods_allowed("a", day(2)), PodCount::new(5));
    }
}
