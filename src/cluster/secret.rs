//! The Secret that the replicas share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use thiserror::Error;

use super::error::{ClusterError, Operation, ask};
use crate::certs::Material;

/// Who podgate is in `metadata.managedFields`.
pub(super) const MANAGER: &str = "podgate";
/// The type of a Secret with a certificate and its key (v1.Secret, `SecretTypeTLS`).
const TYPE: &str = "kubernetes.io/tls";

/// A namespace and a name, as `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    namespace: String,
    name: String,
}

/// Why a text names no Secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("write NAMESPACE/NAME, such as security-system/webhook-tls")]
pub struct SecretNameError;

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(text: &str) -> Result<Self, SecretNameError> {
        let (namespace, name) = text.split_once('/').ok_or(SecretNameError)?;
        // The characters of a DNS subdomain (RFC 1123), which the API server asks for.
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-' | '.'))
        };
        if !is_name(namespace) || !is_name(name) {
            return Err(SecretNameError);
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// The Secret, at the API server.
pub(super) struct SharedSecret {
    pub(super) api: Api<Secret>,
    pub(super) name: String,
    /// What errors call it.
    pub(super) title: String,
    /// A manager of its own for each replica, so that two that create the Secret at the same moment
    /// are in conflict.
    creator: String,
}

impl SharedSecret {
    pub(super) fn new(client: Client, SecretName { namespace, name }: SecretName) -> Self {
        let title = format!("the Secret {namespace}/{name}");
        let creator = format!("{MANAGER}-{:016x}", RandomState::new().hash_one(&title));
        Self { api: Api::namespaced(client, &namespace), name, title, creator }
    }

    pub(super) async fn read(&self) -> Result<Option<Secret>, ClusterError> {
        ask(Operation::ReadSecret, &self.title, self.api.get_opt(&self.name)).await
    }

    /// Writes the Secret, if it still is what was read.
    ///
    /// # Errors
    ///
    /// A conflict, where another replica wrote it meanwhile.
    pub(super) async fn write(&self, read: Option<Secret>, material: Material) -> Result<(), ClusterError> {
        let data: BTreeMap<String, ByteString> =
            material.into_data().into_iter().map(|(key, bytes)| (key.to_owned(), ByteString(bytes))).collect();
        match read {
            Some(secret) => self.replace(secret, data).await,
            None => self.create(data).await,
        }
    }

    async fn replace(&self, mut secret: Secret, data: BTreeMap<String, ByteString>) -> Result<(), ClusterError> {
        // With the resourceVersion that was read, and whatever else is in it.
        secret.data.get_or_insert_default().extend(data);
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        ask(Operation::WriteSecret, &self.title, self.api.replace(&self.name, &params, &secret)).await.map(drop)
    }

    /// By server-side apply: the request names the Secret, so that a rule with `resourceNames` can
    /// allow it. Whoever comes second wants to change the fields of the first, and is refused.
    async fn create(&self, data: BTreeMap<String, ByteString>) -> Result<(), ClusterError> {
        let secret = Patch::Apply(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name},
            "type": TYPE,
            "data": data,
        }));
        let params = PatchParams::apply(&self.creator);
        ask(Operation::WriteSecret, &self.title, self.api.patch(&self.name, &params, &secret)).await.map(drop)
    }
}

/// What is in a Secret.
pub(super) fn material(secret: &Secret) -> Material {
    let data = secret.data.as_ref();
    Material::from_data(|key| data?.get(key).map(|bytes| bytes.0.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_namespace_and_a_name() {
        let name = "security-system/webhook-tls".parse();
        assert_eq!(name, Ok(SecretName { namespace: "security-system".into(), name: "webhook-tls".into() }));
        for text in ["", "webhook-tls", "/webhook-tls", "security-system/", "a/b/c", "A/b", "a/b c"] {
            assert_eq!(text.parse::<SecretName>(), Err(SecretNameError), "{text}");
        }
    }
}
