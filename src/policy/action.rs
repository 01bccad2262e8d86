//! What is done about a violation.

use std::fmt;

use serde::Deserialize;

/// What is done about a violation, from least to most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The policy does not run.
    Off,
    /// The request passes; logs and metrics tell of it.
    Audit,
    /// The request passes; its author sees a warning.
    Warn,
    /// The request is refused.
    Deny,
}

impl Action {
    /// The name in the configuration file and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What is done about a workload whose template violates a policy; never more than the policy's
/// own action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Workloads {
    /// Refused.
    Deny,
    /// Its author sees a warning; the pods are refused when they come.
    #[default]
    Warn,
    /// Nothing.
    Off,
}

impl Workloads {
    /// The same, as an action.
    #[must_use]
    pub const fn action(self) -> Action {
        match self {
            Self::Deny => Action::Deny,
            Self::Warn => Action::Warn,
            Self::Off => Action::Off,
        }
    }
}
