//! `hostPath`: no part of the node's file system but the allowed directories.
//!
//! A path is compared after lexical cleaning: `//`, `/.` and a trailing `/` mean nothing. A path
//! with an element `..`, a relative or an empty one, and one with a backslash (a separator on
//! Windows nodes) are denied whatever is allowed. An entry is exact; `/data/shared/**` admits
//! the directory and all below it. Exact is the default because a symlink inside a writable
//! shared directory can point anywhere.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer};

use super::violation::Listed;
use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, Quoted, Rule, RuleExclude, Subject, Validation,
    Violation, null_is_default, words,
};
use crate::pod::PodSpec;

/// The settings of `hostPath`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostPath {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: PodExclude,
    /// The directories that may be mounted; `[/data/shared, /tmp/container]` by default.
    #[serde(deserialize_with = "allowed")]
    pub allow: Vec<AllowedPath>,
}

impl Default for HostPath {
    fn default() -> Self {
        let exact = |path: &str| AllowedPath { path: path.to_owned(), and_below: false };
        Self {
            action: Action::Deny,
            message: None,
            exclude: PodExclude::default(),
            allow: vec![exact("/data/shared"), exact("/tmp/container")],
        }
    }
}

fn allowed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AllowedPath>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(|| HostPath::default().allow))
}

/// A directory that may be mounted: an absolute path, cleaned, with `/**` behind it when all
/// below it may be mounted as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPath {
    path: String,
    and_below: bool,
}

/// An entry that admits nothing, or not what it seems to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} {fault}: write an absolute path such as /data/shared, or /data/shared/** for all below it too")]
pub struct InvalidAllowedPath {
    entry: String,
    fault: &'static str,
}

impl AllowedPath {
    /// Reads an entry.
    ///
    /// # Errors
    /// A path that would be denied as a hostPath whatever is allowed, or a `*` elsewhere than
    /// in `/**` at the end.
    pub fn parse(entry: &str) -> Result<Self, InvalidAllowedPath> {
        let (path, and_below) = match entry.strip_suffix("/**") {
            Some("") => ("/", true),
            Some(path) => (path, true),
            None => (entry, false),
        };
        let invalid = |fault| InvalidAllowedPath { entry: entry.to_owned(), fault };
        if path.contains('*') {
            return Err(invalid("has a * elsewhere than in /** at its end"));
        }
        let path = clean(path).map_err(|fault| invalid(fault.as_str()))?;
        Ok(Self { path: path.into_owned(), and_below })
    }

    fn admits(&self, cleaned: &str) -> bool {
        if !self.and_below {
            return cleaned == self.path;
        }
        self.path == "/"
            || cleaned.strip_prefix(&*self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl<'de> Deserialize<'de> for AllowedPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&words::text(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for AllowedPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path.as_str(), self.and_below) {
            ("/", true) => formatter.write_str("/**"),
            (path, true) => write!(formatter, "{path}/**"),
            (path, false) => formatter.write_str(path),
        }
    }
}

/// Why a path is denied whatever is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Empty,
    Relative,
    Backslash,
    Parent,
}

impl Fault {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::Relative => "is not absolute",
            Self::Backslash => "has a backslash",
            Self::Parent => "has an element \"..\"",
        }
    }
}

/// The path without what means nothing in it.
fn clean(path: &str) -> Result<Cow<'_, str>, Fault> {
    if path.is_empty() {
        return Err(Fault::Empty);
    }
    if path.contains('\\') {
        return Err(Fault::Backslash);
    }
    let Some(below_root) = path.strip_prefix('/') else {
        return Err(Fault::Relative);
    };
    if below_root.split('/').any(|element| element == "..") {
        return Err(Fault::Parent);
    }
    let is_clean = below_root.is_empty() || below_root.split('/').all(|element| !matches!(element, "" | "."));
    if is_clean {
        return Ok(Cow::Borrowed(path));
    }
    let cleaned = below_root
        .split('/')
        .filter(|element| !matches!(*element, "" | "."))
        .fold(String::new(), |cleaned, element| cleaned + "/" + element);
    Ok(Cow::Owned(if cleaned.is_empty() { "/".to_owned() } else { cleaned }))
}

