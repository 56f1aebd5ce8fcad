//! What a call is settled at, by what was seen of it. Pure.

use longhaul_context::estimate_bytes;
use longhaul_model::{CallProgress, Prices, TokenCounts};
use longhaul_protocol::{AttemptId, SpendSettled, SpendSource, SpentTokens, Usage};

use super::amount::dollars;
use super::decision::CallBound;

/// What a call of this process is settled at.
///
/// | the call | is settled at |
/// | --- | --- |
/// | was never sent, or failed before its first byte | nothing |
/// | came to its end, and the provider counted it | what the provider counted |
/// | was cut or cancelled, or the provider counts nothing | the counted input and the received output |
pub(crate) fn settle_call(
    attempt: AttemptId,
    progress: &CallProgress,
    bound: &CallBound,
    prices: Option<&Prices>,
) -> SpendSettled {
    if !progress.is_sent || (progress.has_failed && !progress.has_begun) {
        return settle_at_nothing(attempt);
    }
    let counted = progress.tokens.unwrap_or_default();
    let received = estimate_bytes(progress.received_bytes);
    let (tokens, source) = match counted {
        TokenCounts { input: Some(_), output: Some(_), .. } if progress.is_complete => {
            (counted, SpendSource::Provider)
        }
        // Some providers report the input at the start, with an output of next to nothing.
        _ => {
            let output = counted.output.unwrap_or(0).max(received);
            let input = counted.input.unwrap_or(bound.input);
            let tokens = TokenCounts { input: Some(input), output: Some(output), ..counted };
            (tokens, SpendSource::Estimate)
        }
    };
    let TokenCounts { input, output, cached, written } = tokens;
    let usage = SpentTokens { input, output, cached, cache_written: written };
    SpendSettled { attempt, usage, cost: prices.and_then(|prices| prices.cost(&tokens)), source }
}

/// A call that cost nothing.
pub(crate) fn settle_at_nothing(attempt: AttemptId) -> SpendSettled {
    SpendSettled { attempt, usage: SpentTokens::default(), cost: Some(0.0), source: SpendSource::None }
}

/// A call whose process died after the session had recorded its usage.
pub(crate) fn settle_by_usage(usage: &Usage) -> SpendSettled {
    let &Usage { attempt, input, output, cached, cache_written, cost, .. } = usage;
    let usage = SpentTokens { input, output, cached, cache_written };
    SpendSettled { attempt, usage, cost, source: SpendSource::Provider }
}

/// A call whose process died, and of which nothing more is known.
pub(crate) fn settle_at_bound(reserved: &longhaul_protocol::SpendReserved) -> SpendSettled {
    let (usage, cost) = (SpentTokens::default(), reserved.cost);
    SpendSettled { attempt: reserved.attempt, usage, cost, source: SpendSource::Bound }
}

/// The most US dollars of a call, for its reservation.
pub(crate) fn reserved_cost(bound: &CallBound) -> Option<f64> {
    bound.cost_nano().map(dollars)
}

#[cfg(test)]
#[path = "settlement_tests.rs"]
mod tests;
