//! The API server's client, as controllers use it.

use kube::{Client, Config};

/// A client of its own, with connections of its own, for the administrator.
///
/// To be called inside a runtime, which the client's tasks need.
pub(crate) fn client(url: &str) -> Client {
    // kube's own choice would be the process's default provider, which nobody has installed here.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut config = Config::new(url.parse().expect("a URL"));
    config.accept_invalid_certs = true;
    config.auth_info.token = Some("admin-token".to_owned().into());
    Client::try_from(config).expect("the settings are right")
}
