//! Laws that hold for every pod and every configuration, tried on generated ones.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod generate;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use generate::{configuration, configuration_of_images, image, pod, review};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionResponse, AdmissionReview};
use podgate::admission::{self, Answer, Verdict, Webhook};
use podgate::config;
use podgate::policy::Policies;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A day like any other.
const TODAY: time::Date = time::Date::MIN;

/// What was answered, read by kube's own types. These take the patch for a list of bytes, where
/// the API has base64, so that it is decoded before.
fn read(answer: &Answer) -> AdmissionResponse {
    let mut review: Value = serde_json::from_slice(&answer.body).expect("every answer is JSON");
    if let Some(patch) = review.pointer_mut("/response/patch") {
        let bytes = STANDARD.decode(patch.as_str().expect("a patch is a string")).expect("a patch is base64");
        *patch = json!(bytes);
    }
    let review: AdmissionReview<DynamicObject> =
        serde_json::from_value(review).expect("kube reads every answer of status 200");
    review.response.expect("every answer of status 200 has a response")
}

/// The pod after `/mutate`, or nothing when it was denied.
fn mutate(policies: &Policies, pod: &Value) -> Option<(Value, Option<Value>)> {
    let body = review("CREATE", pod, &Value::Null).to_string();
    let answer = admission::answer(policies, Webhook::Mutate, body.as_bytes(), TODAY);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let response = read(&answer);
    if !response.allowed {
        return None;
    }
    let Some(patch) = response.patch else { return Some((pod.clone(), None)) };
    let mut patched = pod.clone();
    let operations: json_patch::Patch = serde_json::from_slice(&patch).expect("the patch is a JSON Patch");
    json_patch::patch(&mut patched, &operations).expect("the patch applies");
    Some((patched, Some(serde_json::from_slice(&patch).expect("the patch is JSON"))))
}

fn effective<'v>(pod: &'v Value, container: &'v Value, pointer: &str) -> &'v Value {
    let read = |owner: &'v Value| owner.pointer(pointer).filter(|value| !value.is_null());
    read(container).or_else(|| read(&pod["spec"])).unwrap_or(&Value::Null)
}

fn millis(quantity: &Value) -> Option<u64> {
    let text = quantity.as_str()?;
    let factor = |suffix: &str, unit: u64| text.strip_suffix(suffix)?.parse::<u64>().ok().map(|number| number * unit);
    factor("m", 1)
        .or_else(|| factor("Mi", 1_000 << 20))
        .or_else(|| factor("Gi", 1_000 << 30))
        .or_else(|| factor("", 1_000))
}

/// What the API server or the kubelet would refuse, of what a patch could bring about.
fn contradictions(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = &pod["spec"];
    let is_windows = spec["os"]["name"] == "windows";
    let empty = Vec::new();
    let list = |name: &str| spec[name].as_array().unwrap_or(&empty).clone();
    // A container that says nothing itself stands for all that could come.
    let any = vec![json!({})];
    for container in [list("containers"), list("initContainers"), list("ephemeralContainers"), any].concat() {
        let context = &container["securityContext"];
        let no_escalation = context["allowPrivilegeEscalation"] == false;
        if no_escalation && context["privileged"] == true {
            found.push("allowPrivilegeEscalation: false on a privileged container".to_owned());
        }
        if no_escalation && context["capabilities"]["add"].to_string().contains("\"CAP_SYS_ADMIN\"") {
            found.push("allowPrivilegeEscalation: false beside CAP_SYS_ADMIN".to_owned());
        }
        if is_windows && !context["allowPrivilegeEscalation"].is_null() {
            found.push("allowPrivilegeEscalation on Windows".to_owned());
        }
        let administrator = effective(pod, &container, "/securityContext/windowsOptions/runAsUserName");
        let user = effective(pod, &container, "/securityContext/runAsUser");
        if effective(pod, &container, "/securityContext/runAsNonRoot") == true
            && (user == 0 || administrator == "ContainerAdministrator")
        {
            found.push("runAsNonRoot as root".to_owned());
        }
    }
    for name in ["cpu", "memory"] {
        found.extend(resource_contradictions(spec, name));
    }
    if list("ephemeralContainers").iter().any(|container| !container["resources"].is_null()) {
        found.push("resources on an ephemeral container".to_owned());
    }
    found.extend(contradictions_with_the_pod(spec));
    for lists in [&["containers", "initContainers", "ephemeralContainers"][..], &["volumes"]] {
        let mut names: Vec<_> = lists.iter().flat_map(|name| list(name)).map(|named| named["name"].clone()).collect();
        let count = names.len();
        names.sort_by_key(Value::to_string);
        names.dedup();
        if names.len() < count {
            found.push(format!("a name twice in {lists:?}"));
        }
    }
    found
}

