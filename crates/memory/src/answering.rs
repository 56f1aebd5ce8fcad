//! From what a model answered to the entries of the list that it was asked for, whatever they are.

use std::sync::Arc;

use longhaul_protocol::{Item, Role};
use serde_json::Value;

/// So many places of a text are looked at for the beginning of an object: each is read up to its end or its first mistake.
const MOST_PLACES: usize = 20;

/// What stands in the list of this name, in all calls of this tool together; or in an object in a text, be it in a fence or among words, since
/// whoever was asked for a call may have written it down instead. The error says what is wrong with the answer as a whole.
pub(crate) fn entries(answer: &[Arc<Item>], tool: &str, list: &str) -> Result<Vec<Value>, String> {
    let calls = answer.iter().filter_map(|item| match &**item {
        Item::ToolCall { name, arguments, .. } if name.trim().eq_ignore_ascii_case(tool) => Some(arguments),
        _ => None,
    });
    let calls: Vec<_> = calls.map(|arguments| in_arguments(arguments, list)).collect();
    if calls.is_empty() {
        return in_text(answer, list)
            .ok_or_else(|| format!("there was neither a call of {tool} nor an object with a list `{list}`"));
    }
    let first_error = calls.iter().find_map(|read| read.as_ref().err()).cloned();
    let read: Vec<Vec<Value>> = calls.into_iter().flatten().collect();
    match first_error {
        Some(error) if read.is_empty() => Err(format!("the arguments of {tool}: {error}")),
        _ => Ok(read.into_iter().flatten().collect()),
    }
}

fn in_arguments(arguments: &str, list: &str) -> Result<Vec<Value>, String> {
    let object = serde_json::from_str(arguments).map_err(|error| format!("not JSON: {error}"))?;
    in_object(object, list).ok_or_else(|| format!("no list `{list}`"))
}

fn in_text(answer: &[Arc<Item>], list: &str) -> Option<Vec<Value>> {
    let texts = answer.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let object = |begins: usize| serde_json::Deserializer::from_str(&text[begins..]).into_iter().next()?.ok();
    let places = text.match_indices('{').take(MOST_PLACES);
    places.filter_map(|(begins, _)| object(begins)).find_map(|object| in_object(object, list))
}

fn in_object(mut object: Value, list: &str) -> Option<Vec<Value>> {
    let entries = match object.get_mut(list).map(Value::take)? {
        // Some models write a list as the text of a list.
        Value::String(text) => serde_json::from_str(&text).ok()?,
        entries => entries,
    };
    match entries {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

#[cfg(test)]
#[path = "answering_tests.rs"]
mod tests;
