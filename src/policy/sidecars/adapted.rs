//! What becomes of a sidecar's container in a pod in which the API server would refuse it as it is.
//!
//! Some fields are right in some pods only. Where something else means the same there, the
//! container gets that (`k8s.io/kubernetes/pkg/apis/core/validation`):
//!
//! - An amount of a resource that is set for the pod as a whole is left out: the container takes its
//!   share of the pod's. Huge pages need an amount of cpu or memory beside them
//!   (`validateResourceRequirements`): where both are left out, a request of none.
//! - `resizePolicy` with `RestartContainer`: `NotRequired` in a pod that never restarts
//!   (`validateResizePolicy`).
//! - `lifecycle.stopSignal` is left out where the pod names no `os` (`validateStopSignal`).
//! - A hook that sleeps longer than the pod's `terminationGracePeriodSeconds` sleeps as long as that
//!   (`validateSleepAction`), after which the kubelet kills it anyway.
//!
//! What has nothing in its place is told of by `unfit`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::manifest;
use crate::pod::{HUGE_PAGES, PodSpec, ResourceName};

/// The container as a pod gets it.
pub(super) fn adapted<'c>(container: &'c Value, pod: &PodSpec<'_>) -> Cow<'c, Value> {
    let mut container = Cow::Borrowed(container);
    if pod.resources.is_some() {
        share_resources(&mut container, pod);
    }
    if pod.never_restarts() {
        resize_without_restart(&mut container);
    }
    if !pod.names_os() {
        leave_out_stop_signal(&mut container);
    }
    sleep_no_longer_than(&mut container, pod.grace_period());
    container
}

/// The keys of `limits` and `requests`.
fn resources(container: &Value) -> impl Iterator<Item = &str> {
    ["/resources/limits", "/resources/requests"]
        .into_iter()
        .filter_map(|amounts| container.pointer(amounts)?.as_object())
        .flat_map(Map::keys)
        .map(String::as_str)
}

fn share_resources(container: &mut Cow<'_, Value>, pod: &PodSpec<'_>) {
    if resources(container).any(|name| pod.sets_for_all_by_name(name)) {
        let container = container.to_mut();
        for amounts in ["/resources/limits", "/resources/requests"] {
            if let Some(amounts) = container.pointer_mut(amounts).and_then(Value::as_object_mut) {
                amounts.retain(|name, _| !pod.sets_for_all_by_name(name));
            }
        }
        manifest::tidy(container);
    }
    let is_known = |name: &str| ResourceName::ALL.into_iter().any(|known| known.as_str() == name);
    let has_huge_pages = resources(container).any(|name| name.starts_with(HUGE_PAGES));
    if has_huge_pages
        && !resources(container).any(is_known)
        && let Some(shared) = ResourceName::ALL.into_iter().find(|name| pod.sets_for_all(*name))
    {
        container.to_mut()["resources"]["requests"][shared.as_str()] = "0".into();
    }
}

fn resize_without_restart(container: &mut Cow<'_, Value>) {
    let restarts = |policy: &Value| policy["restartPolicy"] == "RestartContainer";
    if !container["resizePolicy"].as_array().is_some_and(|policies| policies.iter().any(restarts)) {
        return;
    }
    for policy in container.to_mut()["resizePolicy"].as_array_mut().into_iter().flatten() {
        if restarts(policy) {
            policy["restartPolicy"] = "NotRequired".into();
        }
    }
}

fn leave_out_stop_signal(container: &mut Cow<'_, Value>) {
    if container["lifecycle"]["stopSignal"].is_null() {
        return;
    }
    if let Some(lifecycle) = container.to_mut()["lifecycle"].as_object_mut() {
        lifecycle.remove("stopSignal");
    }
    leave_out_empty_lifecycle(container.to_mut());
}

fn sleep_no_longer_than(container: &mut Cow<'_, Value>, grace_period: i64) {
    for hook in ["postStart", "preStop"] {
        let seconds = container["lifecycle"][hook]["sleep"]["seconds"].as_i64();
        if seconds.is_none_or(|seconds| seconds <= grace_period) {
            continue;
        }
        let container = container.to_mut();
        if grace_period > 0 {
            container["lifecycle"][hook]["sleep"]["seconds"] = grace_period.into();
        } else if let Some(lifecycle) = container["lifecycle"].as_object_mut() {
            // Not every API server takes a sleep of no seconds.
            lifecycle.remove(hook);
            leave_out_empty_lifecycle(container);
        }
    }
}

