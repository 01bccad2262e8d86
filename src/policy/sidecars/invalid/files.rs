//! What volumes and variables read of a pod, of a ConfigMap and of a Secret
//! (`validateObjectFieldSelector`, `validateContainerResourceFieldSelector`, `validateKeyToPath`).

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, ObjectFieldSelector, ResourceFieldSelector};

use super::SidecarFault;
use super::place::{Checked, Place};
use super::syntax::{FILE, is_qualified_name};
use crate::pod::Quantity;

/// The fields of a pod that a file can have (`validVolumeDownwardAPIFieldPathExpressions`).
const FIELDS_OF_FILES: [&str; 5] =
    ["metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"];

/// The resources of a container that there are to read.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
];

/// The highest mode of a file, 0777.
const MODE_MAX: i64 = 0o777;

/// `mode` or `defaultMode`.
pub(super) fn check_mode(place: &Place, key: &'static str, mode: Option<i32>) -> Checked {
    place.within(key, mode, 0..=MODE_MAX)
}

/// `items` of a ConfigMap or Secret.
pub(super) fn check_items(place: &Place, items: Option<&Vec<KeyToPath>>) -> Checked {
    for (place, item) in place.elements("items", items) {
        place.needs("key", &item.key, "the key whose value the file has")?;
        place.needs_form("path", &item.path, FILE)?;
        check_mode(&place, "mode", item.mode)?;
    }
    Ok(())
}

/// `items` of a downwardAPI volume.
pub(super) fn check_files(place: &Place, files: Option<&Vec<DownwardAPIVolumeFile>>) -> Checked {
    for (place, file) in place.elements("items", files) {
        place.needs_form("path", &file.path, FILE)?;
        place.exactly_one(&[
            ("fieldRef", file.field_ref.is_some()),
            ("resourceFieldRef", file.resource_field_ref.is_some()),
        ])?;
        if let Some(field) = &file.field_ref {
            check_field_ref(&place.member("fieldRef"), field, &FIELDS_OF_FILES)?;
        }
        if let Some(field) = &file.resource_field_ref {
            let place = place.member("resourceFieldRef");
            let container = field.container_name.as_deref().unwrap_or_default();
            place.needs("containerName", container, "the name of the container, for a volume is of the whole pod")?;
            check_resource_field_ref(&place, field)?;
        }
        check_mode(&place, "mode", file.mode)?;
    }
    Ok(())
}

/// `fieldRef`: a field of the pod, of which one label or annotation can be named.
pub(super) fn check_field_ref(place: &Place, field: &ObjectFieldSelector, fields: &'static [&'static str]) -> Checked {
    place.among_or_empty("apiVersion", field.api_version.as_deref(), &["v1"])?;
    let path = &*field.field_path;
    place.needs("fieldPath", path, "a field of the pod, such as metadata.name")?;
    let subscript = path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(map, _)| !map.is_empty());
    match subscript {
        None if path == "spec.host" && fields.contains(&"spec.nodeName") => Ok(()),
        None => place.among("fieldPath", Some(path), fields),
        Some((map, key)) => {
            let is_right = match map {
                "metadata.labels" => is_qualified_name(key),
                "metadata.annotations" => is_qualified_name(&key.to_lowercase()),
                _ => false,
            };
            place.member("fieldPath").refuse_if(!is_right, || SidecarFault::Malformed {
                value: path.to_owned(),
                form: "a label or annotation by its key, as in metadata.labels['app.kubernetes.io/name']",
            })
        }
    }
}

/// `resourceFieldRef`: a request or limit of a container.
pub(super) fn check_resource_field_ref(place: &Place, field: &ResourceFieldSelector) -> Checked {
    let resource = &*field.resource;
    let is_of_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if !is_of_pages {
        place.needs("resource", resource, "a request or limit, such as limits.memory")?;
        place.among("resource", Some(resource), &RESOURCES)?;
    }
    let Some(divisor) = field.divisor.as_ref().and_then(|divisor| Quantity::parse(&*divisor.0).ok()) else {
        return Ok(());
    };
    let (fits, form): (fn(&Quantity<'_>) -> bool, _) = if ["limits.cpu", "requests.cpu"].contains(&resource) {
        (is_divisor_of_cpu, "1 or 1m")
    } else {
        (is_divisor_of_bytes, "1, 1k, 1M and so on to 1E, or 1Ki, 1Mi and so on to 1Ei")
    };
    let is_right = divisor.is_zero() || fits(&divisor);
    place
        .member("divisor")
        .refuse_if(!is_right, || SidecarFault::Malformed { value: divisor.as_str().to_owned(), form })
}

fn is_divisor_of_cpu(divisor: &Quantity<'_>) -> bool {
    [1_000_000, 1_000_000_000].contains(&divisor.nano())
}

/// A power of a thousand; or of 1024, where it is written as one.
fn is_divisor_of_bytes(divisor: &Quantity<'_>) -> bool {
    let is_power = |base: i128| (0..=6).any(|exponent| divisor.nano() == base.pow(exponent) * 1_000_000_000);
    is_power(1000) || (is_power(1024) && divisor.as_str().ends_with('i'))
}
