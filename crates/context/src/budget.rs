//! The token budget of a context and the thresholds at which it is compacted. All tokens are corrected ones
//! ([`TokenCalibration`](crate::TokenCalibration)).

/// C13: a part whose size is configured (kept turns, memory) takes at most the usable tokens divided by this.
const SETTING_DIVISOR: u64 = 10;

/// The tokens that a model has for a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// The context window, which holds the prompt and the answer.
    pub window: u64,
    /// Tokens reserved for the answer.
    pub answer: u64,
    /// Tokens of the system prompt and the tools.
    pub fixed: u64,
}

impl ContextBudget {
    /// The tokens that a prompt may have: the window without the answer.
    pub fn usable(&self) -> u64 {
        self.window.saturating_sub(self.answer)
    }

    /// The configured number of tokens, limited to its share of a small window.
    pub fn at_most(&self, set: u64) -> u64 {
        set.min(self.usable() / SETTING_DIVISOR)
    }
}

/// The tokens at which a context is compacted. `None` turns a check off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionThresholds {
    pub before_turn: Option<u64>,
    /// Checked before every request within a turn.
    pub within_turn: Option<u64>,
    /// Checked when the session becomes idle.
    pub idle: Option<u64>,
}

impl CompactionThresholds {
    /// The threshold before the first request of a turn, to which both checks apply.
    pub fn before_first_request(&self) -> Option<u64> {
        self.before_turn.into_iter().chain(self.within_turn).min()
    }
}

/// One threshold: `tokens` if it is set, otherwise a share of the usable tokens. 0 turns it off.
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
#[path = "budget_tests.rs"]
mod tests;
