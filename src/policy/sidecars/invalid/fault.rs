//! What is said of a sidecar that no pod could have.

use std::fmt;

use super::super::super::suggestion::suggestion;
use crate::pod::ResourceName;

/// A sidecar that no pod could have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct InvalidSidecar {
    /// The keys that lead to the fault, from the root of the configuration file; a place in a list
    /// counts from 0.
    pub path: Vec<String>,
    /// What is wrong.
    pub fault: SidecarFault,
}

/// Why no pod could have a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SidecarFault {
    /// A key that the API does not have, or a value of another type.
    #[error("{0}")]
    Misfit(String),
    /// A container or volume without a name.
    #[error("there is no name: write one such as log-agent")]
    Unnamed,
    /// A name that the API server refuses.
    #[error(
        "{0:?} is no name of a container or volume: write at most 63 lower-case letters, digits and -, such as log-agent"
    )]
    NotAName(String),
    /// A container without an image.
    #[error("there is no image: name one with a version, such as registry.example.com/log-agent:1.4.2")]
    NoImage,
    /// `restartPolicy` of a native sidecar.
    #[error("a native sidecar has restartPolicy: Always: remove this, or set native: false beside the container")]
    RestartPolicy,
    /// A field that the API server refuses for the other operating system.
    #[error("the API server refuses {field} in a pod of os {os}: remove it, or name the other os beside the container")]
    OfOtherOs {
        /// The field of `securityContext`.
        field: &'static str,
        /// The operating system that the sidecar is for.
        os: &'static str,
    },
    /// A value that is needed.
    #[error("there is no {key}: write {what}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What belongs there.
        what: &'static str,
    },
    /// A value that is none of those that the API has.
    #[error("there is no {key} {value:?}: {}", suggestion(.value, .known, "values"))]
    Unknown {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// Those that the API has.
        known: &'static [&'static str],
    },
    /// A number that is too low or too high.
    #[error("{value} is too {}: write a number from {least} to {most}", if .value < .least { "low" } else { "high" })]
    OutOfRange {
        /// The number.
        value: i64,
        /// The least that there may be.
        least: i64,
        /// The most that there may be.
        most: i64,
    },
    /// A text of another form.
    #[error("{value:?} does not do here: write {form}")]
    Malformed {
        /// The text.
        value: String,
        /// The form that it should have.
        form: &'static str,
    },
    /// A value that an element of a list shares with one before it.
    #[error("{value:?} is the {key} of one before it: give this one another, or remove it")]
    Twice {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// None of several keys, of which there must be one.
    #[error("there is none of {}: write one of them", .0.join(", "))]
    NoneOf(Vec<&'static str>),
    /// Two keys, of which there may be one.
    #[error("there is {0} already: remove one of the two")]
    Beside(String),
    /// A key that means nothing without another.
    #[error("it needs {0}: write that too, or remove this")]
    Needs(&'static str),
    /// A key that does not go with another.
    #[error("it does not go with {0}: remove one of the two")]
    AtOddsWith(&'static str),
    /// A key that has no place there.
    #[error("{0}: remove it")]
    OutOfPlace(&'static str),
    /// A resource that is none of a container's.
    #[error(
        "{0:?} is no resource of a container: write cpu, memory, ephemeral-storage, hugepages-2Mi or one with a domain, such as \
         example.com/slots"
    )]
    NotAResource(String),
    /// An amount below zero.
    #[error("{0} is less than nothing: write an amount from 0 up")]
    Negative(String),
    /// A part of what comes only whole.
    #[error("{0} is no whole number, and {1} comes only whole: round it")]
    NotWhole(String, String),
    /// Huge pages that do not come to whole pages.
    #[error("{0} is not made of whole pages: write a multiple of the size in the name")]
    NotWholePages(String),
    /// A request above its limit.
    #[error("the request, {request}, is above the limit, {limit}: lower it, or raise the limit")]
    AboveLimit {
        /// The request.
        request: String,
        /// The limit.
        limit: String,
    },
    /// A request that is not its limit, where there is nothing to share.
    #[error("the request, {request}, is not the limit, {limit}, and nothing else goes with {name}: remove the request")]
    NotTheLimit {
        /// The resource.
        name: String,
        /// The request.
        request: String,
        /// The limit.
        limit: String,
    },
    /// A request without a limit, where there is nothing to share.
    #[error("of {0} there is a limit or nothing: write this in limits, where it is the request too")]
    NoLimit(String),
    /// A device that is no block device.
    #[error(
        "the volume {0:?} is no block device: only persistentVolumeClaim and ephemeral are; mount it, in volumeMounts"
    )]
    NotABlockDevice(String),
    /// A file of variables in a volume that pods do not share.
    #[error("the volume {0:?} is no emptyDir, from which alone variables are read")]
    NotAnEmptyDir(String),
    /// A mount of a volume that may not be there.
    #[error("there is no volume {0:?} among the sidecar's volumes: add it there; one that a pod has alike is shared")]
    NoVolume(String),
    /// Two containers of one name.
    #[error("the container {0:?} is here twice: keep one, or give one another name")]
    ContainerTwice(String),
    /// Two volumes of one name.
    #[error("the volume {0:?} is here twice, and not alike: make both the same, or give one another name")]
    VolumeTwice(String),
    /// Two containers that are always together, and take one port of the host.
    #[error("the sidecar {other} takes port {port} of the host too, and is in the same pods: give one another port")]
    HostPortTwice {
        /// The port.
        port: i64,
        /// The name of the other one.
        other: String,
    },
    /// A container or volume that a validation denies in every pod.
    #[error("no pod could have it, for validations.{policy} denies it: it {statement}")]
    Denied {
        /// The validation.
        policy: &'static str,
        /// What it says of the container or volume.
        statement: String,
    },
    /// Sidecars for whose sake a validation denies the pod as a whole.
    #[error("validations.{policy} denies every pod that has {}{}: the pod {statement}", Sidecars(.sidecars), Unlimited(*.limited))]
    PodDenied {
        /// The validation.
        policy: &'static str,
        /// The resource that it limits.
        limited: Option<ResourceName>,
        /// The names of the sidecars.
        sidecars: Vec<String>,
        /// What it says of the least of pods with them.
        statement: String,
    },
}

/// Sidecars in a message: the one at which it stands, or several by their names.
struct Sidecars<'a>(&'a [String]);

impl fmt::Display for Sidecars<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] | [_] => formatter.write_str("it"),
            [before @ .., last] => write!(formatter, "the sidecars {} and {last}", before.join(", ")),
        }
    }
}

/// Pods that leave a limit to their containers: the amount of the sidecar is nothing to the others.
struct Unlimited(Option<ResourceName>);

impl fmt::Display for Unlimited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(formatter, " and no spec.{}", name.limit_field()))
    }
}
