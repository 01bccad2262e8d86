//! Bodies within limits: a request's, read or thrown away, and an answer's.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::limits::Limits;
use super::refusal::Refusal;

/// The least room that is made for a body that comes in pieces.
const ROOM_MIN: usize = 512;

/// The bytes of each body that need no share of the budget, for they are part of what a connection
/// takes: few reviews are larger, and those that are not get their answer while clients with large
/// bodies hold all there is.
pub(super) const FREE_BYTES: usize = 16 << 10;

/// The bytes that bodies may take beyond [`FREE_BYTES`] each, shared by all requests: one permit a byte.
/// They are taken as bodies arrive: were they taken when announced, clients that announce and never
/// send would use up everything.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// An answer, which counts until the last of it has left for the client: some answers are
    /// many times as long as their question, and some clients never take them.
    pub(super) fn hold(&self, answer: Vec<u8>) -> Result<Bytes, Refusal> {
        let share = self.grow(0, answer.capacity())?;
        Ok(Bytes::from_owner(Held { answer, _share: share }))
    }

    /// The share for what has taken `from` bytes, and is to take `to`.
    fn grow(&self, from: usize, to: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let beyond = |bytes: usize| bytes.saturating_sub(FREE_BYTES);
        let bytes = u32::try_from(beyond(to) - beyond(from)).map_err(|_| Refusal::Busy)?;
        Arc::clone(&self.0).try_acquire_many_owned(bytes).map_err(|_| Refusal::Busy)
    }
}

/// Whose turn it is to have a large review evaluated: one at a time, for that takes many times the
/// memory of the body, and milliseconds of a worker thread that small reviews should not wait for.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    large: usize,
    turn: Arc<Semaphore>,
}

impl Turns {
    /// Turns for bodies of `large` bytes or more.
    pub(super) fn new(large: usize) -> Self {
        Self { large, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Waits until a body of so many bytes may be evaluated; nobody else with a large one may before
    /// the turn is dropped.
    pub(super) async fn wait(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        if bytes < self.large { None } else { self.turn.acquire().await.ok() }
    }
}

/// An answer in memory, with its share of the budget.
#[derive(Debug)]
struct Held {
    answer: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

/// A body in memory, with its share of the budget.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Most bodies arrive in one piece, which is used as it is.
    whole: Bytes,
    gathered: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        if self.gathered.is_empty() { &self.whole } else { &self.gathered }
    }
}

/// Reads a whole body.
///
/// # Errors
///
/// Where the body is too large, too slow or broken, or where the budget is used up.
pub(super) async fn read<B>(body: &mut B, limits: &Limits, budget: &Budget) -> Result<Received, Refusal>
where
    B: Body<Data = Bytes, Error = axum::Error> + Unpin,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limits.body_bytes {
        return Err(Refusal::TooLarge { limit: limits.body_bytes });
    }
    timeout(limits.body, gather(body, announced, limits.body_bytes, budget))
        .await
        .unwrap_or(Err(Refusal::TooSlow { limit: limits.body }))
}

async fn gather<B>(body: &mut B, announced: usize, limit: usize, budget: &Budget) -> Result<Received, Refusal>
where
    B: Body<Data = Bytes, Error = axum::Error> + Unpin,
{
    let mut received = Received::default();
    while let Some(frame) = body.frame().await {
        // What is not data is a trailer, which podgate has no use for.
        if let Ok(piece) = frame.map_err(Refusal::Broken)?.into_data() {
            received.add(piece, announced, limit, budget)?;
        }
    }
    Ok(received)
}

impl Received {
    fn add(&mut self, piece: Bytes, announced: usize, limit: usize, budget: &Budget) -> Result<(), Refusal> {
        let so_far = self.as_ref().len();
        if piece.len() > limit - so_far {
            return Err(Refusal::TooLarge { limit });
        }
        if so_far == 0 && piece.len() == announced {
            self.share = Some(budget.grow(0, piece.len())?);
            self.whole = piece;
            return Ok(());
        }
        self.make_room(so_far + piece.len(), announced, budget)?;
        self.gathered.extend_from_slice(&std::mem::take(&mut self.whole));
        self.gathered.extend_from_slice(&piece);
        Ok(())
    }

    /// Makes room for `length` bytes in all, and for at least twice what there was, but not for more
    /// than was announced. Room counts, filled or not: it may be memory that was used before.
    fn make_room(&mut self, length: usize, announced: usize, budget: &Budget) -> Result<(), Refusal> {
        let room = self.gathered.capacity();
        if room < length {
            let enough = (2 * room).max(ROOM_MIN).min(announced).max(length);
            let share = budget.grow(room, enough)?;
            match &mut self.share {
                Some(all) => all.merge(share),
                none => *none = Some(share),
            }
            self.gathered.reserve_exact(enough - self.gathered.len());
        }
        Ok(())
    }
}

/// Reads the rest of a body and throws it away, as much as `limits` allow, so that its sender gets
/// to the answer.
pub(super) async fn discard<B>(body: &mut B, limits: &Limits)
where
    B: Body<Data = Bytes> + Unpin,
{
    let all = async {
        let mut left = limits.discard_bytes;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(fewer) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = fewer;
        }
    };
    // Either everything has been read or the client has had its time.
    let _ = timeout(limits.discard, all).await;
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn large_bodies_take_turns_and_small_ones_need_none() {
        let turns = Turns::new(10);
        let first = turns.wait(10).await;
        assert!(first.is_some());
        assert!(turns.wait(9).now_or_never().is_some());
        let mut vanishes = Box::pin(turns.wait(10));
        let mut next = Box::pin(turns.wait(10));
        assert!(vanishes.as_mut().now_or_never().is_none());
        assert!(next.as_mut().now_or_never().is_none());
        drop(vanishes);
        drop(first);
        assert!(next.now_or_never().flatten().is_some(), "who has gone keeps no place");
    }
}
