//! Parses a model's answer into edits of pages. Invalid entries are refused one by one.

use std::sync::Arc;

use longhaul_context::list_entries;
use longhaul_protocol::Item;
use serde::Deserialize;
use serde_json::Value;

use super::WRITE_PAGES;

const MAX_EDITS: usize = 60;

/// A page as the model wants it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct PageEditRequest {
    pub(super) page: String,
    /// The text of the whole page. An empty text removes the page.
    pub(super) text: String,
    #[serde(default)]
    pub(super) reason: String,
    /// The numbers of the items that the page was made from.
    #[serde(default, deserialize_with = "numbers")]
    pub(super) items: Vec<usize>,
    /// Lines that the model removed or replaced on purpose.
    #[serde(default)]
    pub(super) dropped: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedEdits {
    pub(super) edits: Vec<PageEditRequest>,
    /// Entries that are not valid edits, with the reasons.
    pub(super) refused: Vec<String>,
}

/// The edits of an answer. The error says what is wrong with the answer as a whole.
pub(super) fn parse_edits(answer: &[Arc<Item>]) -> Result<ParsedEdits, String> {
    let pages = list_entries(answer, WRITE_PAGES, "pages")?;
    let mut answered = ParsedEdits::default();
    for (index, page) in pages.iter().enumerate() {
        let number = index + 1;
        if number > MAX_EDITS {
            let more = pages.len() - MAX_EDITS;
            answered.refused.push(format!("{more} more pages: at most {MAX_EDITS} are looked at"));
            break;
        }
        match PageEditRequest::deserialize(page) {
            Ok(edit) => answered.edits.push(edit),
            Err(error) => answered.refused.push(format!("page {number} of the answer: {error}")),
        }
    }
    match answered.refused.first() {
        Some(reason) if answered.edits.is_empty() => Err(reason.clone()),
        _ => Ok(answered),
    }
}

/// Parses numbers, which may also be strings.
fn numbers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    let number = |value: &Value| match value {
        Value::Number(number) => usize::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.trim_matches(['[', ']', ' ']).parse().ok(),
        _ => None,
    };
    let values = Vec::<Value>::deserialize(deserializer)?;
    let numbers = values.iter().map(|value| {
        number(value).ok_or_else(|| serde::de::Error::custom("`items` has something that is not a number"))
    });
    numbers.collect()
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
