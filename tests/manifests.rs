//! What `deploy/` and the Dockerfile say, held to what podgate does and to what a cluster needs of it.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PodSpec, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads each document of a file as a type of the API; `k8s-openapi` knows every field of it.
fn read<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    documents
        .into_iter()
        .map(|document| serde_json::from_value(document).unwrap_or_else(|error| panic!("{file}: {error}")))
        .collect()
}

fn one<T: DeserializeOwned>(file: &str) -> T {
    read(file).pop().expect("the file has a document")
}

fn pod() -> PodSpec {
    let deployment: Deployment = one("base/deployment.yaml");
    deployment.spec.template.spec.expect("a pod")
}

/// Answers a review of the deployment's own pod.
fn answer(webhook: podgate::admission::Webhook) -> podgate::admission::Answer {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "security-system", "name": "webhook-server",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"metadata": {"name": "webhook-server"}, "spec": pod()},
        },
    });
    podgate::admission::answer(
        &podgate::policy::Policies::default(),
        webhook,
        review.to_string().as_bytes(),
        time::Date::MIN,
    )
}

#[test]
fn the_config_map_holds_the_default_policy() {
    let config: ConfigMap = one("base/config-map.yaml");
    let data = config.data.expect("the ConfigMap has data");
    assert_eq!(data["config.yaml"], podgate::config::DEFAULT, "copy src/config/default.yaml into the ConfigMap");
}

#[test]
fn podgate_lives_by_its_own_policy() {
    use podgate::admission::{Verdict, Webhook};
    for webhook in [Webhook::Mutate, Webhook::Validate] {
        let answer = answer(webhook);
        let body = String::from_utf8_lossy(&answer.body);
        // The image in the file is only a name, which kustomize gives a tag.
        assert_eq!(answer.verdict, Verdict::Denied, "{body}");
        assert_eq!(answer.violations, [("imageTag", "deny")], "{body}");
    }
    assert!(text("base/kustomization.yaml").contains("newTag: 0.1.0"));
}

#[test]
fn the_server_is_called_with_options_that_it_has() {
    use clap::CommandFactory;
    let command = podgate::cli::CommandLine::command();
    let arguments = pod().containers[0].args.clone().expect("there are arguments");
    let parsed = command.try_get_matches_from(std::iter::once("podgate".to_owned()).chain(arguments));
    assert!(parsed.is_ok(), "{parsed:?}");
}

/// The rules of all roles of a file, one line for each: groups, resources, names, verbs.
fn roles(file: &str) -> Vec<String> {
    let documents: Vec<Value> = read(file);
    let join = |list: &Value| {
        let words = list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or_default());
        words.collect::<Vec<_>>().join(",")
    };
    let rules = documents.iter().flat_map(|document| document["rules"].as_array().cloned().unwrap_or_default());
    rules
        .map(|rule| {
            let [groups, resources, names, verbs] =
                ["apiGroups", "resources", "resourceNames", "verbs"].map(|key| join(&rule[key]));
            format!("{groups} {resources} {names}: {verbs}")
        })
        .collect()
}

#[test]
fn podgate_may_ask_for_its_secret_and_its_configurations_and_nothing_else() {
    assert_eq!(
        roles("base/rbac.yaml"),
        [
            " secrets webhook-tls: get,watch,create,patch,update",
            "admissionregistration.k8s.io mutatingwebhookconfigurations pod-security-mutator: get,watch,patch",
            "admissionregistration.k8s.io validatingwebhookconfigurations pod-security-validator: get,watch,patch",
        ]
    );
    let pod = pod();
    assert_eq!(pod.service_account_name.as_deref(), Some("podgate"));
    assert_eq!(pod.automount_service_account_token, Some(true));
    let arguments = pod.containers[0].args.clone().expect("there are arguments");
    assert!(arguments.contains(&"--tls-secret=security-system/webhook-tls".to_owned()));
}

#[test]
fn for_quotas_podgate_may_see_namespaces_and_keep_quotas_of_one_name() {
    assert_eq!(
        roles("quota/rbac.yaml"),
        [
            " namespaces : list,watch",
            " resourcequotas podgate-namespace-quota: list,watch,patch,delete",
            // The request for a create has no name to be held to.
            " resourcequotas : create"
        ]
    );
    let component: Value = one("quota/kustomization.yaml");
    assert_eq!(component["kind"], "Component");
    for folder in ["", "base/", "single-zone/", "cert-manager/"] {
        assert!(!text(&format!("{folder}kustomization.yaml")).contains("quota"), "{folder} does without");
    }
}

