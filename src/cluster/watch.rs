//! Being told that something changed. What it is now is read again either way: a watch only makes
//! that happen at once instead of at the next look.

use std::fmt::Debug;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::error::{ClusterError, Operation};

/// Between two watches. The keeper looks every few seconds anyway.
pub(super) const REST: Duration = Duration::from_secs(5);
/// How long the API server keeps a watch up.
pub(super) const WATCH_SECONDS: u32 = 290;
/// How long nothing may come, before the connection is taken for dead.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// Who is told.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) changed: Arc<Notify>,
    pub(super) failed: Arc<dyn Fn(&ClusterError) + Send + Sync>,
}

/// Tells of every change of one object, for ever.
pub(super) async fn watch<K>(api: Api<K>, name: String, title: String, told: Told)
where
    K: Clone + Debug + DeserializeOwned + Send + 'static,
{
    // A rule with `resourceNames` allows a watch that selects the one object by its name.
    let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH_SECONDS);
    loop {
        match api.watch_metadata(&params, "0").await {
            Ok(stream) => pass_on(pin!(stream), &told.changed).await,
            Err(error) => {
                let error = ClusterError::new(Operation::Watch, &title, &error);
                (told.failed)(&error);
                debug!(%error, "not told of changes: found at the next look");
            }
        }
        sleep(REST).await;
    }
}

/// Tells `changed` of what comes, until the stream ends.
async fn pass_on<K>(mut stream: Pin<&mut impl Stream<Item = kube::Result<WatchEvent<K>>>>, changed: &Notify) {
    while let Ok(Some(Ok(event))) = timeout(SILENCE_MAX, stream.next()).await {
        match event {
            WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_) => changed.notify_one(),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return,
        }
    }
}
