//! A control plane with podgate registered: what most tests start from.

use super::control_plane::ControlPlane;
use super::registration::register;
use super::replica::{Replica, make_certificates};

/// A control plane that asks one replica.
pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) replica: Replica,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::on(ControlPlane::start())
    }

    /// Registers podgate on a control plane that runs already.
    pub(crate) fn on(plane: ControlPlane) -> Self {
        let certs = make_certificates(&plane.path(""));
        let replica = Replica::start(&certs);
        register(&plane, replica.addr, &certs.join("ca.crt"));
        Self { plane, replica }
    }

    /// Applies a manifest that is refused: what the user sees.
    pub(crate) fn refusal(&self, manifest: &str) -> String {
        let said = self.plane.create(manifest);
        assert!(!said.success, "was not refused: {manifest}");
        said.stderr
    }

    /// Creates what is not refused.
    pub(crate) fn create(&self, manifest: &str) {
        let said = self.plane.create(manifest);
        assert!(said.success, "{}: {manifest}", said.stderr);
    }
}
