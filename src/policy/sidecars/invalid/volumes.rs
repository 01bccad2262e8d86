//! A volume (`validateVolumeSource`). One without a source is an emptyDir.

use k8s_openapi::api::core::v1::{
    CSIVolumeSource, EphemeralVolumeSource, HostPathVolumeSource, NFSVolumeSource, ProjectedVolumeSource, Volume,
    VolumeProjection,
};
use serde_json::Value;
use std::collections::HashSet;

use super::files::{check_files, check_items, check_mode};
use super::place::{Checked, Place};
use super::syntax::{ABSOLUTE, FILE, NO_CLIMBING, SUBDOMAIN};
use super::{SidecarFault, check_name};
use crate::pod::Quantity;

/// What a hostPath can be asked to be; the empty one asks for nothing.
const HOST_PATH_TYPES: [&str; 7] =
    ["DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];

/// The shortest and the longest time of a token, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// What the types of the API leave open; `json` is the same volume, as it is written.
pub(in super::super) fn check_volume(place: &Place, json: &Value, volume: &Volume) -> Checked {
    check_name(place, &volume.name)?;
    check_sources(place, json)?;
    if let Some(size) = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref()) {
        let is_negative = Quantity::parse(&*size.0).is_ok_and(|size| size.nano() < 0);
        let place = place.member("emptyDir").member("sizeLimit");
        place.refuse_if(is_negative, || SidecarFault::Negative(size.0.clone()))?;
    }
    if let Some(source) = &volume.host_path {
        check_host_path(&place.member("hostPath"), source)?;
    }
    if let Some(source) = &volume.config_map {
        let place = place.member("configMap");
        place.needs("name", &source.name, "the name of the ConfigMap")?;
        check_mode(&place, "defaultMode", source.default_mode)?;
        check_items(&place, source.items.as_ref())?;
    }
    if let Some(source) = &volume.secret {
        let place = place.member("secret");
        place.needs("secretName", source.secret_name.as_deref().unwrap_or_default(), "the name of the Secret")?;
        check_mode(&place, "defaultMode", source.default_mode)?;
        check_items(&place, source.items.as_ref())?;
    }
    if let Some(source) = &volume.downward_api {
        let place = place.member("downwardAPI");
        check_mode(&place, "defaultMode", source.default_mode)?;
        check_files(&place, source.items.as_ref())?;
    }
    if let Some(source) = &volume.projected {
        check_projected(&place.member("projected"), source)?;
    }
    check_other(place, volume)
}

/// A volume has one source.
fn check_sources(place: &Place, json: &Value) -> Checked {
    let members = json.as_object().into_iter().flatten();
    let mut sources = members.filter(|(key, value)| *key != "name" && !value.is_null()).map(|(key, _)| key);
    match (sources.next(), sources.next()) {
        (Some(first), Some(second)) => Err(place.member(second).fault(SidecarFault::Beside(first.clone()))),
        _ => Ok(()),
    }
}

fn check_host_path(place: &Place, source: &HostPathVolumeSource) -> Checked {
    place.needs_form("path", &source.path, NO_CLIMBING)?;
    place.among_or_empty("type", source.type_.as_deref(), &HOST_PATH_TYPES)
}

/// Volumes of which the API server knows no more than what they must have.
fn check_other(place: &Place, volume: &Volume) -> Checked {
    if let Some(source) = &volume.persistent_volume_claim {
        let place = place.member("persistentVolumeClaim");
        place.needs("claimName", &source.claim_name, "the name of the PersistentVolumeClaim")?;
    }
    if let Some(source) = &volume.ephemeral {
        check_ephemeral(&place.member("ephemeral"), source)?;
    }
    if let Some(NFSVolumeSource { server, path, .. }) = &volume.nfs {
        let place = place.member("nfs");
        place.needs("server", server, "the name of the server")?;
        place.needs_form("path", path, ABSOLUTE)?;
    }
    if let Some(CSIVolumeSource { driver, node_publish_secret_ref, .. }) = &volume.csi {
        let place = place.member("csi");
        place.needs("driver", driver, "the name of the driver")?;
        if let Some(secret) = node_publish_secret_ref {
            place.member("nodePublishSecretRef").needs_form("name", &secret.name, SUBDOMAIN)?;
        }
    }
    if let Some(source) = &volume.image {
        let place = place.member("image");
        place.needs("reference", source.reference.as_deref().unwrap_or_default(), "the image")?;
        place.among_or_empty("pullPolicy", source.pull_policy.as_deref(), &["Always", "IfNotPresent", "Never"])?;
    }
    Ok(())
}

