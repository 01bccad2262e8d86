//! The objects in a request, read as what the request says that they are.

use serde_json::value::RawValue;

use super::Invalid;
use super::request::Operation;
use crate::beginning::beginning;
use crate::json::{Members, Object};
use crate::pod::{Pod, Workload, WorkloadKind};

/// The most characters of an error, or of the path to it, that a message shows.
const SHOWN_MAX: usize = 512;

/// The part of a pod that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// The pod itself.
    None,
    /// `pods/ephemeralcontainers`.
    EphemeralContainers,
    /// `pods/resize`.
    Resize,
}

/// What a request asks to store, as far as podgate judges it.
#[derive(Debug)]
pub enum Requested<'a> {
    /// A pod.
    Pod {
        /// Which part of it.
        subresource: Subresource,
        /// The pod to store.
        object: Box<Pod<'a>>,
        /// The pod that an update replaces.
        old_object: Option<Box<Pod<'a>>>,
    },
    /// An object with a pod template.
    Workload {
        /// Its kind.
        kind: WorkloadKind,
        /// The object to store.
        object: Box<Workload<'a>>,
        /// The object that an update replaces.
        old_object: Option<Box<Workload<'a>>>,
    },
    /// Anything else, which podgate lets pass.
    Other,
}

/// What podgate takes an object for.
#[derive(Debug, Clone, Copy)]
pub(super) enum JudgedAs {
    Pod(Subresource),
    Workload(WorkloadKind),
    Nothing,
}

impl JudgedAs {
    pub(super) const fn resource(self) -> &'static str {
        match self {
            Self::Pod(Subresource::None) => "pods",
            Self::Pod(Subresource::EphemeralContainers) => "pods/ephemeralcontainers",
            Self::Pod(Subresource::Resize) => "pods/resize",
            Self::Workload(kind) => kind.resource(),
            Self::Nothing => "other",
        }
    }
}

/// `object` or `oldObject`, as far as it could be read when it came.
#[derive(Debug, Default)]
pub(super) enum Payload<'a> {
    /// Missing, `null`, or of no concern.
    #[default]
    Absent,
    Raw(&'a RawValue),
    Pod(Box<Pod<'a>>),
    Workload(Box<Workload<'a>>),
}

/// Both objects of a request.
#[derive(Debug)]
pub(super) struct Payloads<'a> {
    pub(super) operation: Operation,
    pub(super) object: Payload<'a>,
    pub(super) old_object: Payload<'a>,
}

impl<'a> Payloads<'a> {
    /// Reads what has not been read yet.
    pub(super) fn read_as(self, judged_as: JudgedAs) -> Result<Requested<'a>, Invalid> {
        let has_old_object = self.operation == Operation::Update;
        match judged_as {
            JudgedAs::Pod(subresource) => Ok(Requested::Pod {
                subresource,
                object: self.object.into_pod("request.object")?,
                old_object: has_old_object.then(|| self.old_object.into_pod("request.oldObject")).transpose()?,
            }),
            JudgedAs::Workload(kind) => Ok(Requested::Workload {
                kind,
                object: self.object.into_workload("request.object")?,
                old_object: has_old_object.then(|| self.old_object.into_workload("request.oldObject")).transpose()?,
            }),
            JudgedAs::Nothing => Ok(Requested::Other),
        }
    }
}

impl<'a> Payload<'a> {
    fn into_pod(self, path: &str) -> Result<Box<Pod<'a>>, Invalid> {
        let pod = match self {
            Self::Pod(pod) => pod,
            Self::Raw(raw) => Box::new(read_object(raw, path)?),
            Self::Absent | Self::Workload(_) => return Err(Invalid::Missing(path.to_owned())),
        };
        if pod.spec.is_none() {
            return Err(Invalid::Missing(format!("{path}.spec")));
        }
        Ok(pod)
    }

    fn into_workload(self, path: &str) -> Result<Box<Workload<'a>>, Invalid> {
        match self {
            Self::Workload(workload) => Ok(workload),
            Self::Raw(raw) => Ok(Box::new(read_object(raw, path)?)),
            Self::Absent | Self::Pod(_) => Err(Invalid::Missing(path.to_owned())),
        }
    }
}

fn read_object<'a, T: Members<'a>>(raw: &'a RawValue, root: &str) -> Result<T, Invalid> {
    match with_path::<Object<T>>(raw.get()) {
        Ok(Object(value)) => Ok(value),
        Err((path, error)) if path == "." => Err(Invalid::Type { path: root.to_owned(), error }),
        Err((path, error)) => Err(Invalid::Type { path: format!("{root}.{path}"), error }),
    }
}

/// Reads JSON; an error comes with the path to where it is, `.` for the root.
pub(super) fn with_path<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, (String, String)> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let message = error.inner().to_string();
        // The path says where; a column of a body that nobody has on a screen does not.
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        (beginning(&error.path().to_string(), SHOWN_MAX).into_owned(), beginning(what, SHOWN_MAX).into_owned())
    })
}
