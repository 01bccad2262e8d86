//! `ports` (`validateContainerPorts`, `checkHostPortConflicts`).

use std::collections::HashSet;

use k8s_openapi::api::core::v1::ContainerPort;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::SidecarFault;
use super::place::{Checked, Place};
use super::syntax::PORT_NAME;

/// The highest number of a port.
const PORT_MAX: i64 = 65535;

pub(super) fn check(place: &Place, ports: Option<&Vec<ContainerPort>>) -> Checked {
    let (mut names, mut of_hosts) = (HashSet::new(), HashSet::new());
    for (place, port) in place.elements("ports", ports) {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            place.form("name", name, PORT_NAME)?;
            let twice = || SidecarFault::Twice { key: "name", value: name.to_owned() };
            place.member("name").refuse_if(!names.insert(name), twice)?;
        }
        check_number(&place, "containerPort", port.container_port)?;
        place.among_or_empty("protocol", port.protocol.as_deref(), &["TCP", "UDP", "SCTP"])?;
        let Some(host_port) = port.host_port.filter(|number| *number != 0) else { continue };
        place.within("hostPort", Some(host_port), 1..=PORT_MAX)?;
        let protocol = port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let of_host = (protocol, port.host_ip.as_deref().unwrap_or_default(), host_port);
        let twice = || SidecarFault::Twice { key: "hostPort", value: host_port.to_string() };
        place.member("hostPort").refuse_if(!of_hosts.insert(of_host), twice)?;
    }
    Ok(())
}

/// The ports of the host that a container takes, by protocol, address and number, each with its
/// place in the list.
pub(super) fn of_host(container: &Value) -> impl Iterator<Item = (usize, (&str, &str, i64))> {
    let ports = container["ports"].as_array().into_iter().flatten().enumerate();
    ports.filter_map(|(index, port)| {
        let number = port["hostPort"].as_i64().filter(|number| *number != 0)?;
        let protocol = port["protocol"].as_str().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        Some((index, (protocol, port["hostIP"].as_str().unwrap_or_default(), number)))
    })
}

/// A port by its number.
pub(super) fn check_number(place: &Place, key: &'static str, number: i32) -> Checked {
    let missing = || SidecarFault::Missing { key, what: "a number from 1 to 65535" };
    place.member(key).refuse_if(number == 0, missing)?;
    place.within(key, Some(number), 1..=PORT_MAX)
}

/// `port` of a handler, by number or by the name of one of the container's ports.
pub(super) fn check_named(place: &Place, port: &IntOrString) -> Checked {
    match port {
        IntOrString::Int(number) => check_number(place, "port", *number),
        IntOrString::String(name) => place.needs_form("port", name, PORT_NAME),
    }
}
