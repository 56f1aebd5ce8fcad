//! What a call has used, and what that says about the size of the context.

use longhaul_protocol::Usage;

use crate::session::state::{ProviderCount, State, TruncatedPrompt};
use crate::spend::nano;

/// Adds the usage and cost of a call, and calibrates the token estimates.
pub(super) fn fold_usage(state: &mut State, usage: Usage) {
    // The usage of a summary does not tell the size of the context.
    if usage.purpose.is_none() {
        fold_count(state, &usage);
    }
    if let Some(turn) = &mut state.turn {
        let used = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
        turn.tokens = turn.tokens.saturating_add(used);
        turn.cost_nano = turn.cost_nano.saturating_add(usage.cost.map_or(0, nano));
    }
    if !usage.limits.is_empty() {
        state.rate_limits = usage.limits;
    }
}

fn fold_count(state: &mut State, usage: &Usage) {
    let counting = state.token_counts.entry(state.model.clone().unwrap_or_default()).or_default();
    let mut was_truncated = false;
    if let (Some(estimated), Some(counted)) = (usage.estimated, usage.input) {
        was_truncated = counting.calibration.is_truncated_by_server(estimated, counted);
        if was_truncated {
            counting.truncated_prompt = Some(TruncatedPrompt { tokens_read: counted, window: usage.window });
        } else if counting.truncated_prompt.is_some_and(|cut| counted > cut.tokens_read) {
            counting.truncated_prompt = None;
        }
        counting.calibration.learn(estimated, counted);
    }
    // The model accepted a larger prompt than the one that it had refused.
    if counting.refused_at.is_some_and(|refused| usage.input.is_some_and(|counted| counted >= refused)) {
        counting.refused_at = None;
    }
    let answered = state.turn.as_ref().is_some_and(|turn| turn.answered);
    if was_truncated {
        // The server counted a part of the context. How large the context is, only the estimate says.
        state.provider_count = None;
    } else if let Some(input) = usage.input {
        let output = if answered { usage.output.unwrap_or(0) } else { 0 };
        let model = state.model.clone().unwrap_or_default();
        state.provider_count =
            Some(ProviderCount { model, tokens: input.saturating_add(output), items: state.items.len() });
    }
}
