//! Every case in `tests/cases` and every recorded review in `tests/reviews`, through a real TLS
//! socket. `tests/cases/README.md` has the format.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use support::{Podgate, Reply, Request};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

/// A case, and the body that its `request` is, byte for byte: the order of members matters to
/// who reads it.
struct Case {
    path: PathBuf,
    value: Value,
    review: Vec<u8>,
}

impl Case {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).expect("a case can be read");
        let members: HashMap<String, &RawValue> = serde_json::from_str(&text).expect("a case is a JSON object");
        let review = members.get("request").map(|review| review.get().as_bytes().to_vec()).unwrap_or_default();
        Self { value: json(&path), path, review }
    }
}

/// The request of a case.
fn request(case: &Value, review: Vec<u8>) -> Request {
    let body = match case["raw_body"].as_str() {
        None => review,
        Some(body) if case["raw_body_encoding"] == "base64" => STANDARD.decode(body).expect("raw_body is base64"),
        Some(body) => expand(body, &case["raw_body_expand"]).into_bytes(),
    };
    let mut request = Request::post(case["path"].as_str().expect("a case has a path"), body);
    if let Some(method) = case["method"].as_str() {
        method.clone_into(&mut request.method);
    }
    for (name, value) in case["headers"].as_object().into_iter().flatten() {
        request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        request.headers.extend(value.as_str().map(|value| (name.clone(), value.to_owned())));
    }
    request
}

fn expand(body: &str, rules: &Value) -> String {
    rules.as_array().into_iter().flatten().fold(body.to_owned(), |body, rule| {
        let text = |name: &str| rule[name].as_str().expect("a rule has a token and a text");
        let count = rule["count"].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a rule has a count");
        body.replace(text("token"), &text("text").repeat(count))
    })
}

/// What was answered to a request that carries `object`, and what is wrong with it.
struct Answer<'c> {
    status: u16,
    whole: Value,
    response: Value,
    object: &'c Value,
    /// The object after the patch.
    patched: Value,
    /// The operations of the patch, where there is one.
    patch: Option<Value>,
    faults: Vec<String>,
}

impl<'c> Answer<'c> {
    fn read(reply: &Reply, path: &str, request: &'c Value) -> Self {
        let object = &request["request"]["object"];
        let mut answer = Self {
            status: reply.status,
            whole: Value::Null,
            response: Value::Null,
            object,
            patched: object.clone(),
            patch: None,
            faults: Vec::new(),
        };
        match serde_json::from_slice::<Value>(&reply.body) {
            Ok(whole) => answer.whole = whole,
            Err(error) => answer.fault(format!("the body is no JSON: {error}")),
        }
        if !reply.head.to_ascii_lowercase().contains("content-type: application/json") {
            answer.fault("the answer is not called JSON");
        }
        answer.response = answer.whole["response"].clone();
        if reply.status == 200 {
            answer.check_envelope(path, request);
        } else if answer.whole["kind"] != "Status" || answer.whole["message"].as_str().is_none_or(str::is_empty) {
            answer.fault("an error is a Status with a message");
        }
        answer
    }

    fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    /// What is true of every answer.
    fn check_envelope(&mut self, path: &str, request: &Value) {
        if self.whole["apiVersion"] != "admission.k8s.io/v1" || self.whole["kind"] != "AdmissionReview" {
            self.fault("the answer is no AdmissionReview");
        }
        if !request.is_null() && self.response["uid"] != request["request"]["uid"] {
            self.fault("the uid is not echoed");
        }
        if self.response["allowed"] == false && self.message().is_empty() {
            self.fault("a denial has a message");
        }
        let patch = self.response["patch"].as_str().map(|patch| STANDARD.decode(patch).expect("a patch is base64"));
        if patch.is_some() != (self.response["patchType"] == "JSONPatch") {
            self.fault("patch and patchType come together");
        }
        let Some(patch) = patch else { return };
        if path != "/mutate" || self.response["allowed"] != true {
            self.fault("only an allowed mutation has a patch");
        }
        let operations: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch is a JSON Patch");
        json_patch::patch(&mut self.patched, &operations).expect("a patch applies");
        self.patch = Some(serde_json::from_slice(&patch).expect("a patch is JSON"));
    }

    fn message(&self) -> &str {
        self.response["status"]["message"].as_str().unwrap_or_default()
    }

    fn check(&mut self, expect: &Value) {
        let any = expect["http_any"].as_array().cloned();
        let statuses = any.unwrap_or_else(|| expect["http"].as_u64().into_iter().map(Value::from).collect());
        if !statuses.is_empty() && !statuses.contains(&Value::from(self.status)) {
            let fault = format!("the status is {}, not one of {statuses:?}: {}", self.status, self.whole);
            self.fault(fault);
        }
        if self.status != 200 {
            return;
        }
        let allowed = &expect["allowed"];
        if !allowed.is_null() && self.response["allowed"] != *allowed {
            let fault = format!("allowed is {}: {}", self.response["allowed"], self.message());
            self.fault(fault);
        }
        self.check_words(expect);
        self.check_patch(expect);
        self.check_whole(expect);
    }

