//! `securityContext` (`ValidateSecurityContext`).

use k8s_openapi::api::core::v1::{AppArmorProfile, SeccompProfile, SecurityContext};
use serde_json::Value;

use super::super::Os;
use super::SidecarFault;
use super::place::{Checked, Place};
use super::syntax::DESCENDING;

/// Fields of `securityContext` that the API server refuses where `spec.os.name` is linux
/// (`k8s.io/kubernetes/pkg/apis/core/validation`, `validateLinux`).
const OF_WINDOWS: [&str; 1] = ["windowsOptions"];

/// Those that it refuses where it is windows (`validateWindows`).
const OF_LINUX: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];

/// The profiles that `seccompProfile` and `appArmorProfile` know.
const PROFILES: [&str; 3] = ["RuntimeDefault", "Localhost", "Unconfined"];

/// The most characters of the name of an `AppArmor` profile: `PATH_MAX` but one.
const APP_ARMOR_PROFILE_MAX: usize = 4095;

/// The highest number of a user or group (`IsValidUserID`).
const ID_MAX: i64 = i32::MAX as i64;

pub(super) fn check(place: &Place, os: Os, context: Option<&SecurityContext>) -> Checked {
    let Some(context) = context else { return Ok(()) };
    check_os(place, os, context)?;
    place.within("runAsUser", context.run_as_user, 0..=ID_MAX)?;
    place.within("runAsGroup", context.run_as_group, 0..=ID_MAX)?;
    place.among("procMount", context.proc_mount.as_deref(), &["Default", "Unmasked"])?;
    check_escalation(place, context)?;
    if let Some(profile) = &context.seccomp_profile {
        check_seccomp(&place.member("seccompProfile"), profile)?;
    }
    if let Some(name) = context.windows_options.as_ref().and_then(|options| options.run_as_user_name.as_deref()) {
        place.member("windowsOptions").needs("runAsUserName", name, "the name of a user, such as ContainerUser")?;
    }
    if let Some(profile) = &context.app_armor_profile {
        check_app_armor(&place.member("appArmorProfile"), profile)?;
    }
    Ok(())
}

fn check_os(place: &Place, os: Os, context: &SecurityContext) -> Checked {
    let (os, refused) = match os {
        Os::Linux => ("linux", &OF_WINDOWS[..]),
        Os::Windows => ("windows", &OF_LINUX[..]),
    };
    let context = serde_json::to_value(context).map_err(|error| place.unreadable(&error))?;
    let is_set = |field: &&&str| context.get(**field).is_some_and(|value: &Value| !value.is_null());
    match refused.iter().find(is_set) {
        Some(field) => Err(place.member(field).fault(SidecarFault::OfOtherOs { field, os })),
        None => Ok(()),
    }
}

fn check_escalation(place: &Place, context: &SecurityContext) -> Checked {
    if context.allow_privilege_escalation != Some(false) {
        return Ok(());
    }
    let place = place.member("allowPrivilegeEscalation");
    place.refuse_if(context.privileged == Some(true), || SidecarFault::AtOddsWith("privileged: true"))?;
    let added = context.capabilities.as_ref().and_then(|capabilities| capabilities.add.as_ref());
    let adds_admin = added.is_some_and(|added| added.iter().any(|name| name == "CAP_SYS_ADMIN"));
    place.refuse_if(adds_admin, || SidecarFault::AtOddsWith("the capability CAP_SYS_ADMIN"))
}

fn check_seccomp(place: &Place, profile: &SeccompProfile) -> Checked {
    place.among("type", Some(&profile.type_), &PROFILES)?;
    let file = profile.localhost_profile.as_deref();
    check_localhost(place, &profile.type_, file.is_some())?;
    file.map_or(Ok(()), |file| place.form("localhostProfile", file, DESCENDING))
}

fn check_app_armor(place: &Place, profile: &AppArmorProfile) -> Checked {
    place.among("type", Some(&profile.type_), &PROFILES)?;
    let name = profile.localhost_profile.as_deref();
    check_localhost(place, &profile.type_, name.is_some_and(|name| profile.type_ != "Localhost" || !name.is_empty()))?;
    let is_wrong = name.is_some_and(|name| name.trim() != name || name.len() > APP_ARMOR_PROFILE_MAX);
    place.member("localhostProfile").refuse_if(is_wrong, || SidecarFault::Malformed {
        value: name.unwrap_or_default().to_owned(),
        form: "the name of a profile, without white space around it",
    })
}

/// A profile of the node's own is named where one is meant, and only there.
fn check_localhost(place: &Place, kind: &str, is_named: bool) -> Checked {
    let place = place.member("localhostProfile");
    match (kind == "Localhost", is_named) {
        (true, false) => {
            Err(place.fault(SidecarFault::Missing { key: "localhostProfile", what: "the profile that the nodes have" }))
        }
        (false, true) => Err(place.fault(SidecarFault::Needs("type: Localhost"))),
        _ => Ok(()),
    }
}
