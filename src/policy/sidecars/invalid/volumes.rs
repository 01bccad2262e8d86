//! A volume (`validateVolumeSource`). One without a source is an emptyDir.

use k8s_openapi::api::core::v1::{CSIVolumeSource, EphemeralVolumeSource, HostPathVolumeSource, Volume};
use serde_json::Value;

use super::files::{check_files, check_items, check_mode};
use super::place::{Checked, Place};
use super::projected::check_projected;
use super::syntax::{ABSOLUTE, DRIVER, NO_CLIMBING, SUBDOMAIN};
use super::{SidecarFault, check_name};
use crate::pod::Quantity;

/// What a hostPath can be asked to be; the empty one asks for nothing.
const HOST_PATH_TYPES: [&str; 7] =
    ["DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];

/// How a volume can be shared (`supportedAccessModes`).
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// What volumes of other systems need: the key of the source, and those below it.
const NEEDED: [(&str, &[&str]); 18] = [
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("azureFile", &["secretName", "shareName"]),
    ("cephfs", &["monitors"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("gcePersistentDisk", &["pdName"]),
    ("gitRepo", &["repository"]),
    ("glusterfs", &["endpoints", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("rbd", &["monitors", "image"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("storageos", &["volumeName"]),
    ("vsphereVolume", &["volumePath"]),
    ("nfs", &["server", "path"]),
];

/// What the types of the API leave open; `json` is the same volume, as it is written.
pub(in super::super) fn check_volume(place: &Place, json: &Value, volume: &Volume) -> Checked {
    check_name(place, &volume.name)?;
    check_sources(place, json)?;
    check_needed(place, json)?;
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

fn check_needed(place: &Place, json: &Value) -> Checked {
    for (source, keys) in NEEDED {
        let Some(members) = json.get(source).filter(|members| !members.is_null()) else { continue };
        let place = place.member(source);
        for key in keys {
            let is_missing = match members.get(key) {
                Some(Value::String(text)) => text.is_empty(),
                Some(Value::Array(elements)) => elements.is_empty(),
                value => value.is_none_or(Value::is_null),
            };
            let missing = || SidecarFault::Missing { key, what: "where the volume is" };
            place.member(key).refuse_if(is_missing, missing)?;
        }
    }
    Ok(())
}

fn check_host_path(place: &Place, source: &HostPathVolumeSource) -> Checked {
    place.needs_form("path", &source.path, NO_CLIMBING)?;
    place.among_or_empty("type", source.type_.as_deref(), &HOST_PATH_TYPES)
}

fn check_other(place: &Place, volume: &Volume) -> Checked {
    if let Some(source) = &volume.persistent_volume_claim {
        let place = place.member("persistentVolumeClaim");
        place.needs("claimName", &source.claim_name, "the name of the PersistentVolumeClaim")?;
    }
    if let Some(source) = &volume.ephemeral {
        check_ephemeral(&place.member("ephemeral"), source)?;
    }
    if let Some(source) = &volume.nfs {
        place.member("nfs").form("path", &source.path, ABSOLUTE)?;
    }
    if let Some(CSIVolumeSource { driver, node_publish_secret_ref, .. }) = &volume.csi {
        let place = place.member("csi");
        place.needs_form("driver", driver, DRIVER)?;
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
    let is_unknown = |mode: &&String| !ACCESS_MODES.contains(&mode.as_str());
    if let Some(mode) = modes.and_then(|modes| modes.iter().find(is_unknown)) {
        let fault = SidecarFault::Unknown { key: "access mode", value: mode.clone(), known: &ACCESS_MODES };
        return Err(place.member("accessModes").fault(fault));
    }
    place.among("volumeMode", template.spec.volume_mode.as_deref(), &["Filesystem", "Block"])?;
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
