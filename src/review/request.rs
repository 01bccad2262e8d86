//! The request: read in one pass, borrowed from the body.
//!
//! kube-apiserver writes `kind`, `subResource` and `operation` before the objects, so that these
//! can be read as what they are, or skipped, when they come. A body in any other order, or one that
//! cannot be read so, is read again, slowly: its objects are kept as raw text until the end, and what
//! is wrong with it is told.

use serde::de::{Error as _, MapAccess};
use serde_json::value::RawValue;
use time::Date;

use super::payload::{JudgedAs, Payload, Payloads, Requested, Subresource, with_path};
use super::{Invalid, Malformed};
use crate::json::{self, Members, Object, Skipped, Text, WithoutRepeatedKeys};
use crate::pod::WorkloadKind;
use crate::policy::Requester;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A request that can be answered.
#[derive(Debug)]
pub struct Review<'a> {
    /// `request.uid`.
    pub uid: Text<'a>,
    /// `request.operation`.
    pub operation: Operation,
    /// `request.name`; empty while the API server has not made one of `generateName`.
    pub name: Text<'a>,
    /// `request.namespace`; empty for an object without one.
    pub namespace: Text<'a>,
    /// `request.userInfo.username`.
    pub user: Text<'a>,
    /// `request.userInfo.groups`.
    pub groups: Vec<Text<'a>>,
    /// The body.
    pub text: &'a str,
    /// The resource that podgate takes the request for, such as `pods/resize`; `other` for what it lets pass.
    pub resource: &'static str,
    /// What is to be judged.
    pub requested: Result<Requested<'a>, Invalid>,
}

impl Review<'_> {
    /// Who asks, where, and when.
    #[must_use]
    pub fn requester(&self, today: Date) -> Requester<'_> {
        Requester { namespace: &self.namespace, user: &self.user, groups: &self.groups, today }
    }
}

/// `request.operation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `CREATE`.
    Create,
    /// `UPDATE`.
    Update,
    /// `DELETE`.
    Delete,
    /// `CONNECT`.
    Connect,
}

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect].into_iter().find(|known| known.as_str() == text)
    }

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Reads a body.
///
/// # Errors
/// What makes it no AdmissionReview that can be answered. An object in it that cannot be judged
/// is told in [`Review::requested`] instead, for such a review can be answered.
pub fn read(body: &[u8]) -> Result<Review<'_>, Malformed> {
    if body.is_empty() {
        return Err(Malformed::Empty);
    }
    if body.starts_with("\u{feff}".as_bytes()) {
        return Err(Malformed::ByteOrderMark);
    }
    let text = std::str::from_utf8(body).map_err(|error| Malformed::NotUtf8(error.valid_up_to()))?;
    match json::read::<Object<Envelope<'_, false>>>(text) {
        Ok(Object(envelope)) => envelope.into_review(text),
        Err(json::Unusual) => read_again(text),
    }
}

/// Reads a body that is wrong or in an unusual order: first as JSON, then the envelope, at last
/// the objects, to tell at which of them the fault is.
fn read_again(text: &str) -> Result<Review<'_>, Malformed> {
    serde_json::from_str::<WithoutRepeatedKeys>(text).map_err(Malformed::Json)?;
    let Object(envelope) = with_path::<Object<Envelope<'_, true>>>(text).map_err(|(path, error)| Malformed::Type {
        path: if path == "." { "the body".to_owned() } else { path },
        error,
    })?;
    envelope.into_review(text)
}

#[derive(Debug, Default)]
struct Envelope<'a, const OBJECTS_RAW: bool> {
    api_version: Text<'a>,
    kind: Text<'a>,
    request: Option<Request<'a, OBJECTS_RAW>>,
}

impl<'de, const OBJECTS_RAW: bool> Members<'de> for Envelope<'de, OBJECTS_RAW> {
    const EXPECTED: &'static str = "an AdmissionReview";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "apiVersion" => self.api_version = text(map)?,
            "kind" => self.kind = text(map)?,
            "request" => self.request = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'a, const OBJECTS_RAW: bool> Envelope<'a, OBJECTS_RAW> {
    fn into_review(self, text: &'a str) -> Result<Review<'a>, Malformed> {
        if *self.api_version != *API_VERSION || *self.kind != *KIND {
            return Err(Malformed::NotAReview {
                api_version: self.api_version.to_string(),
                kind: self.kind.to_string(),
            });
        }
        self.request.ok_or(Malformed::Missing("request"))?.into_review(text)
    }
}

/// `request`; with `OBJECTS_RAW` the objects in it are not looked into.
#[derive(Debug, Default)]
struct Request<'a, const OBJECTS_RAW: bool> {
    uid: Text<'a>,
    kind: Option<GroupVersionKind<'a>>,
    resource: Option<GroupVersionResource<'a>>,
    subresource: Text<'a>,
    name: Text<'a>,
    namespace: Text<'a>,
    operation: Text<'a>,
    user_info: UserInfo<'a>,
    object: Payload<'a>,
    old_object: Payload<'a>,
}

