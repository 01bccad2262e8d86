//! One AdmissionReview in, one answer out: the whole of podgate without the wire.
//!
//! The server, `podgate review` and the tests all call [`answer`], and `podgate check` calls
//! [`examine()`], which is the same judgement: they cannot disagree.

mod examine;

use std::cmp::Reverse;

use time::Date;

pub use examine::{Examined, Finding, Unexaminable, examine};

use crate::pod::{ObjectMeta, Pod, SpecText, Workload, WorkloadKind};
use crate::policy::{Action, Candidate, InForce, Judgement, Mutated, Policies, PolicyName};
use crate::review::{self, Denial, Described, Malformed, Requested, Response, Review, Subresource};

/// The group that every node's kubelet is in.
const NODES_GROUP: &str = "system:nodes";

/// The member of a request that is to be stored.
const OBJECT: &str = "object";

/// The member of a request that an update replaces.
const OLD_OBJECT: &str = "oldObject";

/// Which of the two webhooks a review was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// `/mutate`, called first: patches pods, and denies what a patch cannot mend.
    Mutate,
    /// `/validate`, called last: judges the object that is about to be stored.
    Validate,
}

/// What podgate made of a review, in the few words that metrics and logs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Allowed, unchanged.
    Allowed,
    /// Allowed, with a patch.
    Patched,
    /// Denied by a policy.
    Denied,
    /// The envelope was right, the object in it was not: denied with code 400.
    Invalid,
    /// Not an AdmissionReview that podgate can read: HTTP 400.
    Malformed,
}

/// The answer to one review: what goes on the wire, and what is counted and logged.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status: 200, or 400 when the verdict is [`Verdict::Malformed`].
    pub status: u16,
    /// The body, always JSON.
    pub body: Vec<u8>,
    /// What podgate made of the review.
    pub verdict: Verdict,
    /// The request's operation (`CREATE`, …); `unknown` where it could not be read.
    pub operation: &'static str,
    /// The request's resource with its subresource, for what podgate judges (`pods`,
    /// `pods/resize`, `deployments`, …); `other` for everything else.
    pub resource: &'static str,
    /// Each violation's policy and the action taken on it, as metrics count them.
    pub violations: Vec<(&'static str, &'static str)>,
    /// What the log says of it, where there is something to say.
    pub event: Option<Box<Event>>,
}

/// Why a review gets a line in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventKind {
    /// The body was no AdmissionReview: HTTP 400.
    #[default]
    Unreadable,
    /// The object could not be judged: denied with code 400.
    Invalid,
    /// Policies denied it.
    Denied,
    /// Policies whose action is `audit` would deny it: allowed.
    Audited,
    /// The kubelet runs a pod that policies would deny: allowed with a warning.
    MirrorPod,
    /// Allowed, and of interest only to those who want to see every review.
    Unremarkable,
}

/// What the log needs to say of a review that was denied, or that deserves a line all the same.
#[derive(Debug, Default)]
pub struct Event {
    /// Why it gets a line.
    pub kind: EventKind,
    /// The review's uid, as kube-apiserver logs it too.
    pub uid: String,
    /// The namespace of the request; empty for a cluster-scoped object.
    pub namespace: String,
    /// The object's name, or its generateName and `*`.
    pub name: String,
    /// Who asked.
    pub user: String,
    /// The policies at work, joined by commas.
    pub policies: String,
    /// The message as its author sees it.
    pub message: String,
}

/// Answers one review. Never panics, never blocks, and never allows what it could not read.
///
/// `today`, in UTC, decides which exclusions have expired.
#[must_use]
pub fn answer(policies: &Policies, webhook: Webhook, body: &[u8], today: Date) -> Answer {
    match review::read(body) {
        Ok(review) => answer_review(policies, webhook, &review, today),
        Err(error) => answer_malformed(&error),
    }
}

