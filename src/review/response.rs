//! The response: written in one go, with nothing in it but what kube-apiserver reads.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::Simd;
use base64::engine::general_purpose::PAD;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::Malformed;
use super::denial::{Denial, Details};
use crate::patch::Patch;

/// The most characters of one warning, and of all in one response; kube-apiserver cuts there.
const WARNING_LENGTH_MAX: usize = 256;
const WARNINGS_LENGTH_MAX: usize = 4096;

/// Room for everything in a response but patch, message and warnings.
const ENVELOPE_LENGTH: usize = 512;

/// Room for one operation of a patch.
const OPERATION_LENGTH: usize = 160;

/// What is answered to one review.
#[derive(Debug)]
pub struct Response<'a> {
    /// `request.uid`, echoed.
    pub uid: &'a str,
    /// Why not, if the request is refused.
    pub denial: Option<Denial>,
    /// The patch, on an allowed mutation that changes something.
    pub patch: Option<Patch>,
    /// What the author should know all the same.
    pub warnings: Vec<String>,
    /// What the audit log should keep, with keys that are plain words.
    pub audit_annotations: Vec<(&'static str, String)>,
}

impl Response<'_> {
    /// The AdmissionReview that is sent back.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let patch = self.patch.as_ref().map(|patch| base64_string(&to_json(patch, patch.len() * OPERATION_LENGTH)));
        let patch_length = patch.as_ref().map_or(0, |patch| patch.get().len());
        let length = patch_length + self.denial.as_ref().map_or(0, |denial| denial.message.len() * 3);
        let review = AdmissionReview {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response: AdmissionResponse {
                uid: self.uid,
                allowed: self.denial.is_none(),
                status: self
                    .denial
                    .as_ref()
                    .map_or(Verdict::Allowed { code: 200 }, |denial| Verdict::Denied(denial.into())),
                patch_type: patch.as_ref().map(|_| "JSONPatch"),
                patch,
                warnings: fit_warnings(&self.warnings),
                audit_annotations: AuditAnnotations(&self.audit_annotations),
            },
        };
        to_json(&review, ENVELOPE_LENGTH + length)
    }
}

/// The body of an HTTP 400: a `metav1.Status`, whose message kube-apiserver passes on.
#[must_use]
pub fn malformed(error: &Malformed) -> Vec<u8> {
    let denial = Denial::bad_request(error.to_string());
    to_json(&Status::from(&denial), 0)
}

/// Warnings as long as the API server passes them on, equal ones once; how many were left out is the last.
fn fit_warnings(warnings: &[String]) -> Vec<String> {
    let mut known = HashSet::new();
    let warnings: Vec<&String> = warnings.iter().filter(|warning| known.insert(*warning)).collect();
    let mut room = WARNINGS_LENGTH_MAX;
    let mut fitted = Vec::with_capacity(warnings.len().min(WARNINGS_LENGTH_MAX / WARNING_LENGTH_MAX + 1));
    for (index, warning) in warnings.iter().enumerate() {
        let fitting = shorten(warning);
        let length = fitting.chars().count();
        // The last warning's room is kept for the count of those left out.
        let is_last = index + 1 == warnings.len();
        if room < length || (!is_last && room - length < "and 1000000 more".len()) {
            fitted.push(format!("and {} more", warnings.len() - index));
            break;
        }
        room -= length;
        fitted.push(fitting);
    }
    fitted
}

/// A warning travels in an HTTP header, so that kube-apiserver drops one with a line break.
fn shorten(warning: &str) -> String {
    let on_one_line = warning.chars().map(|character| if character.is_control() { ' ' } else { character });
    if warning.chars().nth(WARNING_LENGTH_MAX).is_none() {
        return on_one_line.collect();
    }
    on_one_line.take(WARNING_LENGTH_MAX - 1).chain(['…']).collect()
}

#[expect(clippy::expect_used, reason = "writing to memory does not fail, and every key is a string")]
fn to_json(value: &impl Serialize, length: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(length);
    serde_json::to_writer(&mut json, value).expect("structs of strings and numbers are always JSON");
    json
}

/// A JSON string of bytes in base64 (RFC 4648, section 4), whose alphabet has nothing that JSON escapes.
#[expect(clippy::expect_used, reason = "base64 between quotes is a JSON string")]
fn base64_string(bytes: &[u8]) -> Box<RawValue> {
    let mut json = String::with_capacity(bytes.len().div_ceil(3) * 4 + 2);
    json.push('"');
    Simd::standard(PAD).encode_string(bytes, &mut json);
    json.push('"');
    RawValue::from_string(json).expect("base64 between quotes is a JSON string")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: AdmissionResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionResponse<'a> {
    uid: &'a str,
    allowed: bool,
    status: Verdict<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "AuditAnnotations::is_empty")]
    audit_annotations: AuditAnnotations<'a>,
}

struct AuditAnnotations<'a>(&'a [(&'static str, String)]);

impl AuditAnnotations<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for AuditAnnotations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// `status`, which some clients, kube's types among them, want to see on every answer.
#[derive(Serialize)]
#[serde(untagged)]
enum Verdict<'a> {
    Allowed { code: u16 },
    Denied(Status<'a>),
}

/// A `metav1.Status`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    #[serde(rename = "status")]
    outcome: &'static str,
    message: &'a str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

impl<'a> From<&'a Denial> for Status<'a> {
    fn from(denial: &'a Denial) -> Self {
        let Denial { message, code, reason, details } = denial;
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            outcome: "Failure",
            message,
            reason,
            details: details.as_ref(),
            code: *code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_what_the_api_server_passes_on() {
        let many: Vec<String> = (0..100).map(|index| format!("{index}\n{}", "警".repeat(300))).collect();
        let fitted = fit_warnings(&many);
        assert!(fitted.iter().all(|warning| warning.chars().count() <= 256 && !warning.contains('\n')));
        assert!(fitted.iter().map(|warning| warning.chars().count()).sum::<usize>() <= 4096);
        assert!(fitted[0].starts_with("0 警") && fitted[0].ends_with('…'));
        assert_eq!(fitted.last().map(String::as_str), Some("and 85 more"));
        assert_eq!(fit_warnings(&many[..1]).len(), 1);
    }

    #[test]
    fn equal_warnings_are_one_and_leave_room_for_others() {
        let mut many = vec!["a".repeat(200); 30];
        many.push("b".to_owned());
        assert_eq!(fit_warnings(&many), ["a".repeat(200), "b".to_owned()]);
    }
}
