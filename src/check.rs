//! Manifests judged, offline: every object of a file is created, as a cluster would, and each
//! violation gets its place in the file.
//!
//! Pure: the bytes of files in, a report out.

use std::rc::Rc;

use serde_json::Value;
use time::Date;

use crate::admission::{Finding, Unexaminable};
use crate::creation::{self, Creation, CreationError, Kind};
use crate::manifest::{self, Language, Node, Object, Position};
use crate::policy::{Action, Policies, PolicyName, Workloads};
use crate::review::{Invalid, Malformed};

/// What objects are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Checker<'c> {
    /// The policies.
    pub policies: &'c Policies,
    /// The namespace of objects that name none.
    pub namespace: &'c str,
    /// The day in UTC, by which exclusions expire.
    pub today: Date,
    /// Whether to keep what would be stored.
    pub keeps_stored: bool,
}

/// What was found in some files.
#[derive(Debug, Default)]
pub struct Report {
    /// How many files were looked at, unreadable ones too.
    pub files: usize,
    /// The objects that were judged.
    pub objects: Vec<Checked>,
    /// What could not be read, or would be refused for other reasons than a policy.
    pub unreadable: Vec<Unreadable>,
    /// How many objects are of kinds that podgate does not judge.
    pub others: usize,
    /// How many workloads were not judged, because the configuration leaves them alone.
    pub unjudged: usize,
    /// How many workloads have nothing in them that pods are made from, as patches have not.
    pub without_pods: usize,
    /// What would be stored of all that is an object, in the order of the files, where the checker
    /// keeps it.
    pub stored: Vec<Stored>,
}

/// An object that was judged.
#[derive(Debug)]
pub struct Checked {
    /// The file.
    pub file: Rc<str>,
    /// Where in it the object begins.
    pub position: Position,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name, or its generateName and `*`; empty where it has neither.
    pub name: String,
    /// What is wrong with it, in the order of the policies.
    pub violations: Vec<Violation>,
}

/// A violation with its place in the file.
#[derive(Debug)]
pub struct Violation {
    /// Whether a pod is refused for it.
    pub severity: Severity,
    /// The policy.
    pub policy: PolicyName,
    /// The path of the field, from the root of the object.
    pub field: String,
    /// Where the field stands, or what of its path is there.
    pub position: Position,
    /// The line that its author would see in a cluster.
    pub message: String,
}

/// How much a violation weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The pod is refused.
    Denied,
    /// The pod is stored, and its author sees a warning.
    Warning,
}

impl Severity {
    /// The word for it in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Warning => "warning",
        }
    }
}

/// A file, or something in it, that cannot be judged.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub file: String,
    /// Where in it, unless it is about the file as a whole.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
}

/// What becomes of an object.
#[derive(Debug)]
pub enum Stored {
    /// It is stored so.
    As(Value),
    /// It is refused; its kind, namespace and name.
    Refused(String),
}

impl Stored {
    /// An object with its type, which the items of a list such as `PodList` need not have.
    fn whole(mut value: Value, object: &Object<'_>) -> Self {
        if let Value::Object(members) = &mut value {
            members.entry("apiVersion").or_insert_with(|| object.api_version.into());
            members.entry("kind").or_insert_with(|| object.kind.into());
        }
        Self::As(value)
    }
}

impl Checked {
    /// `Pod team-a/web`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        format!("{} {}/{name}", self.kind, self.namespace)
    }
}

impl Report {
    /// How many violations there are of that severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let all = self.objects.iter().flat_map(|object| &object.violations);
        all.filter(|violation| violation.severity == severity).count()
    }

    /// Whether there was nothing in all files, neither an object nor what should have been one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.others + self.unjudged + self.without_pods == 0 && self.unreadable.is_empty()
    }

    /// Adds what is wrong with all files together, to be told of the first.
    pub fn add_fault(&mut self, file: &str, message: String) {
        self.unreadable.push(Unreadable { file: file.to_owned(), position: None, message });
    }

    /// Adds what is wrong with a file as a whole.
    pub fn add_unreadable(&mut self, file: &str, message: String) {
        self.files += 1;
        self.add_fault(file, message);
    }

    /// Judges all that is in a file.
    pub fn add_file(&mut self, checker: &Checker<'_>, file: &str, bytes: &[u8]) {
        self.files += 1;
        let file: Rc<str> = file.into();
        for document in manifest::documents(bytes, Language::of(&file)) {
            let root = match document {
                Ok(root) => root,
                Err(fault) => {
                    self.cannot_read(&file, fault.position, fault.to_string());
                    continue;
                }
            };
            for object in manifest::objects(&root) {
                match object {
                    Ok(object) => self.add_object(checker, &file, &object),
                    Err(fault) => self.cannot_read(&file, fault.position, fault.to_string()),
                }
            }
        }
    }

    fn cannot_read(&mut self, file: &str, position: Position, message: String) {
        self.unreadable.push(Unreadable { file: file.to_owned(), position: Some(position), message });
    }

    fn add_object(&mut self, checker: &Checker<'_>, file: &Rc<str>, object: &Object<'_>) {
        let Some(kind) = Kind::of(object.api_version, object.kind) else {
            self.others += 1;
            return self.keep(checker, object);
        };
        if matches!(kind, Kind::Workload(_)) && checker.policies.workloads == Workloads::Off {
            self.unjudged += 1;
            return self.keep(checker, object);
        }
        let namespace = object.namespace.unwrap_or(checker.namespace);
        let created = serde_json::to_vec(object.node)
            .map_err(CreationError::from)
            .and_then(|json| creation::create(checker.policies, kind, namespace, &json, checker.today));
        match created {
            Ok(creation) => match Pods::of(object.node, kind) {
                Pods::InPlace => self.add_creation(checker, file, kind, object, creation),
                Pods::Nowhere => {
                    self.without_pods += 1;
                    self.keep(checker, object);
                }
                Pods::Misplaced { found, belongs } => {
                    let message =
                        format!("{found} is no field of a {}, whose pods are made from {belongs}", kind.as_str());
                    self.cannot_read(file, object.node.position_of(found), message);
                }
            },
            Err(error) => {
                let (position, message) = place(object.node, &error);
                self.cannot_read(file, position, message);
            }
        }
    }

    /// Keeps an object that is not judged.
    fn keep(&mut self, checker: &Checker<'_>, object: &Object<'_>) {
        if checker.keeps_stored {
            // Every node is JSON.
            self.stored.extend(serde_json::to_value(object.node).map(|value| Stored::whole(value, object)));
        }
    }

    fn add_creation(
        &mut self,
        checker: &Checker<'_>,
        file: &Rc<str>,
        kind: Kind,
        object: &Object<'_>,
        creation: Creation,
    ) {
        let Creation { findings, mutated } = creation;
        let is_refused = findings.iter().any(|finding| finding.action == Action::Deny);
        let checked = Checked {
            file: Rc::clone(file),
            position: object.node.position,
            kind: kind.as_str(),
            namespace: object.namespace.unwrap_or(checker.namespace).to_owned(),
            name: object.name.clone(),
            violations: findings.into_iter().filter_map(|finding| violation(object.node, finding)).collect(),
        };
        if checker.keeps_stored {
            self.stored.push(if is_refused {
                Stored::Refused(checked.title())
            } else {
                Stored::whole(mutated, object)
            });
        }
        self.objects.push(checked);
    }
}

