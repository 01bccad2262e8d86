//! Sidecars that no pod could have, as the configuration file is read.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Form, Os, Sidecar};
use crate::pod::Volume;

/// The most characters of a name (RFC 1123, section 2.1, `DNS_LABEL`).
const NAME_LENGTH_MAX: usize = 63;

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

/// A sidecar that no pod could have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct InvalidSidecar {
    /// The keys that lead to the fault, from the root of the configuration file; a place in a list
    /// counts from 0.
    pub path: Vec<String>,
    /// What is wrong.
    pub fault: SidecarFault,
}

/// Why no pod could have a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SidecarFault {
    /// A key that the API does not have, or a value of another type.
    #[error("{0}")]
    Misfit(String),
    /// A container or volume without a name.
    #[error("there is no name: write one such as log-agent")]
    Unnamed,
    /// A name that the API server refuses.
    #[error(
        "{0:?} is no name of a container or volume: write at most 63 lower-case letters, digits and -, such as log-agent"
    )]
    NotAName(String),
    /// A container without an image.
    #[error("there is no image: name one with a version, such as registry.example.com/log-agent:1.4.2")]
    NoImage,
    /// `restartPolicy` of a native sidecar.
    #[error("a native sidecar has restartPolicy: Always: remove this, or set native: false beside the container")]
    RestartPolicy,
    /// A field that the API server refuses for the other operating system.
    #[error("the API server refuses {field} in a pod of os {os}: remove it, or name the other os beside the container")]
    OfOtherOs {
        /// The field of `securityContext`.
        field: &'static str,
        /// The operating system that the sidecar is for.
        os: &'static str,
    },
    /// A mount of a volume that may not be there.
    #[error("there is no volume {0:?} among the sidecar's volumes: add it there; one that a pod has alike is shared")]
    NoVolume(String),
    /// Two containers of one name.
    #[error("the container {0:?} is here twice: keep one, or give one another name")]
    ContainerTwice(String),
    /// Two volumes of one name.
    #[error("the volume {0:?} is here twice, and not alike: make both the same, or give one another name")]
    VolumeTwice(String),
    /// A container or volume that a validation denies in every pod.
    #[error("no pod could have it, for validations.{policy} denies it: it {statement}")]
    Denied {
        /// The validation.
        policy: &'static str,
        /// What it says of the container or volume.
        statement: String,
    },
}

/// A place in the configuration of a sidecar.
#[derive(Debug, Clone)]
pub(super) struct Place(Vec<String>);

impl Place {
    /// The sidecar of that index.
    pub(super) fn new(index: usize) -> Self {
        Self(vec!["mutations".to_owned(), "sidecars".to_owned(), index.to_string()])
    }

    pub(super) fn member(&self, key: &str) -> Self {
        let Self(mut path) = self.clone();
        path.push(key.to_owned());
        Self(path)
    }

    pub(super) fn fault(&self, fault: SidecarFault) -> InvalidSidecar {
        InvalidSidecar { path: self.0.clone(), fault }
    }

    pub(super) fn misfit(&self, (path, what): (Vec<String>, String)) -> InvalidSidecar {
        let place = path.iter().fold(self.clone(), |place, key| place.member(key));
        place.fault(SidecarFault::Misfit(what))
    }

    pub(super) fn unreadable(&self, error: &serde_json::Error) -> InvalidSidecar {
        self.fault(SidecarFault::Misfit(error.to_string()))
    }
}

/// What the types of the API leave open.
pub(super) fn check_container(place: &Place, native: bool, os: Os, container: &Value) -> Result<(), InvalidSidecar> {
    check_name(place, container)?;
    if container["image"].as_str().unwrap_or_default().is_empty() {
        return Err(place.member("image").fault(SidecarFault::NoImage));
    }
    if native && !container["restartPolicy"].is_null() && container["restartPolicy"] != "Always" {
        return Err(place.member("restartPolicy").fault(SidecarFault::RestartPolicy));
    }
    let (os, refused) = match os {
        Os::Linux => ("linux", &OF_WINDOWS[..]),
        Os::Windows => ("windows", &OF_LINUX[..]),
    };
    match refused.iter().find(|field| !container["securityContext"][**field].is_null()) {
        Some(field) => Err(place.member("securityContext").member(field).fault(SidecarFault::OfOtherOs { field, os })),
        None => Ok(()),
    }
}

/// The name of a container or volume.
pub(super) fn check_name(place: &Place, part: &Value) -> Result<(), InvalidSidecar> {
    let place = place.member("name");
    let name = part["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(place.fault(SidecarFault::Unnamed));
    }
    let is_name = name.len() <= NAME_LENGTH_MAX
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_name { Ok(()) } else { Err(place.fault(SidecarFault::NotAName(name.to_owned()))) }
}

