//! From what a model answered to edits of pages. What can't be understood is refused entry by entry.

use std::sync::Arc;

use longhaul_protocol::{Item, Role};
use serde::Deserialize;
use serde_json::Value;

use super::WRITE_PAGES;

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
    let call = answer.iter().find_map(|item| match &**item {
        Item::ToolCall { name, arguments, .. } if name.trim().eq_ignore_ascii_case(WRITE_PAGES) => {
            Some(arguments.as_str())
        }
        _ => None,
    });
    let fields = match call {
        Some(arguments) => serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments of {WRITE_PAGES} are not JSON: {error}"))?,
        None => in_text(answer).ok_or_else(|| format!("there was no call of {WRITE_PAGES}"))?,
    };
    from_fields(&fields)
}

/// The object in what a model wrote as text, be it in a fence or among words.
fn in_text(answer: &[Arc<Item>]) -> Option<Value> {
    let texts = answer.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let object = |begins: usize| {
        let value = serde_json::Deserializer::from_str(&text[begins..]).into_iter::<Value>().next()?.ok()?;
        value.get("pages").is_some().then_some(value)
    };
    // Few: each is read up to its end or its first mistake.
    text.match_indices('{').take(20).find_map(|(begins, _)| object(begins))
}

fn from_fields(fields: &Value) -> Result<Answered, String> {
    let pages = match fields.get("pages") {
        // Some models write a list as the text of a list.
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        pages => pages.cloned(),
    };
    let Some(Value::Array(pages)) = pages else { return Err("`pages` is not a list".to_owned()) };
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