/// What is right in a container, but not in this pod.
fn contradictions_with_the_pod(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let empty = Vec::new();
    let grace_period = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    for container in ["containers", "initContainers"].iter().flat_map(|list| spec[list].as_array().unwrap_or(&empty)) {
        let resources = &container["resources"];
        let names = |name: &str| ["limits", "requests"].iter().any(|kind| !resources[kind][name].is_null());
        if names("hugepages-2Mi") && !names("cpu") && !names("memory") {
            found.push("huge pages without cpu and memory".to_owned());
        }
        if spec["restartPolicy"] == "Never" && container["resizePolicy"].to_string().contains("RestartContainer") {
            found.push("a restart in a pod that never restarts".to_owned());
        }
        let lifecycle = &container["lifecycle"];
        if lifecycle["preStop"]["sleep"]["seconds"].as_i64().is_some_and(|seconds| seconds > grace_period) {
            found.push("a hook that sleeps longer than the pod has".to_owned());
        }
        if !lifecycle["stopSignal"].is_null() && spec["os"].is_null() {
            found.push("a stopSignal in a pod without os".to_owned());
        }
    }
    let in_network = spec["hostNetwork"] == true;
    let mut taken = Vec::new();
    for port in spec["containers"]
        .as_array()
        .unwrap_or(&empty)
        .iter()
        .flat_map(|container| container["ports"].as_array().into_iter().flatten())
    {
        let number = |name: &str| port[name].as_i64().unwrap_or(0);
        let on_node = if number("hostPort") == 0 && in_network { number("containerPort") } else { number("hostPort") };
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        if on_node != 0 && taken.contains(&(on_node, protocol)) {
            found.push("a port of the node for two".to_owned());
        }
        taken.push((on_node, protocol));
        if in_network && on_node != number("containerPort") {
            found.push("another port of the node in its network".to_owned());
        }
    }
    found
}

/// The places of the containers that a configuration put into a pod.
fn sidecars_in(configuration: &str, pod: &Value, before: &Value) -> Vec<(&'static str, usize)> {
    let empty = Vec::new();
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        pod["spec"][list].as_array().unwrap_or(&empty).iter().map(|container| container["name"].clone()).collect()
    };
    let mut found = Vec::new();
    for list in ["containers", "initContainers"] {
        let had = names(before, list);
        for (index, name) in names(pod, list).into_iter().enumerate() {
            if !had.contains(&name) {
                assert!(configuration.contains(&name.to_string()), "{name} comes from nowhere");
                found.push((list, index));
            }
        }
    }
    found
}

fn resource_contradictions(spec: &Value, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let empty = Vec::new();
    // As the API server defaults it: a limit without a request is the request too.
    let amounts = |owner: &Value| {
        let limit = millis(&owner["resources"]["limits"][name]);
        (limit, millis(&owner["resources"]["requests"][name]).or(limit))
    };
    let (pod_limit, pod_request) = amounts(spec);
    let mut requested = 0;
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().unwrap_or(&empty) {
            let (limit, request) = amounts(container);
            if limit.is_some_and(|limit| request > Some(limit)) {
                found.push(format!("{name}: a request above its limit"));
            }
            if list == "containers" {
                requested += request.unwrap_or(0);
                if pod_limit.is_some_and(|pod_limit| limit > Some(pod_limit)) {
                    found.push(format!("{name}: a container's limit above the pod's"));
                }
            }
        }
    }
    if pod_request.is_some_and(|pod_request| requested > pod_request) {
        found.push(format!("{name}: the containers' requests above the pod's"));
    }
    if pod_limit.is_some_and(|limit| pod_request > Some(limit)) {
        found.push(format!("{name}: the pod's request above its limit"));
    }
    found
}

/// Whether an operation sets nothing but what the mutations are about, or a parent of it that
/// was not there.
fn touches_only_its_own(pod: &Value, operation: &Value) -> bool {
    let path = operation["path"].as_str().unwrap_or_default();
    if injects(pod, path) {
        return operation["op"] == "add";
    }
    let is_leaf = ["/securityContext/allowPrivilegeEscalation", "/securityContext/runAsNonRoot"]
        .iter()
        .chain(&["/resources/limits/cpu", "/resources/limits/memory"])
        .chain(&["/resources/requests/cpu", "/resources/requests/memory"])
        .any(|leaf| path.ends_with(leaf));
    let is_parent = ["/securityContext", "/resources", "/resources/limits", "/resources/requests"]
        .iter()
        .any(|parent| path.ends_with(parent));
    let is_image = ["/image", "/image/reference"].iter().any(|image| path.ends_with(image));
    let is_there = |is_what: fn(&Value) -> bool| pod.pointer(path).is_some_and(is_what);
    operation["op"] == "add"
        && (is_leaf || (is_parent && !is_there(|value| !value.is_null())) || (is_image && is_there(Value::is_string)))
}

