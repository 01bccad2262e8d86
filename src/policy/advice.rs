//! What is right in a configuration, and yet hardly meant.

use std::fmt;

use time::Date;

use super::exclude::Requesters;
use super::{Exclusions, Policies, PositiveQuantity, RuleExclude};
use crate::pod::ResourceName;

/// Users in whose name the pods of workloads are created: the controllers' own accounts, and the
/// one that they share where kube-controller-manager runs without
/// `--use-service-account-credentials`.
const CREATORS_OF_PODS: [&str; 6] = [
    "system:serviceaccount:kube-system:replicaset-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:daemon-set-controller",
    "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:kube-system:replication-controller",
    "system:kube-controller-manager",
];

/// Groups that these users, or all, are in.
const GROUPS_OF_MOST: [&str; 4] =
    ["system:authenticated", "system:masters", "system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// Images in full, with and without a tag, that a glob matches together only if it matches all.
const IMAGES_OF_NOTHING_IN_COMMON: [&str; 3] =
    ["docker.io/library/nginx", "registry.example.com:5000/a/b/c:1.4.2", "ghcr.io/x/y"];

/// The same for names of containers.
const CONTAINERS_OF_NOTHING_IN_COMMON: [&str; 3] = ["app", "istio-proxy", "7"];

/// What is right in a configuration, and yet hardly meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// An exclusion whose day is over.
    Expired {
        /// The list that it is in, such as `exclude.users`.
        list: String,
        /// The name or glob.
        name: String,
        /// The last day on which it counted.
        until: Date,
        /// Why it was there.
        reason: Option<String>,
    },
    /// An exclusion that matches every namespace.
    EveryNamespace {
        /// The list that it is in, such as `exclude.namespaces`.
        list: String,
        /// The glob.
        name: String,
    },
    /// An exclusion from one policy that matches every image or every container.
    EveryContainer {
        /// The list that it is in, such as `validations.imageTag.exclude.images`.
        list: String,
        /// The glob.
        name: String,
    },
    /// A glob for images of Docker Hub that does not match those that it seems to.
    NotInFull {
        /// The list that it is in, such as `validations.imageTag.exclude.images`.
        list: String,
        /// The glob.
        name: String,
        /// What does.
        instead: String,
    },
    /// An exclusion that matches a user or a group behind nearly every pod.
    TooBroad {
        /// The list that it is in, such as `exclude.users`.
        list: String,
        /// The name or glob.
        name: String,
        /// The user or group.
        matches: &'static str,
    },
    /// A default limit with which pods break what is allowed.
    DefaultAboveMax {
        /// Of which resource.
        name: ResourceName,
        /// The default.
        default: String,
        /// The most that a pod may use.
        max: PositiveQuantity,
    },
    /// An amount of memory that is next to nothing.
    TinyMemory {
        /// The key of it, such as `mutations.resources.limits.memory`.
        key: String,
        /// The amount.
        amount: String,
    },
    /// A mirror to a registry that is not allowed.
    MirrorNotAllowed {
        /// The mirror's key.
        from: String,
        /// Its target.
        target: String,
    },
    /// A namespace that `namespaceQuota` names, and that gets no quota.
    NoQuota {
        /// The namespace.
        namespace: String,
    },
    /// A namespace for whose pods a sidecar is, and that is excluded from all policies.
    NoSidecar {
        /// The list that it is in, such as `mutations.sidecars[0].namespaces`.
        list: String,
        /// The namespace.
        namespace: String,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired { list, name, until, reason } => {
                write!(formatter, "{list}: {name:?} has counted until {until}")?;
                if let Some(reason) = reason {
                    write!(formatter, " ({reason})")?;
                }
                formatter.write_str(" and no longer does: remove it, or give it a later day")
            }
            Self::EveryNamespace { list, name } => write!(
                formatter,
                "{list}: {name:?} matches every namespace, so that it exempts every pod: name those that you mean"
            ),
            Self::EveryContainer { list, name } => write!(
                formatter,
                "{list}: {name:?} matches all of them, so that the policy concerns none: name those that you mean, or \
                 turn the policy off"
            ),
            Self::NotInFull { list, name, instead } => write!(
                formatter,
                "{list}: {name:?} matches no image that is called so, for images are compared in full: write {instead}"
            ),
            Self::TooBroad { list, name, matches } => write!(
                formatter,
                "{list}: {name:?} matches {matches}, behind which nearly every pod is created: it exempts nearly \
                 every pod, so name those whom you mean"
            ),
            Self::DefaultAboveMax { name, default, max } => {
                let name = name.as_str();
                write!(
                    formatter,
                    "mutations.resources.limits.{name}: {default} is above validations.{name}.max, {max}, so that a pod \
                     without a limit of its own breaks that: lower the one, or raise the other"
                )
            }
            Self::TinyMemory { key, amount } => write!(
                formatter,
                "{key}: {amount} is less than 1 MiB, with which hardly any process runs: is it meant?"
            ),
            Self::MirrorNotAllowed { from, target } => write!(
                formatter,
                "mutations.images.mirrors: images from {from:?} are to come from {target}, which \
                 validations.imageTag.allowedRegistries does not have: add it there"
            ),
            Self::NoQuota { namespace } => write!(
                formatter,
                "namespaceQuota.namespaces: {namespace:?} gets no quota, for it is excluded from all policies, or the \
                 cluster's own or podgate's: remove it"
            ),
            Self::NoSidecar { list, namespace } => write!(
                formatter,
                "{list}: no pod in {namespace:?} gets the sidecar, for exclude.namespaces exempts it from all policies: \
                 remove it from one of the two"
            ),
        }
    }
}

