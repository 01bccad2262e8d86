//! `env` and `envFrom` (`ValidateEnv`, `ValidateEnvFrom`).

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVar, EnvVarSource, FileKeySelector};

use super::files::{check_field_ref, check_resource_field_ref};
use super::place::{Checked, Place};
use super::syntax::{KEY, NO_CLIMBING, SUBDOMAIN, VARIABLE};

/// The fields of a pod that a variable can have (`validEnvDownwardAPIFieldPathExpressions`).
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn check(place: &Place, container: &Container) -> Checked {
    for (place, variable) in place.elements("env", container.env.as_ref()) {
        check_variable(&place, variable)?;
    }
    for (place, source) in place.elements("envFrom", container.env_from.as_ref()) {
        check_variables(&place, source)?;
    }
    Ok(())
}

fn check_variable(place: &Place, variable: &EnvVar) -> Checked {
    place.needs_form("name", &variable.name, VARIABLE)?;
    let Some(source) = &variable.value_from else { return Ok(()) };
    let has_value = variable.value.as_ref().is_some_and(|value| !value.is_empty());
    place.at_most_one(&[("value", has_value), ("valueFrom", true)])?;
    check_source(&place.member("valueFrom"), source)
}

fn check_source(place: &Place, source: &EnvVarSource) -> Checked {
    place.exactly_one(&[
        ("fieldRef", source.field_ref.is_some()),
        ("resourceFieldRef", source.resource_field_ref.is_some()),
        ("configMapKeyRef", source.config_map_key_ref.is_some()),
        ("secretKeyRef", source.secret_key_ref.is_some()),
        ("fileKeyRef", source.file_key_ref.is_some()),
    ])?;
    if let Some(field) = &source.field_ref {
        check_field_ref(&place.member("fieldRef"), field, &FIELDS)?;
    }
    if let Some(field) = &source.resource_field_ref {
        check_resource_field_ref(&place.member("resourceFieldRef"), field)?;
    }
    if let Some(selector) = &source.config_map_key_ref {
        check_key(&place.member("configMapKeyRef"), &selector.name, &selector.key)?;
    }
    if let Some(selector) = &source.secret_key_ref {
        check_key(&place.member("secretKeyRef"), &selector.name, &selector.key)?;
    }
    source.file_key_ref.as_ref().map_or(Ok(()), |selector| check_file_key(&place.member("fileKeyRef"), selector))
}

fn check_key(place: &Place, name: &str, key: &str) -> Checked {
    place.needs_form("name", name, SUBDOMAIN)?;
    place.needs_form("key", key, KEY)
}

fn check_file_key(place: &Place, selector: &FileKeySelector) -> Checked {
    place.needs_form("key", &selector.key, VARIABLE)?;
    place.needs("volumeName", &selector.volume_name, "the name of an emptyDir among the sidecar's volumes")?;
    place.needs_form("path", &selector.path, NO_CLIMBING)
}

fn check_variables(place: &Place, source: &EnvFromSource) -> Checked {
    if let Some(prefix) = source.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        place.form("prefix", prefix, VARIABLE)?;
    }
    place.exactly_one(&[
        ("configMapRef", source.config_map_ref.is_some()),
        ("secretRef", source.secret_ref.is_some()),
    ])?;
    if let Some(config_map) = &source.config_map_ref {
        place.member("configMapRef").needs_form("name", &config_map.name, SUBDOMAIN)?;
    }
    let secret = source.secret_ref.as_ref();
    secret.map_or(Ok(()), |secret| place.member("secretRef").needs_form("name", &secret.name, SUBDOMAIN))
}