fn leave_out_empty_lifecycle(container: &mut Value) {
    if let Some(members) = container.as_object_mut()
        && members.get("lifecycle").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        members.remove("lifecycle");
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::pod;
    use super::*;
    use serde_json::json;

    /// What a pod makes of a container.
    #[expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without a borrow")]
    fn in_pod(container: Value, spec: Value) -> Value {
        adapted(&container, &pod(&spec.to_string())).into_owned()
    }

    #[test]
    fn amounts_that_the_pod_has_for_all_are_left_out() {
        let container = |limits: Value| json!({"resources": {"limits": limits}});
        let of_all = |name: &str| json!({"resources": {"requests": {name: "1"}}});
        for (limits, spec, expected) in [
            (json!({"cpu": "1", "memory": "1Gi"}), json!({}), json!({"limits": {"cpu": "1", "memory": "1Gi"}})),
            (json!({"cpu": "1", "memory": "1Gi"}), of_all("cpu"), json!({"limits": {"memory": "1Gi"}})),
            (json!({"cpu": "1"}), of_all("cpu"), json!({})),
            (
                json!({"hugepages-2Mi": "64Mi", "cpu": "1"}),
                of_all("cpu"),
                json!({"limits": {"hugepages-2Mi": "64Mi"}, "requests": {"cpu": "0"}}),
            ),
            (
                json!({"hugepages-2Mi": "64Mi", "cpu": "1", "memory": "1Gi"}),
                of_all("cpu"),
                json!({"limits": {"hugepages-2Mi": "64Mi", "memory": "1Gi"}}),
            ),
            (
                json!({"hugepages-2Mi": "64Mi"}),
                of_all("memory"),
                json!({"limits": {"hugepages-2Mi": "64Mi"}, "requests": {"memory": "0"}}),
            ),
            (json!({"hugepages-2Mi": "64Mi"}), json!({}), json!({"limits": {"hugepages-2Mi": "64Mi"}})),
            (
                json!({"hugepages-2Mi": "64Mi", "hugepages-1Gi": "1Gi", "cpu": "1"}),
                of_all("hugepages-2Mi"),
                json!({"limits": {"hugepages-1Gi": "1Gi", "cpu": "1"}}),
            ),
        ] {
            let found = in_pod(container(limits.clone()), spec.clone());
            assert_eq!(found, json!({"resources": expected}), "{limits} in {spec}");
        }
    }

    #[test]
    fn what_needs_a_restart_needs_none_where_none_comes() {
        let policies = |cpu: &str| {
            json!({"resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": cpu}, {"resourceName": "memory", "restartPolicy": "NotRequired"},
            ]})
        };
        let restarts = || policies("RestartContainer");
        assert_eq!(in_pod(restarts(), json!({"restartPolicy": "Never"})), policies("NotRequired"));
        assert_eq!(in_pod(restarts(), json!({"restartPolicy": "OnFailure"})), restarts());
        assert_eq!(in_pod(restarts(), json!({})), restarts());
    }

    #[test]
    fn a_stop_signal_comes_where_the_pod_names_its_os() {
        let container = || json!({"lifecycle": {"stopSignal": "SIGUSR1"}});
        assert_eq!(in_pod(container(), json!({})), json!({}));
        assert_eq!(in_pod(container(), json!({"os": {"name": "linux"}})), container());
    }

    #[test]
    fn a_hook_sleeps_as_long_as_the_pod_has() {
        let container = |seconds: i64| json!({"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}});
        for (seconds, grace_period, expected) in [
            (10, json!(null), container(10)),
            (31, json!(null), container(30)),
            (10, json!(5), container(5)),
            (10, json!(10), container(10)),
            (10, json!(0), json!({})),
            (0, json!(0), container(0)),
            (10, json!(-1), container(1)),
        ] {
            let found = in_pod(container(seconds), json!({"terminationGracePeriodSeconds": grace_period}));
            assert_eq!(found, expected, "{seconds} in {grace_period}");
        }
    }
}