/// What a log that has every review says of one whose answer has no event.
///
/// It reads the body again: such a log is rare, and everyone else would pay for keeping this.
#[must_use]
pub fn unremarkable(body: &[u8]) -> Option<Box<Event>> {
    let review = review::read(body).ok()?;
    Some(Box::new(Outcome::default().event(EventKind::Unremarkable, &review)))
}

fn answer_malformed(error: &Malformed) -> Answer {
    Answer {
        status: 400,
        body: review::malformed(error),
        verdict: Verdict::Malformed,
        operation: "unknown",
        resource: "other",
        violations: Vec::new(),
        event: Some(Box::new(Event { kind: EventKind::Unreadable, message: error.to_string(), ..Event::default() })),
    }
}

fn answer_review(policies: &Policies, webhook: Webhook, review: &Review<'_>, today: Date) -> Answer {
    let outcome = match &review.requested {
        Err(invalid) => Outcome::refused(Denial::bad_request(invalid.to_string())),
        Ok(_) => judge(policies, webhook, review, today, |judged| Outcome::of(review, judged)),
    };
    outcome.into_answer(review)
}

/// What the policies say of a request, before it is put into words.
#[derive(Debug, Default)]
struct Judged<'a> {
    judgements: Vec<Judgement<'a>>,
    /// What the mutations would make of it, were it not for a denial.
    mutated: Option<Mutated>,
    is_mirror: bool,
}

impl<'a> From<Vec<Judgement<'a>>> for Judged<'a> {
    fn from(judgements: Vec<Judgement<'a>>) -> Self {
        Self { judgements, ..Self::default() }
    }
}

