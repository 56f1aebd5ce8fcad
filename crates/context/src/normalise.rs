//! A list of items that every provider accepts.
//!
//! The records already hold a result for every call; this is the net below that. An erased record, a salvaged journal or a
//! version that had a bug must not make a session that no provider accepts any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_protocol::{CallId, Item};

/// What stands where a call has no result.
const NO_RESULT: &str = "[no result was recorded for this call]";
/// What stands where a tool gave back nothing: content is never empty.
const NO_OUTPUT: &str = "[no output]";

/// The same items, such that every call has exactly one result, directly after the calls of its answer and in their order;
/// every result has its call; and nothing is empty.
pub fn normalise(items: &[Arc<Item>]) -> Vec<Arc<Item>> {
    let mut results = first_results(items);
    let mut normal = Vec::with_capacity(items.len());
    let mut open: Vec<CallId> = Vec::new();
    let mut asked = HashSet::new();
    for item in items {
        match &**item {
            // With the first result the calls of an answer are complete. Its place is after its call, wherever it stood.
            Item::ToolResult { call, .. } => {
                if open.contains(call) {
                    settle(&mut open, &mut results, &mut normal);
                }
                continue;
            }
            // The same call again could not get a second result.
            Item::ToolCall { call, .. } if !asked.insert(*call) => continue,
            Item::ToolCall { call, .. } => open.push(*call),
            Item::Text { text, .. } | Item::Note { text } if text.is_empty() => continue,
            _ => settle(&mut open, &mut results, &mut normal),
        }
        normal.push(item.clone());
    }
    settle(&mut open, &mut results, &mut normal);
    normal
}

/// The first result of each call: later ones have nothing to say.
fn first_results(items: &[Arc<Item>]) -> HashMap<CallId, Arc<Item>> {
    let mut results = HashMap::new();
    for item in items {
        if let Item::ToolResult { call, .. } = &**item {
            results.entry(*call).or_insert_with(|| item.clone());
        }
    }
    results
}

/// Puts the results of the calls that are open where they belong.
fn settle(open: &mut Vec<CallId>, results: &mut HashMap<CallId, Arc<Item>>, normal: &mut Vec<Arc<Item>>) {
    for call in open.drain(..) {
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
