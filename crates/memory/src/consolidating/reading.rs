//! From what a model answered to edits of pages. What can't be understood is refused entry by entry.

use std::sync::Arc;

use longhaul_protocol::Item;
use serde::Deserialize;
use serde_json::Value;

use super::WRITE_PAGES;
use crate::answering::entries;

/// So many edits of one answer are looked at.
const MOST_EDITS: usize = 60;

/// What a model wants of one page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Edit {
    pub(super) page: String,
    /// The whole page; empty to remove it.
    pub(super) text: String,
    #[serde(default)]
    pub(super) reason: String,
    /// The numbers of the items that it was made from.
    #[serde(default, deserialize_with = "numbers")]
    pub(super) items: Vec<usize>,
    /// What was left out on purpose.
    #[serde(default)]
    pub(super) dropped: Vec<String>,
}

/// What a model answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) edits: Vec<Edit>,
    /// What is no edit, with the reasons.
    pub(super) refused: Vec<String>,
}

/// What a model answered, as edits. The error says what is wrong with all of it.
pub(super) fn read_answer(answer: &[Arc<Item>]) -> Result<Answered, String> {
    let pages = entries(answer, WRITE_PAGES, "pages")?;
    let mut answered = Answered::default();
    for (index, page) in pages.iter().enumerate() {
        let number = index + 1;
        if number > MOST_EDITS {
            let more = pages.len() - MOST_EDITS;
            answered.refused.push(format!("{more} more pages: at most {MOST_EDITS} are looked at"));
            break;
        }
        match Edit::deserialize(page) {
            Ok(edit) => answered.edits.push(edit),
            Err(error) => answered.refused.push(format!("page {number} of the answer: {error}")),
        }
    }
    match answered.refused.first() {
        Some(reason) if answered.edits.is_empty() => Err(reason.clone()),
        _ => Ok(answered),
    }
}

/// Numbers, also where they are written as texts.
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
#[path = "reading_tests.rs"]
mod tests;
