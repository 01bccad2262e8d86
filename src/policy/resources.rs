//! `resources`: no container without limits.
//!
//! Fills missing limits of app and init containers, each resource on its own, as LimitRange
//! does: cpu `"1"` and memory `1Gi` by default. An empty map, `null` and a zero count as
//! missing. A default below the container's own request becomes that request. Where a limit is
//! filled and no request is there, the API server sets the request to the limit, unless
//! `requests` has a default, of which there is none at first. A default request comes only where
//! the container has neither a request nor a limit of its own, or where its limit was a zero that
//! is filled; a limit of its own is its request too.
//!
//! A resource that is set for the pod as a whole (`spec.resources`) gets no container default,
//! which would break the pod; if it has only a request there, or a zero limit, the pod's limit
//! is filled instead: the largest of the default, the pod's request and its app containers'
//! limits. Ephemeral containers may not have resources at all.

use serde::Deserialize;

use super::{ContainerExclude, Contradiction, PolicyName, PositiveQuantity, null_is_default};
use crate::patch::{Patch, Pointer, Value, add_members};
use crate::pod::{Amount, Container, ContainerList, PodSpec, Quantity, ResourceName, ResourceRequirements};

/// The limits and requests to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// The limits to fill in.
    #[serde(deserialize_with = "null_is_default")]
    limits: Limits,
    /// The requests to fill in.
    #[serde(deserialize_with = "null_is_default")]
    requests: Requests,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Limits {
    /// The cpu limit; `"1"` by default, and null fills in none.
    cpu: Option<PositiveQuantity>,
    /// The memory limit; `1Gi` by default, and null fills in none.
    memory: Option<PositiveQuantity>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: PositiveQuantity::parse("1"), memory: PositiveQuantity::parse("1Gi") }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Requests {
    /// The cpu request; none by default, and at most the limit.
    cpu: Option<PositiveQuantity>,
    /// The memory request; none by default, and at most the limit.
    memory: Option<PositiveQuantity>,
}

impl Resources {
    /// The mutation's key in the configuration file.
    pub(super) const NAME: PolicyName = PolicyName("resources");

    /// No default at all.
    #[must_use]
    pub fn off() -> Self {
        Self { limits: Limits { cpu: None, memory: None }, ..Self::default() }
    }

    /// The limit and the request by default.
    const fn defaults(&self, name: ResourceName) -> (Option<&PositiveQuantity>, Option<&PositiveQuantity>) {
        match name {
            ResourceName::Cpu => (self.limits.cpu.as_ref(), self.requests.cpu.as_ref()),
            ResourceName::Memory => (self.limits.memory.as_ref(), self.requests.memory.as_ref()),
        }
    }

    /// Every default, with its place below the mutation's key.
    pub(super) fn each(&self) -> impl Iterator<Item = ([&'static str; 2], ResourceName, &PositiveQuantity)> {
        ResourceName::ALL.into_iter().flat_map(|name| {
            let (limit, request) = self.defaults(name);
            [("limits", limit), ("requests", request)]
                .into_iter()
                .filter_map(move |(list, amount)| Some(([list, name.as_str()], name, amount?)))
        })
    }

    pub(super) fn default_limit(&self, name: ResourceName) -> Option<&Quantity<'static>> {
        self.defaults(name).0.map(PositiveQuantity::as_quantity)
    }

