//! One AdmissionReview in, one answer out: the whole of podgate without the wire.

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

/// What the log needs to say of a review that was denied, or that deserves a line all the same.
#[derive(Debug)]
pub struct Event {
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