/// The patches of the overlay count on where things are.
#[test]
fn with_cert_manager_the_server_reads_files_and_its_own_pods_do_not_wait() {
    let arguments = pod().containers[0].args.clone().expect("there are arguments");
    assert_eq!(arguments[2], "--tls-secret=security-system/webhook-tls");
    let overlay = text("cert-manager/kustomization.yaml");
    assert!(overlay.contains("--tls-cert=/etc/podgate/tls/tls.crt") && overlay.contains("mountPath: /etc/podgate/tls"));
    let names: Vec<Value> = read("base/rbac.yaml");
    assert_eq!(overlay.matches("$patch: delete").count(), names.len());
    let certificates: Vec<Value> = read("cert-manager/certificates.yaml");
    let leaf = certificates.last().expect("a certificate");
    assert_eq!(leaf["spec"]["secretName"], "webhook-tls");
    assert_eq!(leaf["spec"]["dnsNames"], json!(podgate::certs::SERVICE_NAMES));
    let registration = text("cert-manager/registration/kustomization.yaml");
    assert!(registration.contains("cert-manager.io/inject-ca-from: security-system/webhook-tls"));
    // Once for the first webhook of both, once for the second of the validating one.
    assert_eq!(registration.matches("value: cert-manager\n").count(), 2);
}

#[test]
fn the_deployment_stays_up() {
    let deployment: Deployment = one("base/deployment.yaml");
    let spec = deployment.spec;
    assert_eq!(deployment.metadata.name.as_deref(), Some("webhook-server"));
    assert_eq!(spec.replicas, Some(3));
    let rolling = spec.strategy.and_then(|strategy| strategy.rolling_update).expect("a rolling update");
    assert_eq!((rolling.max_surge, rolling.max_unavailable), (Some(IntOrString::Int(1)), Some(IntOrString::Int(0))));
    let pod = pod();
    assert_eq!(pod.priority_class_name.as_deref(), Some("system-cluster-critical"));
    let spread: Vec<_> = pod
        .topology_spread_constraints
        .expect("constraints")
        .into_iter()
        .map(|constraint| {
            assert_eq!(constraint.match_label_keys, Some(vec!["pod-template-hash".to_owned()]));
            (constraint.topology_key, constraint.max_skew, constraint.when_unsatisfiable)
        })
        .collect();
    let due = |key: &str, when: &str| (key.to_owned(), 1, when.to_owned());
    assert_eq!(
        spread,
        [due("topology.kubernetes.io/zone", "DoNotSchedule"), due("kubernetes.io/hostname", "ScheduleAnyway")]
    );
    let budget: PodDisruptionBudget = one("base/pod-disruption-budget.yaml");
    assert_eq!(budget.metadata.name.as_deref(), Some("webhook-pdb"));
    assert_eq!(budget.spec.expect("a spec").min_available, Some(IntOrString::Int(2)));
}

#[test]
fn the_container_is_what_pod_security_restricted_asks_for() {
    let namespace: Namespace = one("base/namespace.yaml");
    let labels = namespace.metadata.labels.expect("labels");
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
    let pod = pod();
    let pod_context = pod.security_context.expect("a security context");
    assert_eq!(pod_context.seccomp_profile.expect("a seccomp profile").type_, "RuntimeDefault");
    let container = &pod.containers[0];
    let context = container.security_context.as_ref().expect("a security context");
    assert_eq!(
        (context.allow_privilege_escalation, context.run_as_non_root, context.read_only_root_filesystem),
        (Some(false), Some(true), Some(true))
    );
    let drop = context.capabilities.as_ref().and_then(|capabilities| capabilities.drop.clone());
    assert_eq!(drop, Some(vec!["ALL".to_owned()]));
    let resources = container.resources.clone().expect("resources");
    let amounts = |list: Option<BTreeMap<_, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>| {
        list.map(|list| (list["cpu"].0.clone(), list["memory"].0.clone()))
    };
    assert_eq!(amounts(resources.requests), Some(("100m".to_owned(), "128Mi".to_owned())));
    assert_eq!(amounts(resources.limits), Some(("500m".to_owned(), "256Mi".to_owned())));
    // With room for what the formula does not know: worker threads beyond two, and the allocator's moods.
    assert!(podgate::server::Limits::default().memory_max() + (48 << 20) < 256 << 20);
}

