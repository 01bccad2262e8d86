//! podgate where it lives: asked by a real kube-apiserver, over real requests. Every assertion is on
//! what the API server stored or answered. `make e2e` builds the control plane and runs them;
//! `KUBEBUILDER_ASSETS` names the folder with etcd, kube-apiserver, kube-controller-manager and
//! kubectl.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod availability;
mod balancer;
mod capacity;
mod certificates;
mod client;
mod client_certificate;
mod cluster;
mod control_plane;
mod installed;
mod interrupted;
mod kubelet;
mod load;
mod manifests;
mod modes;
mod operations;
mod pods;
mod policies;
mod process;
mod quota;
mod refused_sidecars;
mod registration;
mod reinvocation;
mod replica;
#[path = "../support/sidecar_cases.rs"]
mod sidecar_cases;
mod sidecars;
mod workloads;