/// A container may mount only volumes that come with it: a pod without one would be refused.
pub(super) fn check_mounts(
    place: &Place,
    container: &Value,
    volumes: &[Form<Volume<'static>>],
) -> Result<(), InvalidSidecar> {
    for list in ["volumeMounts", "volumeDevices"] {
        let mounts = container[list].as_array().into_iter().flatten();
        for (index, mount) in mounts.enumerate() {
            let name = mount["name"].as_str().unwrap_or_default();
            if !volumes.iter().any(|volume| &*volume.view.name == name) {
                let place = place.member(list).member(&index.to_string()).member("name");
                return Err(place.fault(SidecarFault::NoVolume(name.to_owned())));
            }
        }
    }
    Ok(())
}

/// Sidecars that could not be in one pod. Those for other operating systems never are.
pub(super) fn at_odds(sidecars: &[Sidecar]) -> Option<InvalidSidecar> {
    let mut containers = HashSet::new();
    let mut volumes = HashMap::new();
    for (index, sidecar) in sidecars.iter().enumerate() {
        let place = Place::new(index);
        if !containers.insert((sidecar.os, sidecar.name())) {
            let fault = SidecarFault::ContainerTwice(sidecar.name().to_owned());
            return Some(place.member("container").member("name").fault(fault));
        }
        for (index, volume) in sidecar.volumes.iter().enumerate() {
            let known = volumes.entry((sidecar.os, &*volume.view.name)).or_insert(volume);
            if *known != volume {
                let place = place.member("volumes").member(&index.to_string());
                return Some(place.fault(SidecarFault::VolumeTwice(volume.view.name.to_string())));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    /// Each: what stands in the list of sidecars, where its fault is, and what is said of it.
    fn assert_faults(faults: &[(&str, &str, &str)]) {
        for (text, place, said) in faults {
            let text = text.replace("CONTAINER", "{ name: a, image: \"a:1\" }");
            let text = format!("mutations:\n  sidecars:\n{text}");
            let Err(fault) = parse(&text) else { panic!("{text} was taken") };
            let fault = fault.to_string();
            assert!(fault.starts_with(&format!("{place}: ")), "{text}: {fault}");
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }

    #[test]
    fn a_container_or_volume_that_is_none_is_named_with_its_place() {
        assert_faults(&[
            ("    - { volumes: [] }\n", "line 3, column 9", "missing field `container`"),
            ("    - container: { image: \"a:1\" }\n", "line 3, column 18", "there is no name: write one"),
            ("    - container:\n        name: a\n", "line 3, column 7", "there is no image: name one"),
            ("    - container: { name: A, image: \"a:1\" }\n", "line 3, column 26", "\"A\" is no name"),
            (
                "    - container:\n        name: a\n        image: a:1\n        ports:\n          - hostport: 1\n",
                "line 7, column 23",
                "there is no key \"hostport\" here: did you mean \"hostPort\"? the keys are containerPort, hostIP, hostPort",
            ),
            (
                "    - container:\n        name: a\n        image: a:1\n        volumeMount:\n          - name: b\n",
                "line 6, column 9",
                "there is no key \"volumeMount\" here: did you mean \"volumeMounts\"?",
            ),
            (
                "    - container: { name: a, image: \"a:1\", tty: \"yes\" }\n",
                "line 3, column 48",
                "invalid type: string \"yes\", expected a boolean",
            ),
            (
                "    - container: { name: a, image: \"a:1\", resources: { limits: { cpu: 1x } } }\n",
                "line 3, column 71",
                "\"1x\" is not a quantity",
            ),
            (
                "    - container: { name: a, image: \"a:1\", restartPolicy: OnFailure }\n",
                "line 3, column 58",
                "a native sidecar has restartPolicy: Always",
            ),
            (
                "    - container: { name: a, image: \"a:1\", volumeMounts: [{ name: b, mountPath: /b }] }\n",
                "line 3, column 66",
                "there is no volume \"b\" among the sidecar's volumes",
            ),
            (
                "    - os: windows\n      container: { name: a, image: \"a:1\", securityContext: { runAsUser: 1 } }\n",
                "line 4, column 73",
                "the API server refuses runAsUser in a pod of os windows",
            ),
            (
                "    - container: { name: a, image: \"a:1\", securityContext: { windowsOptions: {} } }\n",
                "line 3, column 78",
                "the API server refuses windowsOptions in a pod of os linux",
            ),
            (
                "    - container: CONTAINER\n      volumes: [{ name: b, emptyDirr: {} }]\n",
                "line 4, column 39",
                "there is no key \"emptyDirr\" here: did you mean \"emptyDir\"?",
            ),
            (
                "    - container: CONTAINER\n      volumes: [{ emptyDir: {} }]\n",
                "line 4, column 17",
                "there is no name",
            ),
            (
                "    - container: CONTAINER\n    - container: CONTAINER\n",
                "line 4, column 26",
                "the container \"a\" is here twice",
            ),
            (
                "    - container: CONTAINER\n      volumes: [{ name: c, emptyDir: {} }]\n    - container: { name: b, image: \"a:1\" }\n      \
                 volumes: [{ name: c, secret: { secretName: c } }]\n",
                "line 6, column 17",
                "the volume \"c\" is here twice, and not alike",
            ),
        ]);
    }

    #[test]
    fn a_sidecar_that_every_pod_is_denied_for_is_named_with_its_place() {
        assert_faults(&[
            (
                "    - container: { name: a, image: \"a:1\", securityContext: { privileged: true } }\n",
                "line 3, column 74",
                "no pod could have it, for validations.privileged denies it: it is privileged: remove it",
            ),
            (
                "    - container: { name: a, image: \"a:1\", securityContext: { runAsUser: 0 } }\n",
                "line 3, column 73",
                "no pod could have it, for validations.rootUser denies it: it runs as 0",
            ),
            (
                "    - container: { name: a, image: a }\n",
                "line 3, column 36",
                "no pod could have it, for validations.imageTag denies it: it is \"a\", which has no tag",
            ),
            (
                "    - container: CONTAINER\n      volumes: [{ name: logs, hostPath: { path: /var/log } }]\n",
                "line 4, column 49",
                "no pod could have it, for validations.hostPath denies it: it mounts \"/var/log\"",
            ),
            (
                "    - container: { name: a, image: \"a:1\", ports: [{ containerPort: 1, hostPort: 1 }] }\nvalidations:\n  \
                 hostPorts: { action: deny }\n",
                "line 3, column 81",
                "no pod could have it, for validations.hostPorts denies it",
            ),
        ]);
    }

    #[test]
    fn a_key_that_is_none_is_named_with_its_place() {
        assert_faults(&[
            ("    - container: CONTAINER\n      namespace: [a]\n", "line 4, column 7", "did you mean \"namespaces\"?"),
            ("    - container: CONTAINER\n      position: first\n", "line 4, column 17", "before, after"),
            ("    - container: CONTAINER\n      os: mac\n", "line 4, column 11", "linux, windows"),
            (
                "    - container: CONTAINER\n      selector: { matchExpressions: [{ key: a, operator: In }] }\n",
                "line 4, column 38",
                "there are no values",
            ),
            (
                "    - container: CONTAINER\n      selector: { matchLabel: {} }\n",
                "line 4, column 19",
                "did you mean \"matchLabels\"?",
            ),
            ("    - container: CONTAINER\n      exclude: { images: [a] }\n", "line 4, column 18", "namespaces, users"),
            (
                "    - container: CONTAINER\n      namespaces: [Team-a]\n",
                "line 4, column 20",
                "\"Team-a\" matches no namespace",
            ),
        ]);
    }

    #[test]
    fn a_sidecar_that_some_pod_could_have_is_taken() {
        let privileged = "container: { name: a, image: \"a:1\", securityContext: { privileged: true } }";
        for (sidecar, more) in [
            ("container: { name: a, image: \"a:1\", command: null, args: [] }", ""),
            (privileged, "validations: { privileged: { action: warn } }\n"),
            (privileged, "validations: { privileged: { exclude: { namespaces: [ops] } } }\n"),
            (privileged, "validations: { privileged: { exclude: { containers: [a] } } }\n"),
            (privileged, "validations: { privileged: { exclude: { images: [{ name: a, until: 2020-01-01 }] } } }\n"),
            ("container: { name: a, image: a }", "  images: { pins: { a: \"1\" } }\n"),
            (
                "container: { name: a, image: \"a:1\", securityContext: { runAsUser: 0 } }",
                "  securityContext: { exclude: { groups: [ops] } }\n",
            ),
        ] {
            let text = format!("mutations:\n  sidecars:\n    - {sidecar}\n{more}");
            parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        }
        let two = "mutations:\n  sidecars:\n    - { os: linux, container: { name: a, image: \"a:1\" } }\n    \
                   - { os: windows, container: { name: a, image: \"a:2\" } }\n";
        parse(two).unwrap_or_else(|fault| panic!("{fault}"));
    }
}
