//! What one connection is doing, as its stream, its requests and the server see it.
//!
//! A connection's stream notes what arrives and what cannot leave, its requests note their
//! beginning and their end; the connection itself reads from that when it is overdue. Nothing here
//! arms a timer, so that a request costs no timer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::Limits;

/// How long a connection gets the benefit of the doubt: a new one that has not spoken yet, and one
/// whose request is in flight when another connection needs its place. Many times what kube-apiserver
/// takes, and short enough that a client that stalls on purpose gains nothing.
const GRACE: Duration = Duration::from_secs(1);

/// How long an idle connection has to close: TLS and HTTP/2 say goodbye, and the client may not.
pub(super) const GOODBYE: Duration = Duration::from_secs(1);

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A TLS handshake that is not done.
    Handshake,
    Http1,
    Http2,
}

/// What the server wants of a connection. Orders only ever become stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Serve,
    /// Answer what comes, and let the client know that it should go elsewhere.
    Drain,
    /// Finish what is in flight, then close.
    Close,
    /// Close now.
    GiveUp,
}

/// Why a connection is overdue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    Idle,
    Head,
    Exchange,
    Write,
}

impl fmt::Display for Overdue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Idle => "no request for too long",
            Self::Head => "the head of a request took too long",
            Self::Exchange => "a request took too long",
            Self::Write => "the client did not take its answer",
        })
    }
}

/// When a connection will be overdue, and of what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) of: Overdue,
}

/// How much a connection deserves its place: when one has to go, it is the least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merit {
    /// A request is in flight, and not for so long that it is suspicious.
    at_work: bool,
    /// None, which is less than any time, where no request was ever completed.
    last_completed: Option<Instant>,
    opened: Instant,
}

/// What one connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    protocol: Protocol,
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    order: Order,
    /// Since when the connection is to close once it is idle.
    closing_since: Option<Instant>,
    /// Wakes the connection when it gets an order.
    waker: Option<Waker>,
    in_flight: usize,
    /// When the first of the requests in flight began, or the last one before now ended.
    progress: Instant,
    last_completed: Option<Instant>,
    /// HTTP/1.1: when the first byte of the request whose head is being read arrived.
    head_since: Option<Instant>,
    /// Since when bytes have been waiting to leave.
    write_since: Option<Instant>,
}