impl Policies {
    /// What is right in the configuration, and yet hardly meant.
    #[must_use]
    pub fn advice(&self, today: Date) -> Vec<Advice> {
        let mut advice = Vec::new();
        for (list, exclusions) in self.exclusions() {
            let matching: &[&'static str] = match list.rsplit('.').next() {
                Some("users") => &CREATORS_OF_PODS,
                Some("groups") => &GROUPS_OF_MOST,
                _ => &[],
            };
            for (name, term) in exclusions.each() {
                let (list, name) = (list.clone(), name.to_owned());
                if let Some(until) = term.until.filter(|_| term.has_expired(today)) {
                    advice.push(Advice::Expired { list, name, until, reason: term.reason.clone() });
                    continue;
                }
                if list.ends_with(".namespaces") && name.bytes().all(|byte| byte == b'*') && !name.is_empty() {
                    advice.push(Advice::EveryNamespace { list, name });
                    continue;
                }
                let alone = Exclusions::from_iter([&*name]);
                let all: &[&str] = match list.rsplit('.').next() {
                    Some("images") => &IMAGES_OF_NOTHING_IN_COMMON,
                    Some("containers") => &CONTAINERS_OF_NOTHING_IN_COMMON,
                    _ => &[],
                };
                if !all.is_empty() && all.iter().all(|one| alone.cover(one, today)) {
                    advice.push(Advice::EveryContainer { list, name });
                    continue;
                }
                if let Some(instead) = in_full(&name).filter(|_| list.ends_with(".images")) {
                    advice.push(Advice::NotInFull { list, name, instead });
                    continue;
                }
                if let Some(matches) = matching.iter().find(|known| alone.cover(known, today)) {
                    advice.push(Advice::TooBroad { list, name, matches });
                }
            }
        }
        advice.extend(
            self.named_without_quota(today).map(|namespace| Advice::NoQuota { namespace: namespace.to_owned() }),
        );
        for (index, sidecar) in self.mutations.sidecars.each().iter().enumerate() {
            let excluded =
                sidecar.named_namespaces().into_iter().filter(|name| self.exclude.namespaces.cover(name, today));
            advice.extend(excluded.map(|namespace| Advice::NoSidecar {
                list: format!("mutations.sidecars[{index}].namespaces"),
                namespace: namespace.to_owned(),
            }));
        }
        advice.extend(self.at_odds());
        advice
    }

    /// How many exclusions have expired.
    #[must_use]
    pub fn expired_exclusions(&self, today: Date) -> usize {
        self.exclusions()
            .iter()
            .flat_map(|(_, exclusions)| exclusions.each())
            .filter(|(_, term)| term.has_expired(today))
            .count()
    }