    fn default_request(&self, name: ResourceName) -> Option<&Quantity<'static>> {
        self.defaults(name).1.map(PositiveQuantity::as_quantity)
    }

    /// A default request above the default limit, with which pods would be refused.
    pub(super) fn request_above_limit(&self) -> Option<Contradiction> {
        ResourceName::ALL.into_iter().find_map(|name| {
            let (Some(limit), Some(request)) = self.defaults(name) else { return None };
            (request.as_quantity() > limit.as_quantity()).then(|| Contradiction::RequestAboveLimit {
                name,
                request: request.clone(),
                limit: limit.clone(),
            })
        })
    }

    /// The limit that a container of that list lacks, where one is due.
    pub(super) fn missing_limit<'q>(
        &'q self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        container: &'q Container<'q>,
        name: ResourceName,
    ) -> Option<&'q Quantity<'q>> {
        let default = self.default_limit(name)?;
        let resources = container.resources.as_ref();
        let is_due =
            list != ContainerList::EphemeralContainers && is_missing(resources, name) && !pod.sets_for_all(name);
        is_due.then(|| at_least(default, resources, name))
    }

    /// Where a limit may come from that nobody wrote.
    pub(super) fn source(
        &self,
        limit: Amount,
        resources: Option<&ResourceRequirements<'_>>,
        name: ResourceName,
    ) -> Option<LimitSource> {
        let default = self.default_limit(name)?;
        let filled = at_least(default, resources, name);
        let source = if filled > default { LimitSource::Request } else { LimitSource::Default };
        (filled.nano() == limit.nano()).then_some(source)
    }

    /// The request that a container of that list lacks, where one is due.
    pub(super) fn missing_request(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        container: &Container<'_>,
        name: ResourceName,
    ) -> Option<&Quantity<'static>> {
        let default = self.default_request(name)?;
        if list == ContainerList::EphemeralContainers || pod.sets_for_all(name) {
            return None;
        }
        let resources = container.resources.as_ref();
        let has_limit = resources.and_then(|resources| resources.limit(name)).is_some();
        let gets_limit = || self.missing_limit(pod, list, container, name).is_some();
        let is_due = match resources.and_then(|resources| resources.request(name)) {
            None => !has_limit || gets_limit(),
            // The API server makes the zero of a limit the request too, before it asks.
            Some(request) => request.is_zero() && has_limit && gets_limit(),
        };
        is_due.then_some(default)
    }

    /// The limit that the pod as a whole lacks, where one is due.
    pub(super) fn missing_pod_limit<'q>(
        &'q self,
        pod: &'q PodSpec<'q>,
        name: ResourceName,
    ) -> Option<&'q Quantity<'q>> {
        let default = self.default_limit(name)?;
        if !pod.sets_for_all(name) || !is_missing(pod.resources.as_ref(), name) {
            return None;
        }
        let request = pod.resources.as_ref().and_then(|resources| resources.request(name));
        let limits = pod.containers.iter().filter_map(|container| container.resources.as_ref()?.limit(name));
        Some(request.into_iter().chain(limits).fold(default, Ord::max))
    }

    /// Adds what a container lacks to the patch.
    pub(super) fn patch(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        index: usize,
        container: &Container<'_>,
        patch: &mut Patch,
    ) {
        let limits = members(|name| self.missing_limit(pod, list, container, name));
        let requests = members(|name| self.missing_request(pod, list, container, name));
        add_resources(patch, || Pointer::container(list, index), container.resources.as_ref(), limits, requests);
    }

    /// Adds the limits that the pod as a whole lacks to the patch.
    pub(super) fn patch_pod(&self, pod: &PodSpec<'_>, patch: &mut Patch) {
        if pod.resources.is_some() {
            let limits = members(|name| self.missing_pod_limit(pod, name));
            add_resources(patch, Pointer::pod_spec, pod.resources.as_ref(), limits, Vec::new());
        }
    }
}

/// Where a limit comes from that nobody wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitSource {
    /// It is the default.
    Default,
    /// It is the request, which is above the default.
    Request,
}

/// The request, or the default limit where that is larger.
fn at_least<'q>(
    default: &'q Quantity<'q>,
    resources: Option<&'q ResourceRequirements<'q>>,
    name: ResourceName,
) -> &'q Quantity<'q> {
    let request = resources.and_then(|resources| resources.request(name));
    request.filter(|request| *request > default).unwrap_or(default)
}

