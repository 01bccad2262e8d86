//! Probes and `lifecycle` (`validateProbe`, `validateLifecycle`).

use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, TCPSocketAction,
};

use super::SidecarFault;
use super::place::{Checked, Place};
use super::ports::{check_named, check_number};
use super::syntax::HEADER;

/// Numbers that are not below zero; zero stands for the API server's default.
const FROM_ZERO: std::ops::RangeInclusive<i64> = 0..=i32::MAX as i64;

pub(super) fn check(place: &Place, container: &Container) -> Checked {
    if let Some(lifecycle) = &container.lifecycle {
        check_lifecycle(&place.member("lifecycle"), lifecycle)?;
    }
    if let Some(probe) = &container.liveness_probe {
        check_deciding_probe(&place.member("livenessProbe"), probe)?;
    }
    if let Some(probe) = &container.readiness_probe {
        let place = place.member("readinessProbe");
        check_probe(&place, probe)?;
        let is_set = probe.termination_grace_period_seconds.is_some();
        place.member("terminationGracePeriodSeconds").refuse_if(is_set, || {
            SidecarFault::OutOfPlace("a container that is not ready is not ended, so that there is nothing to wait for")
        })?;
    }
    if let Some(probe) = &container.startup_probe {
        check_deciding_probe(&place.member("startupProbe"), probe)?;
    }
    Ok(())
}

/// A probe that ends the container: one success is enough.
fn check_deciding_probe(place: &Place, probe: &Probe) -> Checked {
    check_probe(place, probe)?;
    let times = probe.success_threshold.filter(|times| *times != 0);
    place.within("successThreshold", times, 1..=1)
}

fn check_probe(place: &Place, probe: &Probe) -> Checked {
    place.exactly_one(&[
        ("exec", probe.exec.is_some()),
        ("httpGet", probe.http_get.is_some()),
        ("tcpSocket", probe.tcp_socket.is_some()),
        ("grpc", probe.grpc.is_some()),
    ])?;
    check_actions(place, probe.exec.as_ref(), probe.http_get.as_ref(), probe.tcp_socket.as_ref())?;
    if let Some(grpc) = &probe.grpc {
        check_number(&place.member("grpc"), "port", grpc.port)?;
    }
    place.within("initialDelaySeconds", probe.initial_delay_seconds, FROM_ZERO)?;
    place.within("timeoutSeconds", probe.timeout_seconds, FROM_ZERO)?;
    place.within("periodSeconds", probe.period_seconds, FROM_ZERO)?;
    place.within("successThreshold", probe.success_threshold, FROM_ZERO)?;
    place.within("failureThreshold", probe.failure_threshold, FROM_ZERO)?;
    place.within("terminationGracePeriodSeconds", probe.termination_grace_period_seconds, 1..=i64::MAX)
}

fn check_lifecycle(place: &Place, lifecycle: &Lifecycle) -> Checked {
    if let Some(handler) = &lifecycle.post_start {
        check_handler(&place.member("postStart"), handler)?;
    }
    lifecycle.pre_stop.as_ref().map_or(Ok(()), |handler| check_handler(&place.member("preStop"), handler))
}

fn check_handler(place: &Place, handler: &LifecycleHandler) -> Checked {
    place.exactly_one(&[
        ("exec", handler.exec.is_some()),
        ("httpGet", handler.http_get.is_some()),
        ("tcpSocket", handler.tcp_socket.is_some()),
        ("sleep", handler.sleep.is_some()),
    ])?;
    check_actions(place, handler.exec.as_ref(), handler.http_get.as_ref(), handler.tcp_socket.as_ref())?;
    // The most is the pod's own terminationGracePeriodSeconds.
    let seconds = handler.sleep.as_ref().map(|sleep| sleep.seconds);
    place.member("sleep").within("seconds", seconds, 0..=i64::MAX)
}

fn check_actions(
    place: &Place,
    exec: Option<&ExecAction>,
    http_get: Option<&HTTPGetAction>,
    tcp_socket: Option<&TCPSocketAction>,
) -> Checked {
    if let Some(exec) = exec {
        let missing = || SidecarFault::Missing { key: "command", what: "a program and its arguments" };
        let is_missing = exec.command.as_ref().is_none_or(Vec::is_empty);
        place.member("exec").member("command").refuse_if(is_missing, missing)?;
    }
    if let Some(http_get) = http_get {
        let place = place.member("httpGet");
        check_named(&place, &http_get.port)?;
        place.among_or_empty("scheme", http_get.scheme.as_deref(), &["HTTP", "HTTPS"])?;
        for (place, header) in place.elements("httpHeaders", http_get.http_headers.as_ref()) {
            place.needs_form("name", &header.name, HEADER)?;
        }
    }
    tcp_socket.map_or(Ok(()), |tcp_socket| check_named(&place.member("tcpSocket"), &tcp_socket.port))
}
