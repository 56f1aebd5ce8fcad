//! How much room a context takes. A provider's count is the truth, and comes late; until then there is an estimate, which
//! learns from every count how far off it is.

use std::sync::Arc;

use longhaul_protocol::{Item, ToolSchema};

/// How many bytes of text a token is, roughly, before anything is learnt.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;
/// What a message costs besides its words.
pub(crate) const PER_ITEM: u64 = 6;
/// What a picture costs, roughly.
const PER_IMAGE: u64 = 1_200;
/// So many counts are remembered; the newest say most about what comes next.
const SAMPLES: usize = 8;
/// After so many of them an estimate is good enough to be held against a server.
const ENOUGH_SAMPLES: usize = 3;
/// A prompt that is shorter is not held against anybody.
const LONG_PROMPT: u64 = 2_000;
/// A server that counts less than this share of an estimate has not read all of the prompt.
const READ_SHARE: f64 = 0.7;

/// How many tokens a request has, before anything is learnt.
pub fn estimate(system: &str, tools: &[ToolSchema], items: &[Arc<Item>]) -> u64 {
    let tool = |tool: &ToolSchema| {
        let schema = serde_json::to_string(&tool.parameters).map_or(0, |schema| schema.len());
        PER_ITEM + bytes(tool.name.len() + tool.description.len() + schema)
    };
    bytes(system.len()) + tools.iter().map(tool).sum::<u64>() + estimate_items(items)
}

/// How many tokens these items have, before anything is learnt.
pub fn estimate_items(items: &[Arc<Item>]) -> u64 {
    items.iter().map(|item| estimate_item(item)).sum()
}

/// How many tokens one item has, before anything is learnt.
pub(crate) fn estimate_item(item: &Item) -> u64 {
    PER_ITEM + of_item(item)
}

fn of_item(item: &Item) -> u64 {
    match item {
        Item::Text { text, .. } | Item::Note { text } | Item::Reasoning { text, .. } => bytes(text.len()),
        Item::ToolCall { name, arguments, .. } => bytes(name.len() + arguments.len()),
        Item::ToolResult { content, images, .. } => bytes(content.len()) + PER_IMAGE * images.len() as u64,
        Item::Image(_) => PER_IMAGE,
    }
}

/// How many tokens a text of this length has, before anything is learnt.
pub fn estimate_bytes(length: u64) -> u64 {
    length.div_ceil(BYTES_PER_TOKEN)
}

/// How many tokens a message with this text has, before anything is learnt.
pub fn estimate_text(text: &str) -> u64 {
    PER_ITEM + bytes(text.len())
}

fn bytes(length: usize) -> u64 {
    estimate_bytes(length as u64)
}

/// What a model's counts say about the estimates of its prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCalibration {
    /// Estimated and counted, the newest last.
    samples: Vec<(u64, u64)>,
}

impl TokenCalibration {
    /// Estimated and counted, the newest last.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }

    /// What was learnt before, from samples of this form.
    pub fn carried(mut samples: Vec<(u64, u64)>) -> Self {
        samples.retain(|(estimated, counted)| *estimated > 0 && *counted > 0);
        let surplus = samples.len().saturating_sub(SAMPLES);
        Self { samples: samples.split_off(surplus) }
    }

    /// A provider counted a prompt. One that was cut teaches nothing.
    pub fn learn(&mut self, estimated: u64, counted: u64) {
        if estimated == 0 || counted == 0 || self.shows_a_cut(estimated, counted) {
            return;
        }
        if self.samples.len() == SAMPLES {
            self.samples.remove(0);
        }
        self.samples.push((estimated, counted));
    }

    /// An estimate, corrected by what was learnt.
    pub fn correct(&self, estimated: u64) -> u64 {
        let (of_all, counted) = self.learnt();
        let corrected = u128::from(estimated).saturating_mul(counted) / of_all;
        u64::try_from(corrected).unwrap_or(u64::MAX)
    }

    /// The largest estimate that, corrected, is at most so many tokens.
    pub fn largest_within(&self, tokens: u64) -> u64 {
        let (of_all, counted) = self.learnt();
        let largest = ((u128::from(tokens) + 1).saturating_mul(of_all) - 1) / counted;
        u64::try_from(largest).unwrap_or(u64::MAX)
    }

    /// What all estimates and all counts are together. Neither is 0.
    fn learnt(&self) -> (u128, u128) {
        let add =
            |sum: (u128, u128), one: &(u64, u64)| (sum.0 + u128::from(one.0), sum.1 + u128::from(one.1));
        match self.samples.iter().fold((0, 0), add) {
            (0, _) | (_, 0) => (1, 1),
            learnt => learnt,
        }
    }

    /// Whether a server that counted so few tokens can't have read all of the prompt.
    pub fn shows_a_cut(&self, estimated: u64, counted: u64) -> bool {
        let expected = self.correct(estimated);
        #[allow(clippy::cast_precision_loss, reason = "no prompt has 2^53 tokens")]
        let is_short = (counted as f64) < READ_SHARE * expected as f64;
        self.samples.len() >= ENOUGH_SAMPLES && expected > LONG_PROMPT && is_short
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