/// Judges a request, and tells of it while the pod that was judged, with its sidecars, is there.
fn judge<T>(
    policies: &Policies,
    webhook: Webhook,
    review: &Review<'_>,
    today: Date,
    tell: impl FnOnce(Judged<'_>) -> T,
) -> T {
    let Some(policies) = policies.in_force(review.requester(today)) else { return tell(Judged::default()) };
    match (&review.requested, webhook) {
        (Ok(Requested::Pod { subresource, object, old_object }), _) => {
            // A pod without a spec was refused when it was read.
            let Some(pod) = of_pod(review, OBJECT, object) else { return tell(Judged::default()) };
            // Sidecars come when a pod is made: a label that would choose others later changes nothing in it.
            let old = old_object.as_ref().and_then(|old| of_pod(review, OLD_OBJECT, old));
            let old = old.map(|old| Candidate { labels: pod.labels, ..old });
            let is_mirror = object.metadata.is_mirror && review.groups.iter().any(|group| &**group == NODES_GROUP);
            match webhook {
                Webhook::Mutate if is_mirror => tell(Judged::default()),
                Webhook::Mutate => mutate(&policies, *subresource, &pod, old.as_ref(), tell),
                Webhook::Validate => validate(&policies, is_mirror, &pod, old.as_ref(), tell),
            }
        }
        (Ok(Requested::Workload { kind, object, old_object }), Webhook::Validate) => {
            let Some(pod) = of_template(review, OBJECT, *kind, object) else { return tell(Judged::default()) };
            let old = old_object.as_ref().and_then(|old| of_template(review, OLD_OBJECT, *kind, old));
            let old = old.as_ref().map(|old| policies.with_sidecars(old));
            tell(policies.validate_template(&policies.with_sidecars(&pod), old.as_ref()).into())
        }
        _ => tell(Judged::default()),
    }
}

fn validate<T>(
    policies: &InForce<'_>,
    is_mirror: bool,
    pod: &Candidate<'_>,
    old: Option<&Candidate<'_>>,
    tell: impl FnOnce(Judged<'_>) -> T,
) -> T {
    let (pod, old) = (policies.as_it_is(pod), old.map(|old| policies.as_it_is(old)));
    let mut judgements = policies.validate_pod(&pod, old.as_ref());
    if is_mirror {
        // The kubelet runs such a pod already; refusing its copy in the API would only hide it.
        for judgement in &mut judgements {
            judgement.action = judgement.action.min(Action::Warn);
        }
    }
    tell(Judged { judgements, mutated: None, is_mirror })
}

fn mutate<T>(
    policies: &InForce<'_>,
    subresource: Subresource,
    candidate: &Candidate<'_>,
    old: Option<&Candidate<'_>>,
    tell: impl FnOnce(Judged<'_>) -> T,
) -> T {
    let (pod, mutated) = match (subresource, old) {
        (Subresource::None, None) => {
            let pod = policies.with_sidecars(candidate);
            let mutated = policies.mutate_pod(&pod);
            (pod, mutated)
        }
        (Subresource::EphemeralContainers, Some(old)) => {
            let mutated = policies.mutate_added_ephemeral_containers(candidate.spec, old.spec);
            (policies.as_it_is(candidate), mutated)
        }
        // Other updates are not for /mutate to change, nor to judge.
        _ => return tell(Judged::default()),
    };
    let old = old.map(|old| policies.as_it_is(old));
    tell(Judged { judgements: policies.deny_early(&pod, old.as_ref()), mutated, is_mirror: false })
}

fn of_pod<'a>(review: &Review<'a>, member: &'static str, pod: &'a Pod<'a>) -> Option<Candidate<'a>> {
    let text = SpecText::new(review.text, member, "");
    Some(Candidate { labels: &pod.metadata.labels, spec: pod.spec.as_ref()?, text })
}

/// The pod that a workload asks for, where there is one.
fn of_template<'a>(
    review: &Review<'a>,
    member: &'static str,
    kind: WorkloadKind,
    workload: &'a Workload<'a>,
) -> Option<Candidate<'a>> {
    let template = workload.template(kind)?;
    let text = SpecText::new(review.text, member, kind.template_path());
    Some(Candidate { labels: &template.metadata.labels, spec: template.spec.as_ref()?, text })
}

/// How messages call what a review is about.
fn describe(review: &Review<'_>) -> Described {
    let (kind, resource, root, metadata) = match &review.requested {
        Ok(Requested::Workload { kind, object, .. }) => {
            (kind.as_str(), kind.resource(), kind.template_path(), Some(&object.metadata))
        }
        Ok(Requested::Pod { object, .. }) => ("pod", "pods", "", Some(&object.metadata)),
        _ => ("object", "other", "", None),
    };
    let name = metadata.map_or_else(String::new, |metadata| display_name(review, metadata));
    Described { kind, resource, namespace: review.namespace.to_string(), name, root }
}

/// The object's name, or its generateName and `*`.
fn display_name(review: &Review<'_>, metadata: &ObjectMeta<'_>) -> String {
    let named = [Some(&review.name), metadata.name.as_ref()].into_iter().flatten().find(|name| !name.is_empty());
    match (named, &metadata.generate_name) {
        (Some(name), _) => name.to_string(),
        (None, Some(generate_name)) => format!("{generate_name}*"),
        (None, None) => String::new(),
    }
}

/// What is decided about a request, before it is written down.
#[derive(Debug, Default)]
struct Outcome {
    denial: Option<Denial>,
    mutated: Option<Mutated>,
    warnings: Vec<String>,
    audited: Vec<String>,
    violations: Vec<(PolicyName, Action)>,
    event_kind: Option<EventKind>,
    is_invalid: bool,
}

impl Outcome {
    fn refused(denial: Denial) -> Self {
        Self { denial: Some(denial), event_kind: Some(EventKind::Invalid), is_invalid: true, ..Self::default() }
    }

    fn of(review: &Review<'_>, judged: Judged<'_>) -> Self {
        let Judged { judgements, mutated, is_mirror } = judged;
        if judgements.is_empty() {
            return Self { mutated, ..Self::default() };
        }
        let described = describe(review);
        let with = |action| judgements.iter().filter(move |judgement| judgement.action == action);
        let lines = |judged: &[&Judgement<'_>]| -> Vec<String> {
            judged.iter().map(|judgement| judgement.line(described.root)).collect()
        };
        let mut warned: Vec<_> = with(Action::Warn).collect();
        // The API server passes on only so much: first what would be denied on another day.
        warned.sort_by_key(|judgement| Reverse(judgement.rule.action));
        let warnings = lines(&warned);
        let audited = lines(&with(Action::Audit).collect::<Vec<_>>());
        let denied: Vec<_> = with(Action::Deny).collect();
        let denial = (!denied.is_empty()).then(|| Denial::forbidden(described, &denied));
        let event_kind = match &denial {
            _ if is_mirror => Some(EventKind::MirrorPod),
            Some(_) => Some(EventKind::Denied),
            None => (!audited.is_empty()).then_some(EventKind::Audited),
        };
        let mutated = mutated.filter(|_| denial.is_none());
        let violations = judgements.iter().map(|judgement| (judgement.violation.policy, judgement.action)).collect();
        Self { denial, mutated, warnings, audited, violations, event_kind, is_invalid: false }
    }

    fn into_answer(self, review: &Review<'_>) -> Answer {
        let verdict = match (&self.denial, &self.mutated) {
            (Some(_), _) if self.is_invalid => Verdict::Invalid,
            (Some(_), _) => Verdict::Denied,
            (None, Some(_)) => Verdict::Patched,
            (None, None) => Verdict::Allowed,
        };
        let event = self.event_kind.map(|kind| Box::new(self.event(kind, review)));
        let audit_annotations = self.audit_annotations();
        let response = Response {
            uid: &review.uid,
            denial: self.denial,
            patch: self.mutated.map(|mutated| mutated.patch),
            warnings: self.warnings,
            audit_annotations,
        };
        Answer {
            status: 200,
            body: response.to_json(),
            verdict,
            operation: review.operation.as_str(),
            resource: review.resource,
            violations: self.violations.iter().map(|(policy, action)| (policy.as_str(), action.as_str())).collect(),
            event,
        }
    }

    /// What the API server's audit log keeps: which policies did what. It puts the webhook's name
    /// before the keys.
    fn audit_annotations(&self) -> Vec<(&'static str, String)> {
        let mut annotations = Vec::new();
        for (key, action) in [("denied", Action::Deny), ("warned", Action::Warn), ("audited", Action::Audit)] {
            let policies =
                names(self.violations.iter().filter(|(_, taken)| *taken == action).map(|(policy, _)| *policy));
            if !policies.is_empty() {
                annotations.push((key, policies));
            }
        }
        if let Some(mutated) = &self.mutated {
            annotations.push(("patched", names(mutated.by.iter().copied())));
        }
        annotations
    }

    fn event(&self, kind: EventKind, review: &Review<'_>) -> Event {
        let metadata = match &review.requested {
            Ok(Requested::Pod { object, .. }) => Some(&object.metadata),
            Ok(Requested::Workload { object, .. }) => Some(&object.metadata),
            _ => None,
        };
        // Of each kind, what its line in the log is about.
        let (action, message) = match (kind, &self.denial) {
            (_, Some(denial)) => (Action::Deny, denial.message.clone()),
            (EventKind::Audited, None) => (Action::Audit, self.audited.join("\n")),
            (_, None) => (Action::Warn, self.warnings.join("\n")),
        };
        let at_work = self.violations.iter().filter(|(_, taken)| *taken == action).map(|(policy, _)| *policy);
        Event {
            kind,
            uid: review.uid.to_string(),
            namespace: review.namespace.to_string(),
            name: metadata.map_or_else(|| review.name.to_string(), |metadata| display_name(review, metadata)),
            user: review.user.to_string(),
            policies: names(at_work),
            message,
        }
    }
}

/// The names of policies, each once, joined by commas.
fn names(policies: impl Iterator<Item = PolicyName>) -> String {
    let mut names: Vec<&str> = policies.map(PolicyName::as_str).collect();
    names.dedup();
    names.join(",")
}
