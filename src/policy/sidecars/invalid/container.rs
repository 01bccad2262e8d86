//! A container (`validateContainers`, `validateInitContainers`), but for what it mounts.

use k8s_openapi::api::core::v1::Container;

use super::super::Os;
use super::place::{Checked, Place};
use super::{SidecarFault, check_name, environment, handlers, ports, resources, restarts, security};

/// What the types of the API leave open.
pub(in super::super) fn check_container(place: &Place, native: bool, os: Os, container: &Container) -> Checked {
    check_name(place, &container.name)?;
    check_image(place, container.image.as_deref().unwrap_or_default())?;
    restarts::check(place, native, container)?;
    security::check(&place.member("securityContext"), os, container.security_context.as_ref())?;
    place.among_or_empty(
        "imagePullPolicy",
        container.image_pull_policy.as_deref(),
        &["Always", "IfNotPresent", "Never"],
    )?;
    place.among_or_empty(
        "terminationMessagePolicy",
        container.termination_message_policy.as_deref(),
        &["File", "FallbackToLogsOnError"],
    )?;
    ports::check(place, container.ports.as_ref())?;
    environment::check(place, container)?;
    resources::check(&place.member("resources"), container.resources.as_ref())?;
    handlers::check(place, container)
}

fn check_image(place: &Place, image: &str) -> Checked {
    let place = place.member("image");
    place.refuse_if(image.is_empty(), || SidecarFault::NoImage)?;
    place.refuse_if(image.trim() != image, || SidecarFault::Malformed {
        value: image.to_owned(),
        form: "an image without white space around it",
    })
}