impl<'de, const OBJECTS_RAW: bool> Members<'de> for Request<'de, OBJECTS_RAW> {
    const EXPECTED: &'static str = "an AdmissionRequest";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "uid" => self.uid = text(map)?,
            "kind" => self.kind = json::optional_object(map)?,
            "resource" => self.resource = json::optional_object(map)?,
            "subResource" => self.subresource = text(map)?,
            "name" => self.name = text(map)?,
            "namespace" => self.namespace = text(map)?,
            "operation" => self.operation = text(map)?,
            "userInfo" => self.user_info = json::optional_object(map)?.unwrap_or_default(),
            "object" => self.object = self.payload(map)?,
            "oldObject" => self.old_object = self.payload(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'a, const OBJECTS_RAW: bool> Request<'a, OBJECTS_RAW> {
    /// Reads an object as what the members before it say that it is.
    fn payload<A: MapAccess<'a>>(&self, map: &mut A) -> Result<Payload<'a>, A::Error> {
        if OBJECTS_RAW {
            let raw: Option<&RawValue> = map.next_value()?;
            return Ok(raw.map_or(Payload::Absent, Payload::Raw));
        }
        if self.kind.is_none() || self.operation.is_empty() {
            return Err(A::Error::custom("an object that comes before what it is"));
        }
        Ok(match self.judged_as() {
            JudgedAs::Pod(_) => json::optional_object(map)?.map_or(Payload::Absent, |pod| Payload::Pod(Box::new(pod))),
            JudgedAs::Workload(_) => {
                json::optional_object(map)?.map_or(Payload::Absent, |workload| Payload::Workload(Box::new(workload)))
            }
            JudgedAs::Nothing => {
                map.next_value::<Skipped>()?;
                Payload::Absent
            }
        })
    }

    fn judged_as(&self) -> JudgedAs {
        let Some(kind) = &self.kind else { return JudgedAs::Nothing };
        let is_pod = *kind.group == *"" && *kind.version == *"v1" && *kind.kind == *"Pod";
        match (Operation::parse(&self.operation), &*self.subresource) {
            (Some(Operation::Create | Operation::Update), "") if is_pod => JudgedAs::Pod(Subresource::None),
            (Some(Operation::Update), "ephemeralcontainers") if is_pod => {
                JudgedAs::Pod(Subresource::EphemeralContainers)
            }
            (Some(Operation::Update), "resize") if is_pod => JudgedAs::Pod(Subresource::Resize),
            (Some(Operation::Create | Operation::Update), "") => {
                WorkloadKind::of(&kind.group, &kind.version, &kind.kind).map_or(JudgedAs::Nothing, JudgedAs::Workload)
            }
            _ => JudgedAs::Nothing,
        }
    }

    fn into_review(self, text: &'a str) -> Result<Review<'a>, Malformed> {
        let judged_as = self.judged_as();
        let missing = |path| Err(Malformed::Missing(path));
        if self.uid.is_empty() {
            return missing("request.uid");
        }
        if self.kind.is_none_or(|kind| kind.version.is_empty() || kind.kind.is_empty()) {
            return missing("request.kind");
        }
        if self.resource.is_none_or(|resource| resource.version.is_empty() || resource.resource.is_empty()) {
            return missing("request.resource");
        }
        if self.operation.is_empty() {
            return missing("request.operation");
        }
        let operation =
            Operation::parse(&self.operation).ok_or_else(|| Malformed::Operation(self.operation.to_string()))?;
        let payloads = Payloads { operation, object: self.object, old_object: self.old_object };
        Ok(Review {
            uid: self.uid,
            operation,
            name: self.name,
            namespace: self.namespace,
            user: self.user_info.username,
            groups: self.user_info.groups,
            text,
            resource: judged_as.resource(),
            requested: payloads.read_as(judged_as),
        })
    }
}

/// A string, or `null` for an empty one, as Go decodes it.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Text<'de>, A::Error> {
    Ok(map.next_value::<Option<_>>()?.unwrap_or_default())
}

#[derive(Debug, Default)]
struct GroupVersionKind<'a> {
    group: Text<'a>,
    version: Text<'a>,
    kind: Text<'a>,
}

impl<'de> Members<'de> for GroupVersionKind<'de> {
    const EXPECTED: &'static str = "a GroupVersionKind";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "group" => self.group = text(map)?,
            "version" => self.version = text(map)?,
            "kind" => self.kind = text(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct GroupVersionResource<'a> {
    version: Text<'a>,
    resource: Text<'a>,
}

impl<'de> Members<'de> for GroupVersionResource<'de> {
    const EXPECTED: &'static str = "a GroupVersionResource";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "version" => self.version = text(map)?,
            "resource" => self.resource = text(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct UserInfo<'a> {
    username: Text<'a>,
    groups: Vec<Text<'a>>,
}

impl<'de> Members<'de> for UserInfo<'de> {
    const EXPECTED: &'static str = "a UserInfo";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "username" => self.username = text(map)?,
            "groups" => self.groups = json::text_list(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_sends_is_read_quickly() {
        let mut count = 0;
        let recorded =
            ["mutate", "validate"].map(|webhook| std::fs::read_dir(format!("tests/reviews/{webhook}")).unwrap());
        for entry in recorded.into_iter().flatten() {
            let path = entry.unwrap().path();
            let body = std::fs::read_to_string(&path).unwrap();
            let quick = json::read::<Object<Envelope<'_, false>>>(&body);
            let slow = serde_json::from_str::<Object<Envelope<'_, false>>>(&body).unwrap();
            assert_eq!(quick.map(|envelope| format!("{envelope:?}")), Ok(format!("{slow:?}")), "{}", path.display());
            count += 1;
        }
        assert!(count > 0, "there are recorded reviews");
    }
}