    fn check_words(&mut self, expect: &Value) {
        let message = self.message().to_lowercase();
        for part in strings(&expect["message_contains"]) {
            if !message.contains(&part.to_lowercase()) {
                let fault = format!("{part:?} is not in the message {message:?}");
                self.fault(fault);
            }
        }
        for (name, pointer) in [("message", "/status/message"), ("warnings", "/warnings")] {
            let found = self.response.pointer(pointer).unwrap_or(&Value::Null);
            if expect.get(name).is_some_and(|expected| expected != found) {
                let fault = format!("{name} is {found:#}, not {:#}", expect[name]);
                self.fault(fault);
            }
        }
    }

    fn check_patch(&mut self, expect: &Value) {
        if expect["no_patch"] == true && self.patch.is_some() {
            self.fault("there is a patch");
        }
        let none = Map::new();
        let is_allowed = self.response["allowed"] == true;
        let mut expected = expect["patched"].as_object().unwrap_or(&none).clone();
        if is_allowed {
            expected.extend(expect["if_allowed_patched"].as_object().unwrap_or(&none).clone());
        }
        for (pointer, value) in &expected {
            if self.patched.pointer(pointer) != Some(value) {
                let found = self.patched.pointer(pointer).cloned();
                let fault = format!("{pointer} is {found:?} after the patch, not {value}");
                self.fault(fault);
            }
        }
        let absent = if is_allowed { strings(&expect["absent_if_allowed"]) } else { Vec::new() };
        for pointer in strings(&expect["absent"]).into_iter().chain(absent) {
            if self.patched.pointer(pointer).is_some() {
                let fault = format!("{pointer} is there after the patch");
                self.fault(fault);
            }
        }
        if expect["only_these_changes"] == true {
            let mut due = self.object.clone();
            for (pointer, value) in &expected {
                set(&mut due, pointer, value);
            }
            if due != self.patched {
                let fault = format!("other things changed: {:#}", self.patched);
                self.fault(fault);
            }
        }
    }

    fn check_whole(&mut self, expect: &Value) {
        for (pointer, value) in expect["response"].as_object().into_iter().flatten() {
            if self.whole.pointer(pointer) != Some(value) {
                let fault = format!("{pointer} of the answer is not {value}");
                self.fault(fault);
            }
        }
        for pointer in strings(&expect["response_absent"]) {
            if self.whole.pointer(pointer).is_some() {
                let fault = format!("{pointer} of the answer is there");
                self.fault(fault);
            }
        }
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Sets what a pointer names, with the objects on the way that are not there yet.
fn set(root: &mut Value, pointer: &str, value: &Value) {
    let mut place = root;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        place = match place {
            Value::Array(list) => &mut list[token.parse::<usize>().expect("an index is a number")],
            other => &mut other[token],
        };
    }
    place.clone_from(value);
}

/// Sends every case of a folder, and fails with all that is wrong, case by case. Cases of one
/// configuration share a server.
fn run(cases: impl IntoIterator<Item = Case>) {
    let mut of_configuration: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases {
        let configuration = case.value.get("config").map(Value::to_string).unwrap_or_default();
        of_configuration.entry(configuration).or_default().push(case);
    }
    let count: usize = of_configuration.values().map(Vec::len).sum();
    assert!(count > 0, "there are no cases");
    let reports = of_configuration.into_iter().map(|(configuration, cases)| run_with(&configuration, cases));
    let report: String = reports.collect();
    assert!(report.is_empty(), "of {count} cases:\n{report}");
}

/// What is wrong with the answers of a server that has this configuration.
fn run_with(configuration: &str, cases: Vec<Case>) -> String {
    let server = Podgate::start(configuration);
    let mut report = String::new();
    for Case { path, value: case, review } in cases {
        let started = Instant::now();
        let reply = server.send(&request(&case, review));
        let mut answer = Answer::read(&reply, case["path"].as_str().unwrap_or_default(), &case["request"]);
        answer.check(&case["expect"]);
        if let Some(seconds) = case["expect"]["max_seconds"].as_u64()
            && started.elapsed() > Duration::from_secs(seconds)
        {
            answer.fault(format!("the answer took {:?}", started.elapsed()));
        }
        for fault in answer.faults {
            writeln!(report, "{}: {fault}", path.display()).expect("writing to a String does not fail");
        }
    }
    // Whatever was sent, the server still answers.
    let reply = server.send(&Request::post("/validate", "{}"));
    assert_eq!(reply.status, 400);
    report
}

#[test]
fn every_case_is_answered_as_it_says() {
    run(files(&folder("cases")).into_iter().map(Case::read));
}

/// The recorded reviews: what is expected of each is in `tests/reviews/expected`, under the same
/// name. A review without expectations is a failure, and so is the other way round.
#[test]
fn every_recorded_review_is_answered_exactly() {
    let cases = ["mutate", "validate"].into_iter().flat_map(|webhook| {
        let reviews = files(&folder("reviews").join(webhook));
        let expected = folder("reviews/expected").join(webhook);
        assert_eq!(reviews.len(), files(&expected).len(), "each review in {webhook} has its expectations");
        reviews.into_iter().map(move |path| {
            let mut case = Map::new();
            case.insert("path".to_owned(), format!("/{webhook}").into());
            case.insert("expect".to_owned(), json(&expected.join(path.file_name().expect("a file has a name"))));
            case.insert("request".to_owned(), json(&path));
            let review = std::fs::read(&path).expect("a review can be read");
            Case { path, value: Value::Object(case), review }
        })
    });
    run(cases);
}