/// A finding that its author would hear of; of a workload, when its pods come.
fn violation(node: &Node, finding: Finding) -> Option<Violation> {
    let severity = match finding.action_on_pods {
        Action::Deny => Severity::Denied,
        Action::Warn => Severity::Warning,
        Action::Audit | Action::Off => return None,
    };
    let Finding { policy, field, line, .. } = finding;
    let position = node.position_of(&field);
    Some(Violation { severity, policy, field, position, message: line })
}

/// Where what pods are made from stands.
enum Pods {
    InPlace,
    /// There is none, as in a patch for Kustomize.
    Nowhere,
    Misplaced {
        found: &'static str,
        belongs: &'static str,
    },
}

impl Pods {
    fn of(node: &Node, kind: Kind) -> Self {
        /// Where people put it by mistake.
        const ELSEWHERE: [&str; 5] =
            ["spec.jobTemplate", "spec.template", "jobTemplate", "template", "spec.containers"];
        let Kind::Workload(kind) = kind else { return Self::InPlace };
        let is_there = |path: &str| node.field(path).is_some_and(|found| !matches!(found.value, manifest::Value::Null));
        let belongs = kind.pod_path();
        if is_there(belongs) {
            return Self::InPlace;
        }
        let is_on_the_way = |path: &str| belongs.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        match ELSEWHERE.into_iter().find(|path| is_there(path) && !is_on_the_way(path)) {
            Some(found) => Self::Misplaced { found, belongs },
            None => Self::Nowhere,
        }
    }
}

/// Where an object is wrong, and how, in words that do not speak of a review.
fn place(node: &Node, error: &CreationError) -> (Position, String) {
    const ROOT: &str = "request.object";
    let CreationError::Unexaminable(Unexaminable::Invalid(Invalid::Missing(path) | Invalid::Type { path, .. })) = error
    else {
        let message = match error {
            // Its line and column are those of the review.
            CreationError::Unexaminable(Unexaminable::Malformed(Malformed::Json(error))) => {
                let message = error.to_string();
                message.split(" at line ").next().unwrap_or_default().to_owned()
            }
            other => other.to_string(),
        };
        return (node.position, message);
    };
    let path = path.strip_prefix(ROOT).unwrap_or(path).trim_start_matches('.');
    let position = node.position_of(path);
    let message = error.to_string();
    let message = message.strip_prefix(ROOT).unwrap_or(&message).trim_start_matches(['.', ':', ' ']);
    // The reader of reviews says it in the words of its language, and of numbers not as they are written.
    let expected = message.split_once(": invalid type: ").and_then(|(_, types)| types.rsplit_once(", expected "));
    let message = match (node.field(path), expected) {
        (Some(found), Some((_, expected))) => format!("{path}: {}", other_type(&found.value, expected)),
        _ => message.to_owned(),
    };
    (position, message)
}

/// What is said of a value of another type than is due; the API's own types keep their names.
fn other_type(found: &manifest::Value, expected: &str) -> String {
    use manifest::Value;
    let due = match expected {
        "a string" => "text",
        "a boolean" => "true or false",
        "i32" | "i64" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        other => other,
    };
    let advice = match (found, due) {
        (Value::Bool(_) | Value::Number(_), "text") => ": quote it",
        (Value::Text(text), "true or false") if matches!(&**text, "true" | "false") => ": remove the quotes",
        (Value::Text(text), "a whole number") if text.parse::<i64>().is_ok() => ": remove the quotes",
        _ => "",
    };
    format!("this is {}, and {due} belongs here{advice}", found.noun())
}