impl HostPath {
    /// What is wrong with a path, and what to do.
    fn complaint(&self, path: &str) -> Option<String> {
        let seen = match clean(path) {
            Ok(cleaned) if self.allow.iter().any(|allowed| allowed.admits(&cleaned)) => return None,
            Ok(cleaned) if cleaned == path => Quoted(path).to_string(),
            Ok(cleaned) => format!("{}, that is {}", Quoted(path), Quoted(&cleaned)),
            Err(fault) => format!("{}, which {}", Quoted(path), fault.as_str()),
        };
        Some(match &*self.allow {
            [] => format!("mounts {seen}: no hostPath is allowed"),
            allow => format!("mounts {seen}: allowed are {}", Listed(allow)),
        })
    }
}

impl Validation for HostPath {
    const NAME: PolicyName = PolicyName("hostPath");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        for (index, volume) in pod.volumes.iter().enumerate() {
            let Some(host_path) = &volume.host_path else { continue };
            if let Some(statement) = self.complaint(&host_path.path) {
                violations.push(Violation {
                    policy: Self::NAME,
                    subject: Subject::Volume { index, name: &volume.name },
                    field: Field::Own("hostPath.path"),
                    found: Found::Value(Cow::Borrowed(&host_path.path)),
                    statement,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::{AllowedPath, HostPath};
    use serde_json::json;

    fn complaints(policy: &HostPath, path: &str) -> Vec<String> {
        lines(policy, json!({"volumes": [{"name": "logs", "hostPath": {"path": path}}]}))
    }

    #[test]
    fn allows_the_allowed_however_it_is_written() {
        for path in ["/data/shared", "/data/shared/", "//data//shared/./", "/./data/shared", "/tmp/container/."] {
            assert!(complaints(&HostPath::default(), path).is_empty(), "{path}");
        }
    }

    #[test]
    fn denies_everything_else_and_shows_what_it_saw() {
        let begin = "hostPath: volume \"logs\" (spec.volumes[0].hostPath.path) mounts";
        let end = "allowed are /data/shared, /tmp/container";
        for (path, seen) in [
            ("/", "\"/\""),
            ("//", "\"//\", that is \"/\""),
            ("/var/log", "\"/var/log\""),
            ("/data/shared/x", "\"/data/shared/x\""),
            ("/data/shared2", "\"/data/shared2\""),
            ("/data//x/", "\"/data//x/\", that is \"/data/x\""),
            ("/data/shared/../../etc", "\"/data/shared/../../etc\", which has an element \"..\""),
            ("/data/shared/..", "\"/data/shared/..\", which has an element \"..\""),
            ("data/shared", "\"data/shared\", which is not absolute"),
            ("", "\"\", which is empty"),
            ("/data/shared\\..\\x", "\"/data/shared\\..\\x\", which has a backslash"),
            ("/data/shared\u{0}", "\"/data/shared\\u{0}\""),
        ] {
            assert_eq!(complaints(&HostPath::default(), path), [format!("{begin} {seen}: {end}")]);
        }
    }

    #[test]
    fn a_subtree_has_its_root_and_names_that_begin_with_dots() {
        let policy =
            HostPath { allow: AllowedPath::parse("/data/shared/**").into_iter().collect(), ..HostPath::default() };
        for path in ["/data/shared", "/data/shared/x/y", "/data/shared/..cache", "/data/shared/.x"] {
            assert!(complaints(&policy, path).is_empty(), "{path}");
        }
        for path in ["/data/sharedx", "/data", "/data/shared/../x", "/data/shared/x/.."] {
            assert_eq!(complaints(&policy, path).len(), 1, "{path}");
        }
    }

    #[test]
    fn refuses_entries_that_admit_nothing() {
        for entry in ["", "data", "/data/*", "/data/**/x", "/a/../b", "C:\\data", "**", "*"] {
            assert!(AllowedPath::parse(entry).is_err(), "{entry}");
        }
        for (entry, shown) in [("/data/", "/data"), ("//data/./**", "/data/**"), ("/**", "/**"), ("/", "/")] {
            assert_eq!(AllowedPath::parse(entry).map(|path| path.to_string()), Ok(shown.to_owned()));
        }
    }

    #[test]
    fn null_is_no_host_path() {
        let spec = json!({"volumes": [{"name": "a", "hostPath": null, "emptyDir": {}}]});
        assert!(lines(&HostPath::default(), spec).is_empty());
    }
}
