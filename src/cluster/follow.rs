//! Objects of one kind, followed: all that there are, and then each change, for ever.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::{Pin, pin};

use futures_util::{Stream, StreamExt as _};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::error::{ClusterError, Operation, ask};
use super::watch::{REST, SILENCE_MAX, WATCH_SECONDS};

/// How many objects the API server is asked for at a time.
const PAGE: u32 = 500;

/// What is heard of the objects of a kind; each by the name that [`Followed::read`] gives it.
pub(super) enum Change<V> {
    /// These there are, and no others.
    All(BTreeMap<String, V>),
    /// One is there, or is another than before.
    Set(String, V),
    /// One is gone.
    Gone(String),
    /// Nothing is heard: what was heard before may be old.
    Failed(ClusterError),
}

/// Objects of one kind.
pub(super) struct Followed<K, V> {
    pub(super) api: Api<K>,
    /// Which of them: a field selector.
    pub(super) fields: Option<String>,
    pub(super) operation: Operation,
    /// What errors call them.
    pub(super) title: &'static str,
    /// The little that is kept of each.
    pub(super) read: fn(K) -> (String, V),
}

impl<K, V> Followed<K, V>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    V: Send + 'static,
{
    /// For ever, or until nobody listens.
    pub(super) async fn follow<E: Send>(self, to: Sender<E>, wrap: fn(Change<V>) -> E) {
        loop {
            let heard = match self.list().await {
                Ok((all, version)) => match to.send(wrap(Change::All(all))).await {
                    Ok(()) => self.watch(version, &to, wrap).await,
                    Err(_) => return,
                },
                Err(error) => Err(error),
            };
            if let Err(error) = heard
                && to.send(wrap(Change::Failed(error))).await.is_err()
            {
                return;
            }
            sleep(REST).await;
        }
    }

    /// All that there are, page by page, and from which version on to watch.
    async fn list(&self) -> Result<(BTreeMap<String, V>, String), ClusterError> {
        let mut all = BTreeMap::new();
        let mut params = ListParams { field_selector: self.fields.clone(), limit: Some(PAGE), ..ListParams::default() };
        loop {
            let page = ask(self.operation, self.title, self.api.list(&params)).await?;
            all.extend(page.items.into_iter().map(self.read));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok((all, page.metadata.resource_version.unwrap_or_default()));
            }
        }
    }

    /// Passes each change on, until the API server no longer knows the version that was reached.
    async fn watch<E: Send>(
        &self,
        mut version: String,
        to: &Sender<E>,
        wrap: fn(Change<V>) -> E,
    ) -> Result<(), ClusterError> {
        let params = WatchParams {
            field_selector: self.fields.clone(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        loop {
            let stream = ask(self.operation, self.title, self.api.watch(&params, &version)).await?;
            if !self.pass_on(pin!(stream), &mut version, to, wrap).await {
                return Ok(());
            }
            sleep(REST).await;
        }
    }

    /// Whether the stream came to its end in order.
    async fn pass_on<E: Send>(
        &self,
        mut stream: Pin<&mut (impl Stream<Item = kube::Result<WatchEvent<K>>> + Send)>,
        version: &mut String,
        to: &Sender<E>,
        wrap: fn(Change<V>) -> E,
    ) -> bool {
        while let Ok(Some(event)) = timeout(SILENCE_MAX, stream.next()).await {
            let (object, is_there) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, true),
                Ok(WatchEvent::Deleted(object)) => (object, false),
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(_)) | Err(_) => return false,
            };
            if let Some(reached) = object.meta().resource_version.clone() {
                *version = reached;
            }
            let (name, value) = (self.read)(object);
            let change = if is_there { Change::Set(name, value) } else { Change::Gone(name) };
            if to.send(wrap(change)).await.is_err() {
                return false;
            }
        }
        true
    }
}
