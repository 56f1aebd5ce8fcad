//! Normalises items into a list that every provider accepts.
//!
//! The records contain a result for every call. This module is a safety net: an erased record, a salvaged journal or
//! an old bug must not leave a session that every provider refuses.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_protocol::{CallId, Item};

/// The result of a call that has none in the records.
const NO_RESULT: &str = "[no result was recorded for this call]";
/// The content of an empty result: some providers refuse empty content.
const NO_OUTPUT: &str = "[no output]";

/// The same items, changed so that every call has exactly one result, directly after the calls of its answer and in
/// their order. Every result has its call, and nothing is empty.
pub fn normalise(items: &[Arc<Item>]) -> Vec<Arc<Item>> {
    let mut results = first_results(items);
    let mut normal = Vec::with_capacity(items.len());
    let mut open_calls: Vec<CallId> = Vec::new();
    let mut seen_calls = HashSet::new();
    for item in items {
        match &**item {
            // The first result ends the calls of an answer. All results follow those calls, wherever they were in the
            // list.
            Item::ToolResult { call, .. } => {
                if open_calls.contains(call) {
                    push_results(&mut open_calls, &mut results, &mut normal);
                }
                continue;
            }
            // A repeated call id can't get a second result.
            Item::ToolCall { call, .. } if !seen_calls.insert(*call) => continue,
            Item::ToolCall { call, .. } => open_calls.push(*call),
            Item::Text { text, .. } | Item::Note { text } if text.is_empty() => continue,
            _ => push_results(&mut open_calls, &mut results, &mut normal),
        }
        normal.push(item.clone());
    }
    push_results(&mut open_calls, &mut results, &mut normal);
    normal
}

fn first_results(items: &[Arc<Item>]) -> HashMap<CallId, Arc<Item>> {
    let mut results = HashMap::new();
    for item in items {
        if let Item::ToolResult { call, .. } = &**item {
            results.entry(*call).or_insert_with(|| item.clone());
        }
    }
    results
}

/// Adds a result for each open call.
fn push_results(
    open_calls: &mut Vec<CallId>,
    results: &mut HashMap<CallId, Arc<Item>>,
    normal: &mut Vec<Arc<Item>>,
) {
    for call in open_calls.drain(..) {
        normal.push(match results.remove(&call) {
            Some(result) => with_content(result),
            None => Arc::new(Item::ToolResult {
                call,
                content: NO_RESULT.to_owned(),
                images: vec![],
                is_error: true,
            }),
        });
    }
}

fn with_content(result: Arc<Item>) -> Arc<Item> {
    match &*result {
        Item::ToolResult { call, content, images, is_error } if content.is_empty() => {
            let (call, content, images, is_error) = (*call, NO_OUTPUT.to_owned(), images.clone(), *is_error);
            Arc::new(Item::ToolResult { call, content, images, is_error })
        }
        _ => result,
    }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
