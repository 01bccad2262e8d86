//! The connections that are open, and which of them has to go when there is no room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::{IntCounter, IntGauge};
use tokio::time::Instant;

use super::activity::{Activity, Order, Protocol};

/// A bounded set of open connections. A new one always finds a place: at the cap, the connection of
/// the least merit is told to give its up. So strangers who hold connections open without using
/// them cannot lock anyone out.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    open: IntGauge,
    evicted: IntCounter,
    members: Mutex<Members>,
}

#[derive(Debug)]
struct Members {
    next: u64,
    /// What every connection was told last, and a new one is told at once.
    order: Order,
    activities: HashMap<u64, Arc<Activity>>,
}

impl Pool {
    /// A pool for at most `most` connections, that keeps `open` at their number and counts those it
    /// turned out in `evicted`.
    pub(super) fn new(most: usize, open: IntGauge, evicted: IntCounter) -> Arc<Self> {
        let members = Mutex::new(Members { next: 0, order: Order::Serve, activities: HashMap::new() });
        Arc::new(Self { most: most.max(1), open, evicted, members })
    }

    /// A place for a new connection.
    pub(super) fn admit(self: &Arc<Self>, protocol: Protocol) -> Seat {
        let mut members = self.members();
        while members.activities.len() >= self.most {
            self.evict_from(&mut members);
        }
        let activity = Arc::new(Activity::new(protocol, members.order));
        let id = members.next;
        members.next += 1;
        members.activities.insert(id, Arc::clone(&activity));
        self.open.inc();
        Seat { pool: Arc::clone(self), id, activity }
    }

    /// Turns out the connection of the least merit, if there is one.
    pub(super) fn evict(&self) {
        self.evict_from(&mut self.members());
    }

    fn evict_from(&self, members: &mut Members) {
        let now = Instant::now();
        let least = members.activities.iter().min_by_key(|(_, activity)| activity.merit(now)).map(|(id, _)| *id);
        if let Some(activity) = least.and_then(|id| members.activities.remove(&id)) {
            activity.obey(Order::GiveUp);
            self.open.dec();
            self.evicted.inc();
        }
    }

    /// Gives an order to every connection, and to every one to come.
    pub(super) fn order(&self, order: Order) {
        let mut members = self.members();
        members.order = members.order.max(order);
        for activity in members.activities.values() {
            activity.obey(order);
        }
    }

    /// Whether closing now would cost any client a request.
    pub(super) fn is_busy(&self) -> bool {
        let now = Instant::now();
        self.members().activities.values().any(|activity| activity.is_busy(now))
    }

    /// Whether no connection is open.
    pub(super) fn is_empty(&self) -> bool {
        self.members().activities.is_empty()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // Every change of the members is complete before anything can panic.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the pool, given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    pool: Arc<Pool>,
    id: u64,
    activity: Arc<Activity>,
}

impl Seat {
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Whoever was turned out has lost the place already.
        if self.pool.members().activities.remove(&self.id).is_some() {
            self.pool.open.dec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(most: usize) -> Arc<Pool> {
        let open = IntGauge::new("open", "open").expect("a valid name");
        let evicted = IntCounter::new("evicted", "evicted").expect("a valid name");
        Pool::new(most, open, evicted)
    }

    #[test]
    fn a_newcomer_takes_the_place_of_the_least() {
        let pool = pool(2);
        let known = pool.admit(Protocol::Http1);
        known.activity().begin().answered();
        let stranger = pool.admit(Protocol::Http1);
        let _newcomer = pool.admit(Protocol::Http1);
        assert_eq!(stranger.activity().order(), Order::GiveUp);
        assert_eq!(known.activity().order(), Order::Serve);
        assert_eq!((pool.open.get(), pool.evicted.get()), (2, 1));
    }

    #[test]
    fn a_place_is_given_back_once() {
        let pool = pool(1);
        let first = pool.admit(Protocol::Http1);
        let second = pool.admit(Protocol::Http1);
        drop(first);
        assert_eq!(pool.open.get(), 1);
        drop(second);
        assert_eq!(pool.open.get(), 0);
        assert!(pool.is_empty());
    }

    #[test]
    fn a_connection_that_comes_late_gets_the_order_of_all() {
        let pool = pool(2);
        let early = pool.admit(Protocol::Http1);
        pool.order(Order::Drain);
        assert_eq!(early.activity().order(), Order::Drain);
        assert_eq!(pool.admit(Protocol::Http2).activity().order(), Order::Drain);
    }
}
