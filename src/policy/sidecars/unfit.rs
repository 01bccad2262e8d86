//! What keeps a sidecar out of a pod: the API server would refuse them together, and nothing else
//! would mean the same (`k8s.io/kubernetes/pkg/apis/core/validation`).
//!
//! - Ports of the node: no two of `spec.containers` may take the same (`checkHostPortConflicts`), and
//!   in the node's network each is the `containerPort` (`validatePodHostNetworkDeps`).
//! - `volumeDevices` in a pod of `hostUsers: false` (`validateHostUsers`), and `procMount: Unmasked` in
//!   any other (`ValidateSecurityContext`).
//! - Of the containers of a pod all are `HostProcess` or none (`validateWindowsHostProcessPod`).

use std::borrow::Cow;

use super::super::privileged::is_host_process;
use super::super::{Field, Found, Subject, Violation};
use super::{Sidecar, Sidecars};
use crate::pod::{Container, ContainerList, PodSpec};

/// The member at fault, what is found there, and what the pod's author can do about it.
type Reason = (&'static str, String, String);

/// Why a pod cannot have the sidecar beside `others`, sidecars that it is about to get.
pub(super) fn unfit<'a>(sidecar: &'a Sidecar, pod: &PodSpec<'_>, others: &[&Sidecar]) -> Option<Violation<'a>> {
    let (field, found, why) = of_ports(sidecar, pod, others)
        .or_else(|| of_devices(sidecar, pod))
        .or_else(|| of_proc_mount(sidecar, pod))
        .or_else(|| of_host_process(sidecar, pod))?;
    Some(Violation {
        policy: Sidecars::NAME,
        subject: Subject::Sidecar { list: sidecar.list, name: sidecar.name() },
        field: Field::Own(field),
        found: Found::Value(Cow::Owned(found)),
        statement: format!(
            "comes from mutations.sidecars of podgate's configuration and cannot be in this pod: {why}, or have the \
             sidecar changed there"
        ),
    })
}

fn of_ports(sidecar: &Sidecar, pod: &PodSpec<'_>, others: &[&Sidecar]) -> Option<Reason> {
    if sidecar.list != ContainerList::Containers {
        return None;
    }
    let others = others.iter().filter(|other| other.list == sidecar.list).map(|other| &other.base.view);
    let others: Vec<&Container<'_>> = pod.containers.iter().chain(others).collect();
    sidecar.base.view.ports.iter().find_map(|port| {
        let on_node = port.on_node(pod.host_network)?;
        let number = on_node.number;
        let why = if pod.host_network && number != port.container_port {
            format!(
                "in the node's network its hostPort {number} would have to be its containerPort {}: remove hostNetwork",
                port.container_port
            )
        } else {
            let takes_it = |other: &&&Container<'_>| {
                other.ports.iter().filter_map(|port| port.on_node(pod.host_network)).any(|taken| taken == on_node)
            };
            let other = others.iter().find(takes_it)?;
            format!(
                "container {} takes port {number}/{} of the node, too: give that one another port",
                super::super::Quoted(&other.name),
                on_node.protocol
            )
        };
        Some(("ports", format!("{number}/{}", on_node.protocol), why))
    })
}

fn of_devices(sidecar: &Sidecar, pod: &PodSpec<'_>) -> Option<Reason> {
    let has_devices = sidecar.base.json["volumeDevices"].as_array().is_some_and(|devices| !devices.is_empty());
    (has_devices && pod.host_users == Some(false)).then(|| {
        let why = "a pod of hostUsers: false has no volumeDevices: remove hostUsers".to_owned();
        ("volumeDevices", "false".to_owned(), why)
    })
}

fn of_proc_mount(sidecar: &Sidecar, pod: &PodSpec<'_>) -> Option<Reason> {
    (needs_own_users(sidecar) && pod.host_users != Some(false)).then(|| {
        let why = "procMount: Unmasked takes a pod of hostUsers: false: set hostUsers to false".to_owned();
        ("securityContext.procMount", "Unmasked".to_owned(), why)
    })
}

/// Whether it can only be in a pod of `hostUsers: false`.
pub(super) fn needs_own_users(sidecar: &Sidecar) -> bool {
    sidecar.base.json["securityContext"]["procMount"] == "Unmasked"
}

fn of_host_process(sidecar: &Sidecar, pod: &PodSpec<'_>) -> Option<Reason> {
    let of_all = is_host_process(pod.security_context.as_ref());
    let is_one = host_process(sidecar).unwrap_or(of_all);
    let are = of_all || pod.all_containers().any(|(_, _, own)| is_host_process(own.security_context.as_ref()));
    let why = match (is_one, are) {
        (true, false) => "it is a HostProcess container, as all of a pod have to be or none: make the others such",
        (false, true) => "it is no HostProcess container, as all of a pod have to be or none: remove hostProcess",
        _ => return None,
    };
    Some(("securityContext.windowsOptions.hostProcess", is_one.to_string(), why.to_owned()))
}

/// What it says itself of `hostProcess`.
pub(super) fn host_process(sidecar: &Sidecar) -> Option<bool> {
    sidecar.base.json["securityContext"]["windowsOptions"]["hostProcess"].as_bool()
}
