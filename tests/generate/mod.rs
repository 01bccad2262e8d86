//! Pods and configurations, made up.

mod review;

use std::fmt::Write as _;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
pub(crate) use review::review;
use serde_json::{Map, Value, json};

/// An object of those members that are there.
fn object(members: Vec<(&'static str, Option<Value>)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name.to_owned(), value)))
            .collect::<Map<_, _>>(),
    )
}

/// One of the values, `null`, or nothing.
fn maybe(values: &'static [&'static str]) -> impl Strategy<Value = Option<Value>> {
    option::of(prop_oneof![
        1 => Just(Value::Null),
        6 => select(values).prop_map(|text| serde_json::from_str(text).expect("the values are JSON")),
    ])
}

fn security_context() -> impl Strategy<Value = Option<Value>> {
    let context = (
        maybe(&["true", "false", "false", "false"]),
        maybe(&["true", "false"]),
        maybe(&["true", "false"]),
        maybe(&["0", "1000", "1001", "1002"]),
        maybe(&[r#"{"add": ["NET_ADMIN"]}"#, r#"{"add": ["CAP_SYS_ADMIN"]}"#, r#"{"drop": ["ALL"]}"#, "{}"]),
        maybe(&[r#"{"runAsUserName": "ContainerAdministrator"}"#, r#"{"hostProcess": true}"#, "{}", "{}"]),
        unknown(),
    );
    nullable(context.prop_map(|(privileged, escalation, non_root, user, capabilities, windows, unknown)| {
        object(vec![
            ("privileged", privileged),
            ("allowPrivilegeEscalation", escalation),
            ("runAsNonRoot", non_root),
            ("runAsUser", user),
            ("capabilities", capabilities),
            ("windowsOptions", windows),
            ("seLinuxOptions", unknown),
        ])
    }))
}

/// The strategy's value, `null`, or nothing.
fn nullable(strategy: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    option::of(prop_oneof![1 => Just(Value::Null), 5 => strategy])
}

/// Something that podgate does not read.
fn unknown() -> impl Strategy<Value = Option<Value>> {
    maybe(&[
        "18446744073709551615",
        "1.5e300",
        r#""☃ ~/ ~0 \u0000 \"""#,
        r#"[null, {"": [], "a/b": {"~": false}}]"#,
        r#"{"limits": {"cpu": "9"}}"#,
    ])
}

fn resources() -> impl Strategy<Value = Option<Value>> {
    let amounts = |cpu, memory| {
        nullable((maybe(cpu), maybe(memory), unknown()).prop_map(|(cpu, memory, unknown)| {
            object(vec![("cpu", cpu), ("memory", memory), ("example.com/slots", unknown)])
        }))
    };
    let limits = amounts(&[r#""0""#, r#""500m""#, r#""4""#], &[r#""0""#, r#""64Mi""#, r#""8Gi""#]);
    let requests = amounts(&[r#""250m""#, r#""3""#], &[r#""32Mi""#, r#""4Gi""#]);
    nullable((limits, requests, unknown()).prop_map(|(limits, requests, unknown)| {
        object(vec![("limits", limits), ("requests", requests), ("claims", unknown)])
    }))
}

fn container() -> impl Strategy<Value = Value> {
    let image = prop_oneof![
        9 => select(&["nginx:1.27", "registry:5000/app:1"][..]),
        1 => select(&["nginx", "registry:5000/app", "a:latest", "a@b", ""][..]),
    ];
    let restart = maybe(&[r#""Always""#, r#""Never""#]);
    let ports = maybe(&[r#"[{"containerPort": 80, "hostPort": 80}]"#, r#"[{"hostPort": 0}]"#, "[]"]);
    (image, security_context(), resources(), restart, ports, unknown()).prop_map(
        |(image, security_context, resources, restart, ports, unknown)| {
            object(vec![
                ("image", Some(json!(image))),
                ("securityContext", security_context),
                ("resources", resources),
                ("restartPolicy", restart),
                ("ports", ports),
                ("env", unknown),
            ])
        },
    )
}

fn containers(kind: &'static str, with_resources: bool) -> impl Strategy<Value = Option<Value>> {
    nullable(proptest::collection::vec(container(), 0..4).prop_map(move |mut containers| {
        for (index, container) in containers.iter_mut().enumerate() {
            container["name"] = json!(format!("{kind}{index}"));
            if !with_resources && let Some(members) = container.as_object_mut() {
                members.remove("resources");
            }
        }
        Value::Array(containers)
    }))
}

/// A pod, valid or not.
pub(crate) fn pod() -> impl Strategy<Value = Value> {
    let volumes = maybe(&[
        r#"[{"name": "a", "hostPath": {"path": "/data/shared"}}]"#,
        r#"[{"name": "a", "hostPath": {"path": "/etc"}}, {"name": "b", "image": {"reference": "c"}}]"#,
        r#"[{"name": "a", "emptyDir": {}}]"#,
    ]);
    let os = maybe(&[r#"{"name": "windows"}"#, r#"{"name": "linux"}"#]);
    (
        containers("app", true),
        containers("init", true),
        containers("debug", false),
        volumes,
        security_context(),
        resources(),
        os,
        (maybe(&["true", "false"]), maybe(&["true", "false"]), maybe(&["true", "false"])),
        unknown(),
    )
        .prop_map(|(apps, init, ephemeral, volumes, security_context, resources, os, host, unknown)| {
            let mut pod_context = security_context;
            if let Some(Value::Object(members)) = &mut pod_context {
                members.retain(|name, _| matches!(name.as_str(), "runAsUser" | "runAsNonRoot" | "windowsOptions"));
            }
            let spec = object(vec![
                ("containers", apps),
                ("initContainers", init),
                ("ephemeralContainers", ephemeral),
                ("volumes", volumes),
                ("securityContext", pod_context),
                ("resources", resources),
                ("os", os),
                ("hostNetwork", host.0),
                ("hostPID", host.1),
                ("hostIPC", host.2),
                ("tolerations", unknown),
            ]);
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo"}, "spec": spec})
        })
}

/// The validations, each with what else it needs.
const VALIDATIONS: [(&str, &str); 12] = [
    ("privileged", ""),
    ("rootUser", ""),
    ("imageTag", ""),
    ("hostPath", ""),
    ("hostNetwork", ""),
    ("hostPID", ""),
    ("hostIPC", ""),
    ("hostPorts", ""),
    ("containerCount", ""),
    ("cpu", ", max: \"2\""),
    ("memory", ", max: 1Gi"),
    ("promises", ""),
];

/// A configuration file in which everything that can be set is set at random.
pub(crate) fn configuration() -> impl Strategy<Value = String> {
    let action = || select(&["deny", "warn", "audit", "off"][..]);
    let limit = |amounts: &'static [&'static str]| select(amounts);
    let mutations = (any::<bool>(), any::<bool>(), limit(&["1", "\"300m\"", "null"]), limit(&["1Gi", "16Mi", "null"]));
    let actions = proptest::collection::vec(action(), VALIDATIONS.len());
    (mutations, actions).prop_map(|((escalation, non_root, cpu, memory), actions)| {
        let mut text = format!(
            "mutations:\n  securityContext: {{ allowPrivilegeEscalation: {escalation}, runAsNonRoot: {non_root} }}\n  \
             resources: {{ limits: {{ cpu: {cpu}, memory: {memory} }} }}\nvalidations:\n"
        );
        for ((policy, more), action) in VALIDATIONS.iter().zip(actions) {
            writeln!(text, "  {policy}: {{ action: {action}{more} }}").expect("writing to a String does not fail");
        }
        text
    })
}
