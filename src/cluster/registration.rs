//! The two webhook configurations. podgate sets their caBundle and nothing else, and never creates
//! them: deleting them is the emergency exit.

use std::fmt::Debug;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::{ClusterError, Operation, ask};
use super::secret::MANAGER;
use super::watch::{self, Told};
use crate::certs::Registration;

/// A kind of webhook configuration.
pub(super) trait Configuration: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// `metadata.name` of podgate's own.
    const NAME: &'static str;
    /// What errors call it.
    const TITLE: &'static str;

    /// The name of each webhook, and how it is called.
    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    const NAME: &'static str = "pod-security-mutator";
    const TITLE: &'static str = "the MutatingWebhookConfiguration pod-security-mutator";

    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|webhook| (webhook.name.as_str(), &webhook.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const NAME: &'static str = "pod-security-validator";
    const TITLE: &'static str = "the ValidatingWebhookConfiguration pod-security-validator";

    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|webhook| (webhook.name.as_str(), &webhook.client_config)).collect()
    }
}

/// Reads a configuration, which may not be there.
pub(super) async fn read<K: Configuration>(api: &Api<K>) -> Result<Option<K>, ClusterError> {
    ask(Operation::ReadRegistration, K::TITLE, api.get_opt(K::NAME)).await
}

/// A configuration as far as certificates go.
pub(super) fn registration<K: Configuration>(configuration: Option<&K>) -> Registration {
    let Some(configuration) = configuration else { return Registration::Absent };
    let bundle = |client: &WebhookClientConfig| client.ca_bundle.clone().unwrap_or_default().0;
    Registration::Present(configuration.webhooks().into_iter().map(|(_, client)| bundle(client)).collect())
}

/// Sets the caBundle of every webhook, if the configuration still is what was read.
///
/// # Errors
///
/// A conflict, where somebody changed it meanwhile.
pub(super) async fn set_bundle<K: Configuration>(
    api: &Api<K>,
    configuration: &K,
    bundle: &[u8],
) -> Result<(), ClusterError> {
    // Webhooks are merged by their names; all else that is in them stays.
    let patch = Patch::Strategic(json!({
        "metadata": {"resourceVersion": configuration.meta().resource_version},
        "webhooks": configuration.webhooks().iter().map(|(name, _)| webhook(name, bundle)).collect::<Vec<_>>(),
    }));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    ask(Operation::WriteRegistration, K::TITLE, api.patch(K::NAME, &params, &patch)).await.map(drop)
}

/// Tells of every change of a configuration, for ever.
pub(super) async fn watch<K: Configuration>(api: Api<K>, told: Told) {
    watch::watch(api, K::NAME.to_owned(), K::TITLE.to_owned(), told).await;
}

fn webhook(name: &str, bundle: &[u8]) -> Value {
    json!({"name": name, "clientConfig": {"caBundle": ByteString(bundle.to_vec())}})
}
