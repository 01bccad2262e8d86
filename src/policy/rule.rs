//! What every validation has: what is done about a violation, in whose words, and whom it does
//! not concern.

use super::{Action, Message, RuleExclude};

/// What is done about the violations of one validation.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'r> {
    /// What is done about it.
    pub action: Action,
    /// What is said of it, where podgate's own words are not wanted.
    pub message: Option<&'r Message>,
    /// Whom it does not concern.
    pub exclude: RuleExclude<'r>,
}