fn check_ephemeral(place: &Place, source: &EphemeralVolumeSource) -> Checked {
    let Some(template) = &source.volume_claim_template else {
        let what = "the spec of the PersistentVolumeClaim that each pod gets";
        return Err(place.fault(SidecarFault::Missing { key: "volumeClaimTemplate", what }));
    };
    let place = place.member("volumeClaimTemplate").member("spec");
    let modes = template.spec.access_modes.as_ref();
    let no_modes = || SidecarFault::Missing { key: "accessModes", what: "at least one, such as ReadWriteOnce" };
    place.member("accessModes").refuse_if(modes.is_none_or(Vec::is_empty), no_modes)?;
    let requests = template.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let place = place.member("resources").member("requests");
    let Some(storage) = requests.and_then(|requests| requests.get("storage")) else {
        return Err(place.fault(SidecarFault::Missing { key: "storage", what: "the size, such as 1Gi" }));
    };
    let is_positive = Quantity::parse(&*storage.0).is_ok_and(|storage| storage.is_positive());
    place.member("storage").refuse_if(!is_positive, || SidecarFault::Malformed {
        value: storage.0.clone(),
        form: "a size above zero, such as 1Gi",
    })
}

fn check_projected(place: &Place, source: &ProjectedVolumeSource) -> Checked {
    check_mode(place, "defaultMode", source.default_mode)?;
    let mut paths = HashSet::new();
    for (place, source) in place.elements("sources", source.sources.as_ref()) {
        check_projection(&place, source)?;
        for (place, path) in paths_of(&place, source) {
            let twice = || SidecarFault::Twice { key: "path", value: path.to_owned() };
            place.member("path").refuse_if(!paths.insert(path), twice)?;
        }
    }
    Ok(())
}

fn check_projection(place: &Place, source: &VolumeProjection) -> Checked {
    place.at_most_one(&[
        ("secret", source.secret.is_some()),
        ("configMap", source.config_map.is_some()),
        ("downwardAPI", source.downward_api.is_some()),
        ("serviceAccountToken", source.service_account_token.is_some()),
        ("clusterTrustBundle", source.cluster_trust_bundle.is_some()),
        ("podCertificate", source.pod_certificate.is_some()),
    ])?;
    if let Some(secret) = &source.secret {
        let place = place.member("secret");
        place.needs("name", &secret.name, "the name of the Secret")?;
        check_items(&place, secret.items.as_ref())?;
    }
    if let Some(config_map) = &source.config_map {
        let place = place.member("configMap");
        place.needs("name", &config_map.name, "the name of the ConfigMap")?;
        check_items(&place, config_map.items.as_ref())?;
    }
    if let Some(downward_api) = &source.downward_api {
        check_files(&place.member("downwardAPI"), downward_api.items.as_ref())?;
    }
    if let Some(token) = &source.service_account_token {
        let place = place.member("serviceAccountToken");
        place.within("expirationSeconds", token.expiration_seconds, TOKEN_SECONDS)?;
        place.needs_form("path", &token.path, FILE)?;
    }
    Ok(())
}

/// The paths of the files of a source, each with where it stands; that of a token may be taken.
fn paths_of<'s>(place: &Place, source: &'s VolumeProjection) -> Vec<(Place, &'s str)> {
    let secret = source.secret.as_ref().and_then(|secret| secret.items.as_ref());
    let config_map = source.config_map.as_ref().and_then(|config_map| config_map.items.as_ref());
    let downward_api = source.downward_api.as_ref().and_then(|downward_api| downward_api.items.as_ref());
    let of_secret = place.member("secret").elements("items", secret).map(|(place, item)| (place, &*item.path));
    let of_config_map = place.member("configMap").elements("items", config_map);
    let of_config_map = of_config_map.map(|(place, item)| (place, &*item.path));
    let of_pod = place.member("downwardAPI").elements("items", downward_api);
    of_secret.chain(of_config_map).chain(of_pod.map(|(place, file)| (place, &*file.path))).collect()
}