    /// Every list of exclusions, by its place in the configuration file.
    fn exclusions(&self) -> Vec<(String, &Exclusions)> {
        let mut lists = Vec::from(of_requesters("exclude", self.exclude.requesters()));
        for (index, sidecar) in self.mutations.sidecars.each().iter().enumerate() {
            lists.extend(of_requesters(&format!("mutations.sidecars[{index}].exclude"), sidecar.exclude.requesters()));
        }
        let mut of_containers = Vec::new();
        for (policy, exclude) in self.mutations.excludes() {
            let place = format!("mutations.{policy}.exclude");
            lists.extend(of_requesters(&place, exclude.requesters()));
            of_containers.push((place, exclude));
        }
        for (policy, rule) in self.validations.rules() {
            let place = format!("validations.{policy}.exclude");
            lists.extend(of_requesters(&place, rule.exclude.requesters()));
            if let RuleExclude::Container(exclude) = rule.exclude {
                of_containers.push((place, exclude));
            }
        }
        for (place, exclude) in of_containers {
            lists.push((format!("{place}.images"), exclude.images.exclusions()));
            lists.push((format!("{place}.containers"), &exclude.containers));
        }
        lists
    }
}

/// What a glob for images of Docker Hub has to be, where it can match none: the registry is `docker.io` in full,
/// and an image has an account, or `library`, before its tag or digest.
fn in_full(glob: &str) -> Option<String> {
    if let Some(rest) = glob.strip_prefix("index.docker.io/") {
        let glob = format!("docker.io/{rest}");
        return glob.contains('*').then(|| in_full(&glob).unwrap_or(glob));
    }
    let name = glob.strip_prefix("docker.io/")?;
    let (beginning, _) = name.split_once('*')?;
    let has_no_account = beginning.contains([':', '@']) && !beginning.contains('/');
    has_no_account.then(|| format!("docker.io/library/{name}"))
}

