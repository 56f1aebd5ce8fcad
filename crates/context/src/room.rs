//! How much of a context there is room for, and from where on it should be made smaller. Tokens everywhere, as a model's own
//! counts correct them.

/// What a model has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// How large the context may be, the answer with it.
    pub window: u64,
    /// What is left free for the answer.
    pub answer: u64,
    /// What system prompt and tools take.
    pub fixed: u64,
}

/// C13: what has a size of its own is at most such a part of what is usable.
const FIXED_SHARE: u64 = 10;

impl ContextBudget {
    /// What a prompt may take: everything but the room for its answer.
    pub fn usable(&self) -> u64 {
        self.window.saturating_sub(self.answer)
    }

    /// What is kept as it is, or what memory may take, if this much is set.
    pub fn at_most(&self, set: u64) -> u64 {
        set.min(self.usable() / FIXED_SHARE)
    }
}

/// From how many tokens on a context is made smaller; nothing, where that is not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionThresholds {
    /// Before a turn.
    pub before_turn: Option<u64>,
    /// Before every request within one.
    pub within_turn: Option<u64>,
    /// When the session has fallen idle.
    pub idle: Option<u64>,
}

impl CompactionThresholds {
    /// From where on a context is made smaller before the first request of a turn: both the check of the turn and that of every
    /// request hold for it.
    pub fn before_first_request(&self) -> Option<u64> {
        self.before_turn.into_iter().chain(self.within_turn).min()
    }
}

/// One check: a share of what is usable, or tokens in its place; 0 turns it off.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no context has 2^53 tokens, and a share is between 0 and 1"
)]
pub fn compaction_threshold(share: f64, tokens: Option<u64>, usable: u64) -> Option<u64> {
    let at = tokens.unwrap_or((share * usable as f64) as u64);
    let is_off = tokens == Some(0) || (tokens.is_none() && share <= 0.0);
    (!is_off).then_some(at)
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