impl Activity {
    pub(super) fn new(protocol: Protocol, order: Order) -> Self {
        let opened = Instant::now();
        let state = State {
            order,
            closing_since: (order >= Order::Close).then_some(opened),
            waker: None,
            in_flight: 0,
            progress: opened,
            last_completed: None,
            head_since: None,
            write_since: None,
        };
        Self { protocol, opened, state: Mutex::new(state) }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes of a request have arrived. With none in flight they begin one, on HTTP/1.1; on HTTP/2
    /// they may be a ping, which is no reason to expect a request.
    pub(super) fn received(&self) {
        let mut state = self.state();
        if self.protocol == Protocol::Http1 && state.in_flight == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Bytes have to wait for the client to take those before them.
    pub(super) fn write_blocked(&self) {
        self.state().write_since.get_or_insert_with(Instant::now);
    }

    /// The client has taken everything.
    pub(super) fn flushed(&self) {
        self.state().write_since = None;
    }

    /// The head of a request has been read: the request is in flight until the exchange is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.state();
        if state.in_flight == 0 {
            state.progress = Instant::now();
        }
        state.in_flight += 1;
        state.head_since = None;
        Exchange { activity: Arc::clone(self), answered: false }
    }

    /// The order in force, and when the connection will be overdue; wakes `waker` at the next order.
    pub(super) fn consult(&self, limits: &Limits, waker: &Waker) -> (Order, Due) {
        let mut state = self.state();
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        (state.order, self.due(&state, limits))
    }

    fn due(&self, state: &State, limits: &Limits) -> Due {
        let reading = if state.in_flight > 0 {
            Due { at: state.progress + limits.exchange(), of: Overdue::Exchange }
        } else if let Some(since) = state.head_since {
            Due { at: since + limits.head, of: Overdue::Head }
        } else {
            let idle = || state.last_completed.unwrap_or(self.opened) + limits.idle;
            Due { at: state.closing_since.map_or_else(idle, |since| since + GOODBYE), of: Overdue::Idle }
        };
        match state.write_since.map(|since| since + limits.write) {
            Some(at) if at < reading.at => Due { at, of: Overdue::Write },
            _ => reading,
        }
    }

    /// The order in force.
    pub(super) fn order(&self) -> Order {
        self.state().order
    }

    /// Gives an order; a laxer one than that in force changes nothing.
    pub(super) fn obey(&self, order: Order) {
        let mut state = self.state();
        if order > state.order {
            state.order = order;
            if order >= Order::Close {
                state.closing_since.get_or_insert_with(Instant::now);
            }
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// How much the connection deserves its place at `now`.
    pub(super) fn merit(&self, now: Instant) -> Merit {
        let state = self.state();
        Merit {
            at_work: state.in_flight > 0 && now < state.progress + GRACE,
            last_completed: state.last_completed,
            opened: self.opened,
        }
    }

    /// Whether closing the connection at `now` would cost its client a request.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        let state = self.state();
        let is_new = state.last_completed.is_none() && now < self.opened + GRACE;
        state.in_flight > 0 || state.head_since.is_some() || state.write_since.is_some() || is_new
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in flight, from the end of its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    answered: bool,
}

impl Exchange {
    /// The request has an answer, so that its end is a completion.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.activity.state();
        state.in_flight -= 1;
        state.progress = now;
        if self.answered {
            state.last_completed = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(activity: &Activity) -> Due {
        activity.due(&activity.state(), &Limits::default())
    }

    fn activity(protocol: Protocol) -> Arc<Activity> {
        Arc::new(Activity::new(protocol, Order::Serve))
    }

    fn complete(activity: &Arc<Activity>) {
        activity.begin().answered();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_due_of_what_it_is_doing() {
        let activity = activity(Protocol::Http1);
        assert_eq!(due(&activity).of, Overdue::Idle);
        activity.received();
        assert_eq!(due(&activity).of, Overdue::Head);
        let mut exchange = activity.begin();
        assert_eq!(due(&activity).of, Overdue::Exchange);
        activity.write_blocked();
        assert_eq!(due(&activity).of, Overdue::Write);
        activity.flushed();
        exchange.answered();
        tokio::time::advance(Duration::from_secs(3)).await;
        drop(exchange);
        assert_eq!(due(&activity).of, Overdue::Idle);
        assert_eq!(due(&activity).at, Instant::now() + Limits::default().idle);
    }

    #[tokio::test(start_paused = true)]
    async fn more_bytes_of_a_head_do_not_prolong_it() {
        let activity = activity(Protocol::Http1);
        activity.received();
        let first = due(&activity).at;
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.received();
        assert_eq!(due(&activity).at, first);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_on_http2_are_not_a_request() {
        let activity = activity(Protocol::Http2);
        activity.received();
        assert_eq!(due(&activity).of, Overdue::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_have_the_least_merit_and_work_the_most() {
        let step = Duration::from_millis(1);
        let (older_stranger, stranger) = (activity(Protocol::Http1), {
            tokio::time::advance(step).await;
            activity(Protocol::Http1)
        });
        let (least_recent, recent, at_work) =
            (activity(Protocol::Http1), activity(Protocol::Http1), activity(Protocol::Http1));
        for known in [&least_recent, &recent] {
            tokio::time::advance(step).await;
            complete(known);
        }
        let exchange = at_work.begin();
        let now = Instant::now();
        let order = [&older_stranger, &stranger, &least_recent, &recent, &at_work];
        assert!(order.is_sorted_by_key(|activity| activity.merit(now)));
        assert!(at_work.merit(now) > recent.merit(now));
        // Work that never ends is no merit.
        assert!(at_work.merit(now + GRACE) < least_recent.merit(now + GRACE));
        drop(exchange);
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_never_taken_back() {
        let activity = activity(Protocol::Http1);
        activity.obey(Order::Close);
        activity.obey(Order::Drain);
        assert_eq!(activity.order(), Order::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn an_aborted_request_is_not_a_completed_one() {
        let activity = activity(Protocol::Http2);
        drop(activity.begin());
        assert_eq!(activity.merit(Instant::now()).last_completed, None);
    }
}
