//! A projected volume (`validateProjectedVolumeSource`).

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{PodCertificateProjection, ProjectedVolumeSource, VolumeProjection};

use super::SidecarFault;
use super::files::{check_files, check_items, check_mode};
use super::place::{Checked, Place};
use super::syntax::FILE;

/// The shortest and the longest time of a token, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// The kinds of keys that `podCertificate` knows.
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// What is to be in the volume; it may be nothing.
pub(super) fn check_projected(place: &Place, source: &ProjectedVolumeSource) -> Checked {
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
    if let Some(bundle) = &source.cluster_trust_bundle {
        let place = place.member("clusterTrustBundle");
        place.exactly_one(&[("name", bundle.name.is_some()), ("signerName", bundle.signer_name.is_some())])?;
        place.needs_form("path", &bundle.path, FILE)?;
    }
    let certificate = source.pod_certificate.as_ref();
    certificate.map_or(Ok(()), |certificate| check_certificate(&place.member("podCertificate"), certificate))
}

fn check_certificate(place: &Place, certificate: &PodCertificateProjection) -> Checked {
    place.needs("signerName", &certificate.signer_name, "the name of who signs, such as example.com/agents")?;
    place.among("keyType", Some(&certificate.key_type), &KEY_TYPES)?;
    let paths = [
        ("credentialBundlePath", certificate.credential_bundle_path.as_deref().unwrap_or_default()),
        ("keyPath", certificate.key_path.as_deref().unwrap_or_default()),
        ("certificateChainPath", certificate.certificate_chain_path.as_deref().unwrap_or_default()),
    ];
    for (key, path) in paths {
        place.form(key, path, FILE)?;
    }
    let are_missing = paths.iter().all(|(_, path)| path.is_empty());
    place.refuse_if(are_missing, || SidecarFault::NoneOf(paths.map(|(key, _)| key).to_vec()))
}

/// The paths of the files of a source, each with where it stands; those of the other sources are left to the API server.
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