fn of_requesters<'e>(place: &str, requesters: Requesters<'e>) -> [(String, &'e Exclusions); 3] {
    let Requesters { namespaces, users, groups } = requesters;
    [("namespaces", namespaces), ("users", users), ("groups", groups)]
        .map(|(list, exclusions)| (format!("{place}.{list}"), exclusions))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(configuration: &str) -> Vec<String> {
        let policies = crate::config::parse(configuration).unwrap_or_else(|fault| panic!("{fault}"));
        let today = Date::from_calendar_date(2027, time::Month::January, 1).unwrap();
        let advice = policies.advice(today);
        assert_eq!(
            policies.expired_exclusions(today),
            advice.iter().filter(|one| matches!(one, Advice::Expired { .. })).count()
        );
        advice.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_default_needs_none() {
        assert!(advice("").is_empty());
        assert!(advice("exclude: { users: [\"system:serviceaccount:backup:*\"], groups: [ops] }").is_empty());
    }

    #[test]
    fn tells_of_what_has_expired() {
        assert_eq!(
            advice(
                "validations:\n  hostPath:\n    exclude:\n      namespaces:\n        - { name: old, reason: moving, until: 2026-12-31 }\n        \
                 - { name: new, until: 2027-01-01 }\n  imageTag:\n    exclude: { images: [{ name: nginx, until: 2026-01-01 }] }\n"
            ),
            [
                "validations.hostPath.exclude.namespaces: \"old\" has counted until 2026-12-31 (moving) and no longer does: \
                 remove it, or give it a later day",
                "validations.imageTag.exclude.images: \"docker.io/library/nginx\" has counted until 2026-01-01 and no \
                 longer does: remove it, or give it a later day",
            ]
        );
    }

    #[test]
    fn tells_of_namespaces_that_get_no_quota_although_they_are_named() {
        assert_eq!(
            advice(
                "namespaceQuota: { pods: 5, namespaces: [\"*\", a, kube-system, ops] }\nexclude: { namespaces: [ops] }"
            ),
            ["kube-system", "ops"].map(|name| format!(
                "namespaceQuota.namespaces: {name:?} gets no quota, for it is excluded from all policies, or the \
                 cluster's own or podgate's: remove it"
            ))
        );
    }

    #[test]
    fn tells_of_sidecars_for_namespaces_that_are_excluded() {
        let sidecar = "mutations:\n  sidecars:\n    - container: { name: a, image: \"a:1\" }\n      ";
        let said = |exclude: &str| advice(&format!("{sidecar}namespaces: [\"*\", team-a, team-b]\n{exclude}"));
        assert_eq!(
            said("exclude: { namespaces: [\"team-a*\"] }"),
            [
                "mutations.sidecars[0].namespaces: no pod in \"team-a\" gets the sidecar, for exclude.namespaces exempts it \
              from all policies: remove it from one of the two"
            ]
        );
        assert!(said("exclude: { namespaces: [other] }").is_empty());
    }

    #[test]
    fn a_sidecar_has_exclusions_too() {
        let sidecar = "mutations:\n  sidecars:\n    - container: { name: a, image: \"a:1\" }\n      ";
        assert_eq!(
            advice(&format!(
                "{sidecar}exclude: {{ namespaces: [{{ name: old, until: 2026-12-31 }}], groups: [\"*\"] }}\n"
            )),
            [
                "mutations.sidecars[0].exclude.namespaces: \"old\" has counted until 2026-12-31 and no longer does: remove \
                 it, or give it a later day",
                "mutations.sidecars[0].exclude.groups: \"*\" matches system:authenticated, behind which nearly every pod is \
                 created: it exempts nearly every pod, so name those whom you mean",
            ]
        );
    }

    #[test]
    fn tells_of_what_exempts_every_container_from_a_policy() {
        for (list, name) in [("images", "*"), ("images", "*/*"), ("images", "**"), ("containers", "*")] {
            for policy in ["validations.imageTag", "validations.privileged", "mutations.resources"] {
                let (section, key) = policy.split_once('.').unwrap();
                let said = advice(&format!("{section}: {{ {key}: {{ exclude: {{ {list}: [\"{name}\"] }} }} }}\n"));
                assert_eq!(said.len(), 1, "{name}");
                assert!(
                    said[0].starts_with(&format!("{policy}.exclude.{list}: {name:?} matches all of them")),
                    "{said:?}"
                );
            }
        }
        for (list, name) in [("images", "docker.io/*"), ("images", "*/library/*"), ("containers", "istio-*")] {
            let narrow = format!("validations: {{ imageTag: {{ exclude: {{ {list}: [\"{name}\"] }} }} }}\n");
            assert!(advice(&narrow).is_empty(), "{name}");
        }
        assert!(advice("exclude: { namespaces: [\"kube-*\"] }").is_empty(), "that is common");
    }

    #[test]
    fn tells_of_globs_for_images_that_are_called_otherwise_in_full() {
        let said =
            |name: &str| advice(&format!("validations: {{ imageTag: {{ exclude: {{ images: [\"{name}\"] }} }} }}\n"));
        for (name, instead) in [
            ("index.docker.io/*", "docker.io/*"),
            ("index.docker.io/acme/*", "docker.io/acme/*"),
            ("index.docker.io/nginx:*", "docker.io/library/nginx:*"),
            ("docker.io/nginx:*", "docker.io/library/nginx:*"),
            ("docker.io/nginx@*", "docker.io/library/nginx@*"),
        ] {
            assert_eq!(
                said(name),
                [format!(
                    "validations.imageTag.exclude.images: {name:?} matches no image that is called so, for images are \
                     compared in full: write {instead}"
                )]
            );
        }
        for name in [
            "docker.io/*",
            "docker.io/acme/*",
            "docker.io/acme*/*",
            "docker.io/library/nginx*",
            "docker.io/library*",
            "docker.io/nginx*",
            "index.docker.io/nginx",
        ] {
            assert!(said(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn tells_of_what_exempts_nearly_every_pod() {
        for (list, name) in [
            ("users", "system:serviceaccount:kube-system:*"),
            ("users", "system:serviceaccount:*"),
            ("users", "system:serviceaccount:kube-system:job-controller"),
            ("users", "system:kube-controller-manager"),
            ("users", "*"),
            ("namespaces", "*"),
            ("groups", "system:masters"),
            ("groups", "system:authenticated"),
            ("groups", "system:serviceaccounts*"),
        ] {
            for (begin, place) in [("", "exclude"), ("mutations:\n  resources:\n    ", "mutations.resources.exclude")] {
                let said = advice(&format!("{begin}exclude: {{ {list}: [\"{name}\"] }}\n"));
                assert_eq!(said.len(), 1, "{name}");
                assert!(said[0].starts_with(&format!("{place}.{list}: {name:?} matches ")), "{said:?}");
            }
        }
    }
}
