//! What every validation has: what is done about a violation, and in whose words.

use super::{Action, Message};

/// What is done about the violations of one validation.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'r> {
    /// What is done about it.
    pub action: Action,
    /// What is said of it, where podgate's own words are not wanted.
    pub message: Option<&'r Message>,
}
