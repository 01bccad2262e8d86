//! Settings of which one undoes what another does, or is hardly meant beside it.

use super::{Action, Advice, Policies, PositiveQuantity};
use crate::pod::ResourceName;

/// Less memory than a process of any use has, in bytes.
const MEMORY_MIN: i128 = 1 << 20;

impl Policies {
    /// Every amount of cpu and memory, with the keys that lead to it.
    pub(super) fn amounts(&self) -> Vec<(Vec<&'static str>, ResourceName, &PositiveQuantity)> {
        let defaults = self.mutations.resources.each();
        let defaults =
            defaults.map(|([list, key], name, amount)| (vec!["mutations", "resources", list, key], name, amount));
        let maxima = self.maxima().map(|(name, max, _)| (vec!["validations", name.as_str(), "max"], name, max));
        defaults.chain(maxima).collect()
    }

    fn maxima(&self) -> impl Iterator<Item = (ResourceName, &PositiveQuantity, Action)> {
        let of = |name| match name {
            ResourceName::Cpu => &self.validations.cpu.0,
            ResourceName::Memory => &self.validations.memory.0,
        };
        ResourceName::ALL.into_iter().filter_map(move |name| Some((name, of(name).max()?, of(name).action)))
    }

    /// What is hardly meant in amounts and registries.
    pub(super) fn at_odds(&self) -> Vec<Advice> {
        let amounts =
            self.amounts().into_iter().map(|(path, name, amount)| (path.join("."), name, amount.as_quantity()));
        let of_sidecars = self.mutations.sidecars.each().iter().enumerate().filter_map(|(index, sidecar)| {
            let key = format!("mutations.sidecars[{index}].container.resources.limits.memory");
            Some((key, ResourceName::Memory, sidecar.limit(ResourceName::Memory)?))
        });
        let tiny = amounts.chain(of_sidecars).filter_map(|(key, name, amount)| {
            let is_tiny = name == ResourceName::Memory && (1..MEMORY_MIN * 1_000_000_000).contains(&amount.nano());
            is_tiny.then(|| Advice::TinyMemory { key, amount: amount.as_str().to_owned() })
        });
        let above = self.maxima().filter_map(|(name, max, action)| {
            let default = self.mutations.resources.default_limit(name)?;
            let is_above = action != Action::Off && default > max.as_quantity();
            is_above.then(|| Advice::DefaultAboveMax { name, default: default.as_str().to_owned(), max: max.clone() })
        });
        tiny.chain(above).chain(self.mirrors_that_are_not_allowed()).collect()
    }

    fn mirrors_that_are_not_allowed(&self) -> impl Iterator<Item = Advice> {
        let image_tag = &self.validations.image_tag;
        let allowed = Some(&image_tag.allowed_registries)
            .filter(|allowed| image_tag.action != Action::Off && !allowed.is_empty());
        let mirrors = allowed.into_iter().flat_map(move |allowed| {
            let may_be_allowed = |target: &str| {
                let within = |whole: &str, part: &str| {
                    part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                allowed.iter().any(|allowed| within(allowed.as_str(), target) || within(target, allowed.as_str()))
            };
            let mirrors = self.mutations.images.mirrors().each().iter();
            mirrors.filter(move |mirror| !may_be_allowed(mirror.target())).collect::<Vec<_>>()
        });
        mirrors
            .map(|mirror| Advice::MirrorNotAllowed { from: mirror.written.clone(), target: mirror.target().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use time::Date;

    fn advice(configuration: &str) -> Vec<String> {
        let policies = crate::config::parse(configuration).unwrap_or_else(|fault| panic!("{fault}"));
        policies.advice(Date::MIN).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tells_of_default_limits_above_what_is_allowed() {
        let said = |action: &str| {
            advice(&format!(
                "mutations: {{ resources: {{ limits: {{ cpu: 3 }} }} }}\nvalidations:\n  \
                 cpu: {{ max: 2, action: {action} }}\n  memory: {{ max: 1Gi }}\n"
            ))
        };
        assert_eq!(
            said("deny"),
            [
                "mutations.resources.limits.cpu: 3 is above validations.cpu.max, 2, so that a pod without a limit of its own \
              breaks that: lower the one, or raise the other"
            ]
        );
        assert!(said("off").is_empty());
    }

    #[test]
    fn tells_of_mirrors_that_are_not_allowed() {
        let said = |allowed: &str| {
            advice(&format!(
                "mutations: {{ images: {{ mirrors: {{ quay.io: a.b/hub }} }} }}\n\
                 validations: {{ imageTag: {{ allowedRegistries: [{allowed}] }} }}\n"
            ))
        };
        assert_eq!(
            said("quay.io, a.bc, a.b/hubs"),
            ["mutations.images.mirrors: images from \"quay.io\" are to come from a.b/hub, which \
              validations.imageTag.allowedRegistries does not have: add it there"]
        );
        for allowed in ["", "a.b", "a.b/hub", "a.b/hub/library"] {
            assert!(said(allowed).is_empty(), "{allowed}");
        }
    }

    #[test]
    fn tells_of_memory_that_is_hardly_meant() {
        for (memory, count) in [("1Mi", 0), ("1Ki", 1), ("512", 1)] {
            let said = advice(&format!(
                "mutations: {{ resources: {{ limits: {{ memory: ~ }} }} }}\nvalidations: {{ memory: {{ max: {memory} }} }}"
            ));
            assert_eq!(said.len(), count, "{said:?}");
        }
        let said = advice("mutations: { resources: { limits: { memory: 512k } } }");
        assert_eq!(
            said,
            [
                "mutations.resources.limits.memory: 512k is less than 1 MiB, with which hardly any process runs: is it meant?"
            ]
        );
        let said = |memory: &str| {
            advice(&format!(
                "mutations: {{ sidecars: [{{ container: {{ name: agent, image: 'agent:1', resources: {{ limits: {{ memory: {memory} }} }} }} }}] }}"
            ))
        };
        assert_eq!(
            said("512m"),
            [
                "mutations.sidecars[0].container.resources.limits.memory: 512m is less than 1 MiB, with which hardly any \
                 process runs: is it meant?"
            ]
        );
        for memory in ["512Mi", "\"0\""] {
            assert!(said(memory).is_empty(), "{memory}");
        }
    }
}
