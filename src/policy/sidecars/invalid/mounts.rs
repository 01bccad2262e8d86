//! `volumeMounts`, `volumeDevices`, and the volumes that variables are read from
//! (`ValidateVolumeMounts`, `ValidateVolumeDevices`, `validateFileKeyRefVolumes`).

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};

use super::SidecarFault;
use super::place::{Checked, Place};
use super::syntax::{DESCENDING, NO_CLIMBING};

/// A container may use only volumes that come with it: a pod without one would be refused.
pub(in super::super) fn check_mounts(place: &Place, container: &Container, volumes: &[Volume]) -> Checked {
    let is_privileged = container.security_context.as_ref().is_some_and(|context| context.privileged == Some(true));
    let mut paths = HashSet::new();
    for (place, mount) in place.elements("volumeMounts", container.volume_mounts.as_ref()) {
        find(&place.member("name"), volumes, &mount.name)?;
        place.needs("mountPath", &mount.mount_path, "the path at which the container sees the volume")?;
        let twice = || SidecarFault::Twice { key: "mountPath", value: mount.mount_path.clone() };
        place.member("mountPath").refuse_if(!paths.insert(&*mount.mount_path), twice)?;
        check_mount(&place, mount, is_privileged)?;
    }
    check_devices(place, container, volumes, &mut paths)?;
    check_files_of_variables(place, container, volumes)
}

fn find<'v>(place: &Place, volumes: &'v [Volume], name: &str) -> Result<&'v Volume, super::InvalidSidecar> {
    let volume = volumes.iter().find(|volume| volume.name == name);
    volume.ok_or_else(|| place.fault(SidecarFault::NoVolume(name.to_owned())))
}

fn check_mount(place: &Place, mount: &VolumeMount, is_privileged: bool) -> Checked {
    let is_there = |path: Option<&String>| path.is_some_and(|path| !path.is_empty());
    place.at_most_one(&[
        ("subPath", is_there(mount.sub_path.as_ref())),
        ("subPathExpr", is_there(mount.sub_path_expr.as_ref())),
    ])?;
    place.form("subPath", mount.sub_path.as_deref().unwrap_or_default(), DESCENDING)?;
    place.form("subPathExpr", mount.sub_path_expr.as_deref().unwrap_or_default(), DESCENDING)?;
    let propagation = mount.mount_propagation.as_deref();
    place.among("mountPropagation", propagation, &["None", "HostToContainer", "Bidirectional"])?;
    let is_unprivileged = propagation == Some("Bidirectional") && !is_privileged;
    place
        .member("mountPropagation")
        .refuse_if(is_unprivileged, || SidecarFault::Needs("securityContext.privileged: true"))?;
    let recursive = mount.recursive_read_only.as_deref();
    place.among("recursiveReadOnly", recursive, &["Disabled", "IfPossible", "Enabled"])?;
    if recursive.is_none_or(|recursive| recursive == "Disabled") {
        return Ok(());
    }
    let place = place.member("recursiveReadOnly");
    place.refuse_if(mount.read_only != Some(true), || SidecarFault::Needs("readOnly: true"))?;
    let is_propagated = propagation.is_some_and(|propagation| propagation != "None");
    place.refuse_if(is_propagated, || SidecarFault::AtOddsWith("mountPropagation"))
}

fn check_devices<'c>(
    place: &Place,
    container: &'c Container,
    volumes: &[Volume],
    paths: &mut HashSet<&'c str>,
) -> Checked {
    let mounts = container.volume_mounts.as_ref().into_iter().flatten();
    let mut names: HashSet<&str> = mounts.map(|mount| &*mount.name).collect();
    for (place, device) in place.elements("volumeDevices", container.volume_devices.as_ref()) {
        let volume = find(&place.member("name"), volumes, &device.name)?;
        let is_block_device = volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
        let not_block = || SidecarFault::NotABlockDevice(device.name.clone());
        place.member("name").refuse_if(!is_block_device, not_block)?;
        let twice = || SidecarFault::Twice { key: "name", value: device.name.clone() };
        place.member("name").refuse_if(!names.insert(&device.name), twice)?;
        place.needs("devicePath", &device.device_path, "the path at which the container sees the device")?;
        place.form("devicePath", &device.device_path, NO_CLIMBING)?;
        let twice = || SidecarFault::Twice { key: "path", value: device.device_path.clone() };
        place.member("devicePath").refuse_if(!paths.insert(&device.device_path), twice)?;
    }
    Ok(())
}

fn check_files_of_variables(place: &Place, container: &Container, volumes: &[Volume]) -> Checked {
    for (place, variable) in place.elements("env", container.env.as_ref()) {
        let Some(file) = variable.value_from.as_ref().and_then(|source| source.file_key_ref.as_ref()) else { continue };
        let place = place.member("valueFrom").member("fileKeyRef").member("volumeName");
        let volume = find(&place, volumes, &file.volume_name)?;
        let another = || SidecarFault::NotAnEmptyDir(file.volume_name.clone());
        place.refuse_if(volume.empty_dir.is_none(), another)?;
    }
    Ok(())
}
