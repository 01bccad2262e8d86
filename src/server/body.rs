//! Bodies within limits: a request's, read or thrown away, and an answer's.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::Limits;
use super::refusal::Refusal;

/// The most that is set aside for a body before it has arrived. What a client merely announces
/// costs nothing.
const SET_ASIDE: usize = 256 << 10;

/// The bytes that bodies may take, shared by all requests: one permit a byte. They are taken as
/// they arrive: were they taken when announced, clients that announce and never send would use up
/// everything.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// An answer, which counts until the last of it has left for the client: some answers are
    /// many times as long as their question, and some clients never take them.
    pub(super) fn hold(&self, answer: Vec<u8>) -> Result<Bytes, Refusal> {
        let share = self.take(answer.len())?;
        Ok(Bytes::from_owner(Held { answer, _share: share }))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).map_err(|_| Refusal::Busy)?;
        Arc::clone(&self.0).try_acquire_many_owned(bytes).map_err(|_| Refusal::Busy)
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
#[derive(Debug)]
pub(super) struct Received {
    bytes: Gathered,
    share: Option<OwnedSemaphorePermit>,
}

/// Most bodies arrive in one piece, which is used as it is.
#[derive(Debug)]
enum Gathered {
    One(Bytes),
    Many(Vec<u8>),
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        match &self.bytes {
            Gathered::One(bytes) => bytes,
            Gathered::Many(bytes) => bytes,
        }
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
    let mut received = Received { bytes: Gathered::One(Bytes::new()), share: None };
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
        let share = budget.take(piece.len())?;
        match &mut self.share {
            Some(all) => all.merge(share),
            none => *none = Some(share),
        }
        match &mut self.bytes {
            Gathered::One(first) if first.is_empty() => *first = piece,
            Gathered::One(first) => {
                let mut bytes = Vec::with_capacity(announced.min(SET_ASIDE).max(so_far + piece.len()));
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&piece);
                self.bytes = Gathered::Many(bytes);
            }
            Gathered::Many(bytes) => bytes.extend_from_slice(&piece),
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
