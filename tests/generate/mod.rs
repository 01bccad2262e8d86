//! Pods and configurations, made up.

mod images;
mod review;
mod sidecars;

use std::fmt::Write as _;

pub(crate) use images::{configuration_of_images, image};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
pub(crate) use review::review;
use serde_json::{Map, Value, json};
use sidecars::sidecars;

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

const PINNED_AND_TAGGED: &str = "nginx:latest@sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765";

fn container() -> impl Strategy<Value = Value> {
    let image = prop_oneof![
        9 => select(&[
            "nginx:1.27", "registry:5000/app:1", "docker.io/library/nginx:1.26", "quay.io/acme/app:1", "quay.io/app:1",
            PINNED_AND_TAGGED, "registry.example.com/hub/library/nginx:1.27",
        ][..]),
        1 => select(&["nginx", "registry:5000/app", "a:latest", "nginx:stable", "a@b", ""][..]),
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
        r#"[{"name": "agent", "emptyDir": {"medium": "Memory"}}, {"name": "other", "emptyDir": {}}]"#,
        r#"[{"name": "agent", "emptyDir": {"sizeLimit": "1024Mi"}}]"#,
        r#"[{"name": "a", "image": {"reference": "quay.io/acme/app:1"}}, {"name": "b", "image": {"reference": "nginx"}}]"#,
    ]);
    let labels = maybe(&[r#"{"logs": "yes"}"#, r#"{"logs": "no", "tier": ""}"#, "{}"]);
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
        (unknown(), labels, maybe(&[r#""Never""#, r#""Always""#]), maybe(&["0", "5", "60"])),
    )
        .prop_map(|(apps, init, ephemeral, volumes, security_context, resources, os, host, rest)| {
            let (unknown, labels, restart_policy, grace_period) = rest;
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
                ("restartPolicy", restart_policy),
                ("terminationGracePeriodSeconds", grace_period),
            ]);
            let metadata = object(vec![("name", Some(json!("demo"))), ("labels", labels)]);
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
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

/// Those that look at containers, and so may exclude some of them.
const OF_CONTAINERS: [&str; 4] = ["privileged", "rootUser", "imageTag", "promises"];

/// A list of exclusions, mostly empty.
fn exclude() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just(""),
        4 => select(&[
            "images: [nginx]",
            "images: [\"nginx:1.27\"]",
            "images: [registry.example.com/hub/library/nginx]",
            "images: [\"registry:5000/*\", quay.io/ours/nginx]",
            "images: [\"*:1\"]",
            "containers: [app0, init0, debug0]",
        ][..]),
        1 => select(&["namespaces: [team-a]", "users: [ann]", "groups: [\"system:*\"]"][..]),
    ]
}

/// The mutation `images`, and what `imageTag` has to do with it.
fn images() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    let mirrors = select(
        &[
            "",
            "docker.io: registry.example.com/hub, \"registry:5000\": mirror.example.com:8443/old",
            "docker.io/library/nginx: quay.io/ours/nginx, registry:5000/app: localhost/app",
            "docker.io: \"[2001:db8::1]:5000\"",
            "quay.io: docker.io, quay.io/acme: registry.example.com",
        ][..],
    );
    let pins = prop_oneof![
        3 => (
            select(&[
                "nginx: \"1.27.3\", a: \"2\"",
                "registry.example.com/hub/library/nginx: \"1\"",
                "quay.io/ours/nginx: \"1\", \"registry:5000/app\": \"7\"",
            ][..]),
            select(&["forbidden: [latest]", "forbidden: []", "forbidden: [stable]"][..]),
        ),
        1 => (
            select(&[
                "",
                "nginx: \"sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765\"",
            ][..]),
            select(&[
                "requireDigest: true",
                "allowedRegistries: [registry.example.com/hub, \"registry:5000\"]",
            ][..]),
        ),
    ];
    (mirrors, pins).prop_map(|(mirrors, (pins, image_tag))| (mirrors, pins, image_tag))
}

fn mutations() -> impl Strategy<Value = (String, &'static str)> {
    let limits = (select(&["1", "\"300m\"", "null"][..]), select(&["1Gi", "16Mi", "null"][..]));
    let requests = (select(&["100m", "\"0.3\"", "null"][..]), select(&["16Mi", "1Mi", "null"][..]));
    let excludes = (exclude(), exclude(), exclude());
    (images(), any::<bool>(), any::<bool>(), limits, requests, excludes, sidecars()).prop_map(
        |((mirrors, pins, image_tag), escalation, non_root, limits, requests, excludes, sidecars)| {
            let text = format!(
                "mutations:\n  sidecars: {sidecars}\n  images: {{ mirrors: {{ {mirrors} }}, pins: {{ {pins} }}, exclude: {{ {} }} }}\n  \
                 securityContext: {{ allowPrivilegeEscalation: {escalation}, runAsNonRoot: {non_root}, \
                 exclude: {{ {} }} }}\n  \
                 resources: {{ limits: {{ cpu: {}, memory: {} }}, requests: {{ cpu: {}, memory: {} }}, \
                 exclude: {{ {} }} }}\n",
                excludes.0, excludes.1, limits.0, limits.1, requests.0, requests.1, excludes.2
            );
            (text, image_tag)
        },
    )
}

/// A configuration file in which everything that can be set is set at random.
pub(crate) fn configuration() -> impl Strategy<Value = String> {
    let action = || select(&["deny", "warn", "audit", "off"][..]);
    let validations = proptest::collection::vec((action(), exclude()), VALIDATIONS.len());
    let texts = (mutations(), validations).prop_map(|((mut text, image_tag), validations)| {
        text.push_str("validations:\n");
        for ((policy, more), (action, exclude)) in VALIDATIONS.iter().zip(validations) {
            let exclude = if OF_CONTAINERS.contains(policy) { exclude } else { "" };
            let image_tag = if *policy == "imageTag" { format!(", {image_tag}") } else { String::new() };
            writeln!(text, "  {policy}: {{ action: {action}{more}{image_tag}, exclude: {{ {exclude} }} }}")
                .expect("writing to a String does not fail");
        }
        text
    });
    // A sidecar of more than a validation lets any pod have makes no configuration.
    texts.prop_filter("sidecars that some pod may have", |text| {
        !podgate::config::parse(text).is_err_and(|fault| fault.to_string().contains("denies every pod"))
    })
}