#[test]
fn probes_and_services_name_ports_that_the_server_has() {
    let container = &pod().containers[0];
    assert_eq!(container.name, "webhook");
    let ports: BTreeMap<_, _> = container
        .ports
        .iter()
        .flatten()
        .map(|port| (port.name.clone().unwrap_or_default(), port.container_port))
        .collect();
    assert_eq!(ports, BTreeMap::from([("https".to_owned(), 8443), ("metrics".to_owned(), 9090)]));
    let probe = |probe: &Option<k8s_openapi::api::core::v1::Probe>| {
        let get = probe.as_ref().and_then(|probe| probe.http_get.clone()).expect("an HTTP probe");
        (get.path.unwrap_or_default(), get.port, get.scheme)
    };
    let named = |name: &str| IntOrString::String(name.to_owned());
    let https = Some("HTTPS".to_owned());
    assert_eq!(probe(&container.readiness_probe), ("/healthz".to_owned(), named("https"), https));
    assert_eq!(probe(&container.liveness_probe), ("/livez".to_owned(), named("metrics"), None));

    let services: Vec<Service> = read("base/services.yaml");
    let told: Vec<_> = services
        .into_iter()
        .map(|service| {
            let spec = service.spec.expect("a spec");
            let port = spec.ports.expect("ports").remove(0);
            (service.metadata.name.unwrap_or_default(), spec.cluster_ip, port.port, port.target_port)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("webhook-service".to_owned(), None, 443, Some(named("https"))),
            ("webhook-metrics".to_owned(), Some("None".to_owned()), 9090, Some(named("metrics"))),
        ]
    );
}

/// The kinds of the Prometheus Operator are held to their structure here, for there is no API server
/// that has them; promtool checks the rules themselves, and tests/wire/monitoring.rs what they ask for.
#[test]
fn the_operator_finds_every_replica_and_every_alert_says_what_to_do() {
    let mut services: Vec<Service> = read("base/services.yaml");
    let metrics = services.pop().expect("a service for metrics");
    let labels = metrics.metadata.labels.expect("the service has labels");
    let port = metrics.spec.and_then(|spec| spec.ports).expect("ports").remove(0).name;
    let monitor: Value = one("monitoring/service-monitor.yaml");
    assert_eq!(
        (&monitor["apiVersion"], &monitor["kind"]),
        (&json!("monitoring.coreos.com/v1"), &json!("ServiceMonitor"))
    );
    let component = &monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"];
    assert_eq!(component, &labels["app.kubernetes.io/component"]);
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], json!(port));

    let rules: Value = one("monitoring/rules.yaml");
    assert_eq!((&rules["apiVersion"], &rules["kind"]), (&json!("monitoring.coreos.com/v1"), &json!("PrometheusRule")));
    let rules = rules["spec"]["groups"][0]["rules"].as_array().expect("a group of rules");
    assert!(!rules.is_empty());
    for rule in rules {
        assert!(rule["for"].is_string() && rule["expr"].is_string(), "{rule}");
        assert!(["critical", "warning"].map(Value::from).contains(&rule["labels"]["severity"]), "{rule}");
        for annotation in ["summary", "description"] {
            assert!(rule["annotations"][annotation].as_str().is_some_and(|text| text.len() > 40), "{rule}");
        }
    }
}

#[test]
fn grafana_finds_the_dashboard() {
    let kustomization: Value = one("monitoring/kustomization.yaml");
    assert_eq!(kustomization["namespace"], "security-system");
    for resource in kustomization["resources"].as_array().expect("resources") {
        text(&format!("monitoring/{}", resource.as_str().expect("a file")));
    }
    let generator = &kustomization["configMapGenerator"][0];
    assert_eq!(generator["options"]["labels"], json!({"grafana_dashboard": "1"}));
    let (_, source) = generator["files"][0].as_str().and_then(|file| file.split_once('=')).expect("a key and a file");
    let dashboard: Value = serde_json::from_str(&text(&format!("monitoring/{source}"))).expect("JSON");
    assert_eq!(dashboard["title"], "podgate");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: std::collections::BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
}

/// Resources and operations of a webhook's rules, as one line each.
fn rules(rules: Option<Vec<RuleWithOperations>>) -> Vec<String> {
    let join = |list: Option<Vec<String>>| list.unwrap_or_default().join(",");
    rules
        .unwrap_or_default()
        .into_iter()
        .map(|rule| format!("{} {} {}", join(rule.operations), join(rule.api_groups), join(rule.resources)))
        .collect()
}