/// Whether a path is that of a new element of a list, or of a list that was not there.
fn injects(pod: &Value, path: &str) -> bool {
    let lists = ["/spec/initContainers", "/spec/containers", "/spec/volumes"];
    let Some((list, rest)) = lists.iter().find_map(|list| Some((list, path.strip_prefix(list)?))) else { return false };
    let length = pod.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
    match rest.strip_prefix('/').map(str::parse::<usize>) {
        None => length == 0,
        Some(index) => length > 0 && index.is_ok_and(|index| index <= length),
    }
}

/// A pod as the API server stores it: with its defaults, and with quantities as it writes them.
fn stored(mut pod: Value) -> Value {
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let members = container.as_object_mut().expect("a container is an object");
            members.retain(|_, value| !value.is_null() && *value != json!([]));
            for (key, value) in [("imagePullPolicy", "Always"), ("terminationMessagePath", "/dev/termination-log")] {
                if members.get(key).is_none_or(|known| *known == "") {
                    members.insert(key.to_owned(), json!(value));
                }
            }
            members.retain(|key, value| *value != json!(false) && !(key == "workingDir" && *value == ""));
            if let Some(probe) = members.get_mut("livenessProbe") {
                probe["timeoutSeconds"] = json!(1);
            }
            for port in members.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                let protocol = port["protocol"].as_str().unwrap_or("TCP").to_owned();
                port["protocol"] = json!(protocol);
            }
            for variable in members.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                variable.as_object_mut().map(|variable| variable.remove("value"));
            }
            let mount = json!({"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
            match members.entry("volumeMounts").or_insert_with(|| json!([])) {
                Value::Array(mounts) => mounts.push(mount),
                other => *other = json!([mount]),
            }
            default_requests(container);
        }
    }
    pod
}

fn default_requests(container: &mut Value) {
    let resources = &mut container["resources"];
    for kind in ["limits", "requests"] {
        for (name, amount) in resources[kind].as_object_mut().into_iter().flatten() {
            let canonical = match amount.to_string().as_str() {
                "\"2000m\"" => json!("2"),
                "0.3" | "\"0.30\"" | "\"0.3\"" => json!("300m"),
                "1024" if name == "memory" => json!("1Ki"),
                "3" => json!("3"),
                _ => continue,
            };
            *amount = canonical;
        }
    }
    let limits = resources["limits"].as_object().cloned().unwrap_or_default();
    for (name, limit) in limits.into_iter().filter(|(_, limit)| !limit.is_null()) {
        if resources["requests"][&name].is_null() {
            resources["requests"][&name] = limit;
        }
    }
}

