//! Token estimates. A provider's own count is exact but known only after the request, so a context is planned with an
//! estimate from bytes. [`TokenCalibration`] corrects it with the counts so far.

use std::sync::Arc;

use longhaul_protocol::{Item, ToolSchema};

/// Bytes of text that count as one token, before any correction.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;
/// Tokens that a message takes in addition to its text.
pub(crate) const TOKENS_PER_ITEM: u64 = 6;
const TOKENS_PER_IMAGE: u64 = 1_200;
/// How many counts are kept. The newest are the best prediction for the next request.
const MAX_SAMPLES: usize = 8;
/// With fewer counts, the estimate is not reliable enough to conclude that a server truncates prompts.
const MIN_SAMPLES_TO_JUDGE: usize = 3;
/// Shorter prompts are not judged, in tokens.
const MIN_JUDGED_PROMPT: u64 = 2_000;
/// A server that counts less than this share of the estimate has not read the whole prompt.
const MIN_COUNTED_SHARE: f64 = 0.7;

/// The tokens of a request, uncorrected.
pub fn estimate(system: &str, tools: &[ToolSchema], items: &[Arc<Item>]) -> u64 {
    let tool = |tool: &ToolSchema| {
        let schema = serde_json::to_string(&tool.parameters).map_or(0, |schema| schema.len());
        TOKENS_PER_ITEM + tokens_of_bytes(tool.name.len() + tool.description.len() + schema)
    };
    tokens_of_bytes(system.len()) + tools.iter().map(tool).sum::<u64>() + estimate_items(items)
}

/// The tokens of some items, uncorrected.
pub fn estimate_items(items: &[Arc<Item>]) -> u64 {
    items.iter().map(|item| estimate_item(item)).sum()
}

pub(crate) fn estimate_item(item: &Item) -> u64 {
    TOKENS_PER_ITEM + estimate_content(item)
}

fn estimate_content(item: &Item) -> u64 {
    match item {
        Item::Text { text, .. } | Item::Note { text } | Item::Reasoning { text, .. } => {
            tokens_of_bytes(text.len())
        }
        Item::ToolCall { name, arguments, .. } => tokens_of_bytes(name.len() + arguments.len()),
        Item::ToolResult { content, images, .. } => {
            tokens_of_bytes(content.len()) + TOKENS_PER_IMAGE * images.len() as u64
        }
        Item::Image(_) => TOKENS_PER_IMAGE,
    }
}

/// The tokens of a text of this many bytes, uncorrected.
pub fn estimate_bytes(length: u64) -> u64 {
    length.div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of a message with this text, uncorrected.
pub fn estimate_text(text: &str) -> u64 {
    TOKENS_PER_ITEM + tokens_of_bytes(text.len())
}

fn tokens_of_bytes(length: usize) -> u64 {
    estimate_bytes(length as u64)
}

/// Corrects the estimates for one model with the counts of its provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCalibration {
    /// Pairs of estimated and counted tokens, the newest last.
    samples: Vec<(u64, u64)>,
}

impl TokenCalibration {
    /// Pairs of estimated and counted tokens, the newest last.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }

    /// Restores a calibration from saved samples. Skips samples without tokens.
    pub fn from_samples(mut samples: Vec<(u64, u64)>) -> Self {
        samples.retain(|(estimated, counted)| *estimated > 0 && *counted > 0);
        let surplus = samples.len().saturating_sub(MAX_SAMPLES);
        Self { samples: samples.split_off(surplus) }
    }

    /// Adds a provider's count of a prompt. A prompt that the server truncated is ignored.
    pub fn learn(&mut self, estimated: u64, counted: u64) {
        if estimated == 0 || counted == 0 || self.is_truncated_by_server(estimated, counted) {
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.remove(0);
        }
        self.samples.push((estimated, counted));
    }

    /// The estimate, corrected.
    pub fn correct(&self, estimated: u64) -> u64 {
        let (of_all, counted) = self.totals();
        let corrected = u128::from(estimated).saturating_mul(counted) / of_all;
        u64::try_from(corrected).unwrap_or(u64::MAX)
    }

    /// The largest estimate whose correction is at most this many tokens.
    pub fn largest_within(&self, tokens: u64) -> u64 {
        let (of_all, counted) = self.totals();
        let largest = ((u128::from(tokens) + 1).saturating_mul(of_all) - 1) / counted;
        u64::try_from(largest).unwrap_or(u64::MAX)
    }

    /// The sum of all estimates and the sum of all counts. Neither is 0.
    fn totals(&self) -> (u128, u128) {
        let add =
            |sum: (u128, u128), one: &(u64, u64)| (sum.0 + u128::from(one.0), sum.1 + u128::from(one.1));
        match self.samples.iter().fold((0, 0), add) {
            (0, _) | (_, 0) => (1, 1),
            totals => totals,
        }
    }

    /// Whether the count is so low that the server can't have read the whole prompt.
    pub fn is_truncated_by_server(&self, estimated: u64, counted: u64) -> bool {
        let expected = self.correct(estimated);
        #[allow(clippy::cast_precision_loss, reason = "no prompt has 2^53 tokens")]
        let is_short = (counted as f64) < MIN_COUNTED_SHARE * expected as f64;
        self.samples.len() >= MIN_SAMPLES_TO_JUDGE && expected > MIN_JUDGED_PROMPT && is_short
    }
}

#[cfg(test)]
#[path = "token_estimate_tests.rs"]
mod tests;