/// That a selector leaves out the namespaces without which a cluster cannot come back.
fn leaves_out_the_cluster_itself(selector: Option<LabelSelector>) {
    let expressions = selector.and_then(|selector| selector.match_expressions).expect("expressions");
    assert_eq!(expressions.len(), 1);
    assert_eq!(
        (expressions[0].key.as_str(), expressions[0].operator.as_str()),
        ("kubernetes.io/metadata.name", "NotIn")
    );
    assert_eq!(
        expressions[0].values.as_deref().unwrap_or_default(),
        ["kube-system", "kube-public", "kube-node-lease", "security-system"]
    );
}

#[test]
fn the_mutating_webhook_sees_new_pods_and_debug_containers() {
    let mut configuration: MutatingWebhookConfiguration = one("registration/mutating.yaml");
    assert_eq!(configuration.metadata.name.as_deref(), Some("pod-security-mutator"));
    let webhook = configuration.webhooks.as_mut().expect("webhooks").remove(0);
    assert_eq!(webhook.name, "pod-mutator.security.example.com");
    assert_eq!(rules(webhook.rules), ["CREATE  pods", "UPDATE  pods/ephemeralcontainers"]);
    assert_eq!(webhook.failure_policy.as_deref(), Some("Fail"));
    assert_eq!(webhook.reinvocation_policy.as_deref(), Some("IfNeeded"));
    assert_eq!((webhook.timeout_seconds, webhook.side_effects.as_str()), (Some(10), "None"));
    assert_eq!(webhook.admission_review_versions, ["v1"]);
    assert_eq!(webhook.client_config.service.and_then(|service| service.path).as_deref(), Some("/mutate"));
    assert!(webhook.client_config.ca_bundle.is_none(), "an empty caBundle would blank an injected one");
    leaves_out_the_cluster_itself(webhook.namespace_selector);
}

#[test]
fn the_validating_webhooks_see_what_is_stored() {
    let configuration: ValidatingWebhookConfiguration = one("registration/validating.yaml");
    assert_eq!(configuration.metadata.name.as_deref(), Some("pod-security-validator"));
    let webhooks = configuration.webhooks.expect("webhooks");
    let told: Vec<_> = webhooks
        .iter()
        .map(|webhook| (webhook.name.as_str(), webhook.failure_policy.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [("pod-validator.security.example.com", "Fail"), ("workload-validator.security.example.com", "Ignore")]
    );
    assert_eq!(
        rules(webhooks[0].rules.clone()),
        ["CREATE,UPDATE  pods", "UPDATE  pods/ephemeralcontainers,pods/resize"]
    );
    let mut workloads: Vec<&str> = podgate::pod::WorkloadKind::ALL.iter().map(|kind| kind.resource()).collect();
    let mut registered: Vec<_> =
        webhooks[1].rules.iter().flatten().flat_map(|rule| rule.resources.clone().unwrap_or_default()).collect();
    workloads.sort_unstable();
    registered.sort_unstable();
    assert_eq!(registered, workloads);
    for webhook in webhooks {
        assert_eq!((webhook.timeout_seconds, webhook.side_effects.as_str()), (Some(10), "None"));
        assert_eq!(webhook.admission_review_versions, ["v1"]);
        assert_eq!(webhook.client_config.service.and_then(|service| service.path).as_deref(), Some("/validate"));
        assert!(webhook.client_config.ca_bundle.is_none());
        assert_eq!(webhook.match_conditions.map(|conditions| conditions.len()), Some(1));
        leaves_out_the_cluster_itself(webhook.namespace_selector);
    }
}

/// Cargo wants the files of every target that Cargo.toml names, though the image needs only one.
#[test]
fn the_image_is_built_from_all_that_cargo_wants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let context = tempfile::tempdir().expect("a temporary folder");
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).expect(".dockerignore");
    for path in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
        let to = context.path().join(path);
        std::fs::create_dir_all(to.parent().expect("it is in the context")).expect("the folder is writable");
        let copied = Command::new("cp").arg("-R").args([root.join(path), to]).status().expect("cp runs");
        assert!(copied.success(), "{path}");
    }
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(&context)
        .output()
        .expect("cargo runs");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    for target in metadata["packages"][0]["targets"].as_array().expect("targets") {
        let file = target["src_path"].as_str().expect("a path");
        assert!(Path::new(file).exists(), "Cargo.toml names {file}, which .dockerignore keeps out");
    }
}