/// Members that a container need not have, and that decide what it runs.
fn added_to_a_sidecar() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!({"command": ["sleep", "infinity"]}),
        json!({"args": ["--off"]}),
        json!({"workingDir": "/tmp"}),
        json!({"lifecycle": {"postStart": {"exec": {"command": ["kill", "1"]}}}}),
        json!({"startupProbe": {"exec": {"command": ["false"]}}}),
        json!({"envFrom": [{"configMapRef": {"name": "mine"}}]}),
        json!({"tty": true}),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutating_twice_is_mutating_once(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((once, _)) = mutate(&policies, &pod) {
            let (twice, patch) = mutate(&policies, &once).expect("what was allowed is allowed again");
            prop_assert_eq!(patch, None);
            prop_assert_eq!(once, twice);
        }
    }

    /// Another webhook changes a pod, so that podgate is asked about what it made a second time.
    #[test]
    fn what_the_api_server_adds_makes_no_difference(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((patched, _)) = mutate(&policies, &pod) {
            let (_, patch) = mutate(&policies, &stored(patched)).expect("what was allowed is allowed again");
            prop_assert_eq!(patch, None);
        }
    }

    /// What the author would add to make a sidecar do nothing, or something else.
    #[test]
    fn a_sidecar_with_more_in_it_is_another(
        pod in pod(), configuration in configuration(), added in added_to_a_sidecar(), which in any::<prop::sample::Index>(),
    ) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        let Some((patched, _)) = mutate(&policies, &pod) else { return Ok(()) };
        let sidecars = sidecars_in(&configuration, &patched, &pod);
        prop_assume!(!sidecars.is_empty());
        let (list, index) = sidecars[which.index(sidecars.len())];
        let mut changed = stored(patched);
        let sidecar = &mut changed["spec"][list][index];
        for (key, value) in added.as_object().expect("it is an object") {
            prop_assume!(sidecar[key].is_null());
            sidecar[key] = value.clone();
        }
        prop_assert!(mutate(&policies, &changed).is_none(), "{added} is no difference in {sidecar}", sidecar = changed["spec"][list][index]);
    }

    #[test]
    fn a_patched_pod_keeps_every_promise(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((patched, _)) = mutate(&policies, &pod) {
            let body = review("CREATE", &patched, &Value::Null).to_string();
            let answer = admission::answer(&policies, Webhook::Validate, body.as_bytes(), TODAY);
            let broken: Vec<_> = answer.violations.iter().filter(|(policy, _)| *policy == "promises").collect();
            prop_assert!(broken.is_empty(), "{:?}", read(&answer).warnings);
        }
    }

    /// Both webhooks judge the image with which a container will run, though only one sees it.
    #[test]
    fn what_mutate_lets_pass_is_not_refused_for_that_later(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((patched, _)) = mutate(&policies, &pod) {
            let body = review("CREATE", &patched, &Value::Null).to_string();
            let answer = admission::answer(&policies, Webhook::Validate, body.as_bytes(), TODAY);
            let early = ["privileged", "rootUser", "imageTag"];
            let denied = |(policy, action): &&(&str, &str)| *action == "deny" && early.contains(policy);
            prop_assert_eq!(answer.violations.iter().find(denied), None, "{:?}", read(&answer).result.message);
        }
    }

    /// A configuration that makes other images of those that it made is not taken.
    #[test]
    fn mirrors_and_pins_come_to_an_end(
        images in proptest::collection::vec(image(), 1..6), configuration in configuration_of_images(),
    ) {
        let policies = config::parse(&configuration);
        prop_assume!(policies.is_ok());
        let policies = policies.expect("that is assumed");
        let containers: Vec<_> =
            images.iter().map(|image| json!({"name": "a", "image": image, "securityContext": {"privileged": false}})).collect();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": containers}});
        let (once, _) = mutate(&policies, &pod).expect("nothing is denied");
        prop_assert_eq!(mutate(&policies, &once).expect("nothing is denied").1, None);
        for container in once["spec"]["containers"].as_array().expect("the containers are there") {
            let image = container["image"].as_str().expect("an image is a string");
            prop_assert!(podgate::pod::ImageReference::parse(image).is_ok(), "{}", image);
        }
    }

    #[test]
    fn what_mutate_does_not_know_survives(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((_, Some(patch))) = mutate(&policies, &pod) {
            let mut pod = pod;
            for operation in patch.as_array().expect("a patch is a list") {
                prop_assert!(touches_only_its_own(&pod, operation), "{operation}");
                let operation: json_patch::Patch = serde_json::from_value(json!([operation])).expect("it is a patch");
                json_patch::patch(&mut pod, &operation).expect("the patch applies");
            }
        }
    }

    #[test]
    fn no_configuration_makes_a_pod_that_is_refused_elsewhere(pod in pod(), configuration in configuration()) {
        prop_assume!(contradictions(&pod).is_empty());
        let policies = config::parse(&configuration).expect("the configuration is right");
        if let Some((patched, _)) = mutate(&policies, &pod) {
            prop_assert_eq!(contradictions(&patched), Vec::<String>::new());
        }
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_denied(pod in pod(), configuration in configuration()) {
        let policies = config::parse(&configuration).expect("the configuration is right");
        let body = review("UPDATE", &pod, &pod).to_string();
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let answer = admission::answer(&policies, webhook, body.as_bytes(), TODAY);
            prop_assert_eq!(answer.verdict, Verdict::Allowed);
        }
    }

    #[test]
    fn the_order_of_members_means_nothing(pod in pod()) {
        let policies = Policies::default();
        let review = review("CREATE", &pod, &Value::Null);
        let request = review["request"].as_object().expect("a review has a request");
        // serde_json sorts the keys of a Value, so that `object` comes before `operation` here.
        let backwards = |members: Vec<(&String, &Value)>| {
            let members: Vec<_> = members.iter().rev().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
            format!("{{{}}}", members.join(","))
        };
        let backwards = format!(
            r#"{{"request":{},"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}}"#,
            backwards(request.iter().collect())
        );
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let one = admission::answer(&policies, webhook, review.to_string().as_bytes(), TODAY);
            let other = admission::answer(&policies, webhook, backwards.as_bytes(), TODAY);
            prop_assert_eq!(one.body, other.body);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_allow(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            prop_assert_eq!(admission::answer(&Policies::default(), webhook, &body, TODAY).status, 400);
        }
    }

    #[test]
    fn no_damage_makes_it_panic(
        pod in pod(), at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut body = review("CREATE", &pod, &Value::Null).to_string().into_bytes();
        let at = at.index(body.len());
        if cut { body.truncate(at) } else { body[at] = with }
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let answer = admission::answer(&Policies::default(), webhook, &body, TODAY);
            prop_assert!(matches!(answer.status, 200 | 400));
            prop_assert!(!cut || answer.status == 400);
            serde_json::from_slice::<Value>(&answer.body).expect("every answer is JSON");
        }
    }
}