/// The API server takes a zero limit for none.
fn is_missing(resources: Option<&ResourceRequirements<'_>>, name: ResourceName) -> bool {
    resources.and_then(|resources| resources.limit(name)).is_none_or(Quantity::is_zero)
}

fn members<'q>(missing: impl Fn(ResourceName) -> Option<&'q Quantity<'q>>) -> Vec<(&'static str, Value)> {
    let member = |name: ResourceName| missing(name).map(|amount| (name.as_str(), Value::from(amount.as_str())));
    ResourceName::ALL.into_iter().filter_map(member).collect()
}

fn add_resources(
    patch: &mut Patch,
    owner: impl Fn() -> Pointer,
    resources: Option<&ResourceRequirements<'_>>,
    limits: Vec<(&'static str, Value)>,
    requests: Vec<(&'static str, Value)>,
) {
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let path = owner().member("resources");
    let Some(resources) = resources else {
        let both = [("limits", limits), ("requests", requests)].into_iter();
        let due = both.filter(|(_, members)| !members.is_empty());
        patch.add(path, Value::Object(due.map(|(name, members)| (name, Value::Object(members))).collect()));
        return;
    };
    add_members(patch, &path.member("limits"), resources.limits.is_some(), limits);
    add_members(patch, &path.member("requests"), resources.requests.is_some(), requests);
}

#[cfg(test)]
mod tests {
    use super::super::Policies;
    use super::super::testing::patched;
    use serde_json::{Value, json};

    fn limited(spec: Value) -> Value {
        let mut policies = Policies::default();
        policies.mutations.security_context = super::super::SecurityContext {
            allow_privilege_escalation: true,
            run_as_non_root: false,
            ..Default::default()
        };
        patched(&policies, spec)
    }

    fn limits_of(resources: &Value) -> Value {
        let spec = limited(json!({"containers": [{"name": "a", "resources": resources}]}));
        spec["containers"][0]["resources"]["limits"].clone()
    }

    #[test]
    fn fills_what_is_missing_empty_null_or_zero() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        for resources in [
            json!(null),
            json!({}),
            json!({"limits": null}),
            json!({"limits": {}}),
            json!({"limits": {"cpu": null}}),
            json!({"limits": {"cpu": "0", "memory": "0Mi"}}),
            json!({"limits": {"cpu": 0}}),
        ] {
            assert_eq!(limits_of(&resources), both, "{resources}");
        }
        assert_eq!(limits_of(&json!({"limits": {"cpu": "2"}})), json!({"cpu": "2", "memory": "1Gi"}));
        assert_eq!(limits_of(&json!({"limits": {"cpu": 2}})), json!({"cpu": 2, "memory": "1Gi"}));
    }

    #[test]
    fn a_default_is_never_below_the_request() {
        assert_eq!(
            limits_of(&json!({"requests": {"cpu": "1500m", "memory": "1Gi"}})),
            json!({"cpu": "1500m", "memory": "1Gi"})
        );
    }

    #[test]
    fn what_is_set_for_the_pod_is_left_to_the_pod() {
        let spec = limited(json!({
            "resources": {"limits": {"cpu": "2"}},
            "containers": [{"name": "a"}],
            "initContainers": [{"name": "b"}],
        }));
        assert_eq!(spec["resources"], json!({"limits": {"cpu": "2"}}));
        for list in ["containers", "initContainers"] {
            assert_eq!(spec[list][0]["resources"], json!({"limits": {"memory": "1Gi"}}));
        }
    }

    #[test]
    fn a_request_alone_for_the_pod_gets_its_limit_there() {
        let pod_limit = |request: &str, limit: &str| {
            let spec = limited(json!({
                "resources": {"requests": {"cpu": request}},
                "containers": [{"name": "a", "resources": {"limits": {"cpu": limit, "memory": "1"}}}, {"name": "b"}],
            }));
            assert_eq!(spec["containers"][1]["resources"], json!({"limits": {"memory": "1Gi"}}));
            spec["resources"]["limits"]["cpu"].clone()
        };
        assert_eq!(pod_limit("100m", "500m"), json!("1"));
        assert_eq!(pod_limit("3", "500m"), json!("3"));
        assert_eq!(pod_limit("100m", "4"), json!("4"));
    }

    #[test]
    fn a_zero_limit_for_the_pod_is_filled_there_too() {
        let spec = limited(json!({"resources": {"limits": {"memory": "0"}}, "containers": [{"name": "a"}]}));
        assert_eq!(spec["resources"]["limits"], json!({"memory": "1Gi"}));
        assert_eq!(spec["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
    }

    #[test]
    fn ephemeral_containers_have_no_resources() {
        let spec = limited(json!({"ephemeralContainers": [{"name": "a"}]}));
        assert_eq!(spec["ephemeralContainers"][0], json!({"name": "a"}));
    }

    fn with(settings: &str, resources: &Value) -> Value {
        let mut policies = Policies::default();
        policies.mutations.resources = serde_json::from_str(settings).unwrap();
        let spec = patched(&policies, json!({"containers": [{"name": "a", "resources": resources}]}));
        spec["containers"][0]["resources"].clone()
    }

    #[test]
    fn a_default_request_comes_where_the_default_limit_would_be_it() {
        let settings = r#"{"requests": {"cpu": "100m", "memory": "64Mi"}}"#;
        let limits = json!({"cpu": "1", "memory": "1Gi"});
        for resources in [
            json!(null),
            json!({}),
            json!({"limits": {"cpu": "0"}, "requests": null}),
            json!({"limits": {"cpu": "0"}, "requests": {"cpu": "0"}}),
            json!({"limits": null, "requests": {"memory": null}}),
        ] {
            let expected = json!({"limits": limits, "requests": {"cpu": "100m", "memory": "64Mi"}});
            assert_eq!(with(settings, &resources), expected, "{resources}");
        }
    }

    #[test]
    fn what_the_container_has_is_not_contradicted() {
        let settings = r#"{"requests": {"cpu": "100m", "memory": "64Mi"}}"#;
        assert_eq!(
            with(settings, &json!({"limits": {"cpu": "50m"}, "requests": {"memory": "32Mi"}})),
            json!({"limits": {"cpu": "50m", "memory": "1Gi"}, "requests": {"memory": "32Mi"}})
        );
        assert_eq!(
            with(settings, &json!({"requests": {"cpu": "0", "memory": "2Gi"}})),
            json!({"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "0", "memory": "2Gi"}})
        );
    }

    #[test]
    fn a_default_request_needs_no_default_limit() {
        let settings = r#"{"limits": {"cpu": null, "memory": null}, "requests": {"cpu": "2"}}"#;
        assert_eq!(with(settings, &json!(null)), json!({"requests": {"cpu": "2"}}));
        for resources in [
            json!({"limits": {"cpu": "1"}}),
            json!({"limits": {"cpu": "0"}}),
            json!({"limits": {"cpu": "0"}, "requests": {"cpu": "0"}}),
            json!({"requests": {"cpu": "1"}}),
        ] {
            assert_eq!(with(settings, &resources), resources);
        }
    }

    #[test]
    fn no_default_request_below_a_pod_that_has_its_own_and_none_on_ephemeral_containers() {
        let mut policies = Policies::default();
        policies.mutations.resources =
            serde_json::from_str(r#"{"requests": {"cpu": "100m", "memory": "1Mi"}}"#).unwrap();
        let spec = patched(
            &policies,
            json!({
                "resources": {"requests": {"cpu": "50m"}},
                "containers": [{"name": "a"}],
                "ephemeralContainers": [{"name": "b"}],
            }),
        );
        assert_eq!(spec["resources"], json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}}));
        assert_eq!(
            spec["containers"][0]["resources"],
            json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "1Mi"}})
        );
        assert_eq!(spec["ephemeralContainers"][0]["resources"], json!(null));
    }
}
