//! Sidecars that no pod could have, as the configuration file is read: what the API server refuses
//! in every pod (`k8s.io/kubernetes/pkg/apis/core/validation`, `ValidatePodSpec`), after its
//! defaults. What it refuses only in some pods, or only with some of its feature gates, is taken.

mod container;
mod environment;
mod fault;
mod files;
mod handlers;
mod mounts;
mod place;
mod ports;
mod projected;
mod resources;
mod restarts;
mod security;
mod syntax;
mod volumes;

use std::collections::{HashMap, HashSet};

pub use fault::{InvalidSidecar, SidecarFault};

pub(super) use self::container::check_container;
pub(super) use self::mounts::check_mounts;
use self::place::Checked;
pub(super) use self::place::Place;
pub(super) use self::syntax::{is_label_value, is_qualified_name};
pub(super) use self::volumes::check_volume;
use super::Sidecar;
use crate::pod::ContainerList;

/// The name of a container or volume.
fn check_name(place: &Place, name: &str) -> Checked {
    let place = place.member("name");
    place.refuse_if(name.is_empty(), || SidecarFault::Unnamed)?;
    place.refuse_if(!syntax::is_label(name), || SidecarFault::NotAName(name.to_owned()))
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
    sidecars.iter().enumerate().find_map(|(index, sidecar)| host_port_twice(&sidecars[..index], index, sidecar))
}

/// A port of the host that a sidecar takes beside one before it. Init containers are asked one by
/// one, even those that keep running.
fn host_port_twice(before: &[Sidecar], index: usize, sidecar: &Sidecar) -> Option<InvalidSidecar> {
    let is_beside = |other: &&Sidecar| {
        [sidecar, other].iter().all(|sidecar| sidecar.list == ContainerList::Containers)
            && (sidecar.is_wherever(other) || other.is_wherever(sidecar))
    };
    before.iter().filter(is_beside).find_map(|other| {
        let taken: HashSet<_> = ports::of_host(&other.base.json).map(|(_, port)| port).collect();
        let (at, (.., port)) = ports::of_host(&sidecar.base.json).find(|(_, port)| taken.contains(port))?;
        let place = Place::new(index).member("container").member("ports").element(at).member("hostPort");
        Some(place.fault(SidecarFault::HostPortTwice { port, other: other.name().to_owned() }))
    })
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
    fn sidecars_that_are_always_together_take_different_ports_of_the_host() {
        let proxy = |name: &str, port: &str, more: &str| {
            format!("    - {{ native: false, container: {{ name: {name}, image: \"a:1\", ports: [{port}] }}{more} }}\n")
        };
        let (tcp, udp) = ("{ containerPort: 1, hostPort: 1 }", "{ containerPort: 1, hostPort: 1, protocol: UDP }");
        let labelled = ", selector: { matchLabels: { a: b } }";
        let said = "the sidecar a takes port 1 of the host too, and is in the same pods";
        for more in ["", labelled] {
            let text = proxy("a", tcp, "") + &proxy("b", tcp, more);
            assert_faults(&[(&text, "line 4, column 98", said)]);
        }
        for [one, other] in [
            [proxy("a", tcp, ""), proxy("b", udp, "")],
            [proxy("a", tcp, ", namespaces: [a]"), proxy("b", tcp, labelled)],
            [proxy("a", tcp, ""), proxy("b", tcp, ", os: windows")],
            [proxy("a", tcp, ""), proxy("b", tcp, "").replace("native: false, ", "")],
        ] {
            let text = format!("mutations:\n  sidecars:\n{one}{other}");
            parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        }
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
