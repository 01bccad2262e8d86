//! `restartPolicy`, `restartPolicyRules` and `resizePolicy` (`validateContainerRestartPolicy`,
//! `validateResizePolicy`).

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

use super::SidecarFault;
use super::place::{Checked, Place};

/// The most rules of a container.
const RULES_MAX: usize = 20;

/// The most exit codes of a rule.
const EXIT_CODES_MAX: usize = 255;

pub(super) fn check(place: &Place, native: bool, container: &Container) -> Checked {
    let policy = container.restart_policy.as_deref();
    if native {
        let is_another = policy.is_some_and(|policy| policy != "Always");
        place.member("restartPolicy").refuse_if(is_another, || SidecarFault::RestartPolicy)?;
    } else {
        place.among("restartPolicy", policy, &["Always", "OnFailure", "Never"])?;
    }
    let rules = container.restart_policy_rules.as_ref();
    let at_rules = place.member("restartPolicyRules");
    let count = rules.map_or(0, Vec::len);
    at_rules.refuse_if(count > 0 && !native && policy.is_none(), || SidecarFault::Needs("restartPolicy"))?;
    at_rules.refuse_if(count > RULES_MAX, || SidecarFault::OutOfPlace("there are more than 20 rules"))?;
    for (place, rule) in place.elements("restartPolicyRules", rules) {
        check_rule(&place, rule)?;
    }
    check_resize_policy(place, container)
}

fn check_rule(place: &Place, rule: &ContainerRestartRule) -> Checked {
    place.among("action", Some(&rule.action), &["Restart", "RestartAllContainers"])?;
    let Some(exit_codes) = &rule.exit_codes else {
        return Err(place.fault(SidecarFault::Missing { key: "exitCodes", what: "an operator and its values" }));
    };
    let place = place.member("exitCodes");
    place.among("operator", Some(&exit_codes.operator), &["In", "NotIn"])?;
    let is_long = exit_codes.values.as_ref().is_some_and(|values| values.len() > EXIT_CODES_MAX);
    place.member("values").refuse_if(is_long, || SidecarFault::OutOfPlace("there are more than 255 exit codes"))
}

fn check_resize_policy(place: &Place, container: &Container) -> Checked {
    let mut names = HashSet::new();
    for (place, policy) in place.elements("resizePolicy", container.resize_policy.as_ref()) {
        let name = &policy.resource_name;
        place.among("resourceName", Some(name), &["cpu", "memory"])?;
        let twice = || SidecarFault::Twice { key: "resourceName", value: name.clone() };
        place.member("resourceName").refuse_if(!names.insert(name), twice)?;
        place.among("restartPolicy", Some(&policy.restart_policy), &["NotRequired", "RestartContainer"])?;
    }
    Ok(())
}
