//! A summary together with the one before it.
//!
//! The model was told to merge, so most of what it wrote stands as it is. Directives do not depend on that: one
//! that a person gave stays until the model names it as withdrawn, and none comes in that no person gave.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};

use super::Written;
use super::reading::without_quotes;
use crate::is_notification;

/// A part of a directive names it only if it has at least so many bytes: a single short word is in too many of them.
const SHORTEST_PART: usize = 4;

/// What people said among these items: whole messages, without what the runtime says in their role.
pub fn said(items: &[Arc<Item>]) -> Vec<&str> {
    let words = items.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::User, text } if !is_notification(text) => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// A summary together with the one before it: directives are never dropped, unless it names the ones that were withdrawn; what it
/// calls a directive and nobody said in these words becomes a constraint.
pub fn merge(previous: Option<&Summary>, newer: Written, said: &[&str]) -> Summary {
    let nothing = Summary::default();
    let previous = previous.unwrap_or(&nothing);
    let Written { summary: newer, withdrawn } = newer;
    let is_free_text = newer == Summary { notes: newer.notes.clone(), ..Summary::default() };
    let mut merged = if is_free_text {
        Summary { notes: newer.notes.clone(), ..previous.clone() }
    } else {
        Summary {
            goal: text_or(newer.goal, &previous.goal),
            directives: vec![],
            constraints: list_or(newer.constraints, &previous.constraints),
            decisions: list_or(newer.decisions, &previous.decisions),
            done: list_or(newer.done, &previous.done),
            in_progress: newer.in_progress,
            next_action: newer.next_action,
            blocked: newer.blocked,
            files: list_or(newer.files, &previous.files),
            commands: list_or(newer.commands, &previous.commands),
            notes: text_or(newer.notes, &previous.notes),
        }
    };
    let (stay, go) = standing(&previous.directives, &newer.directives, &withdrawn);
    let (given, invented) = given(newer.directives, &previous.directives, said);
    merged.directives = without_doubles(stay.into_iter().chain(given), &mut HashSet::new());
    let mut known = merged.directives.iter().map(|directive| plain(directive)).collect();
    merged.constraints = without_doubles(merged.constraints.into_iter().chain(invented), &mut known);
    for directive in go {
        let line = format!("withdrawn by the user: \"{directive}\"");
        if !merged.decisions.contains(&line) {
            merged.decisions.push(line);
        }
    }
    merged
}

fn text_or(newer: String, previous: &str) -> String {
    if newer.trim().is_empty() { previous.to_owned() } else { newer }
}

fn list_or(newer: Vec<String>, previous: &[String]) -> Vec<String> {
    if newer.is_empty() { previous.to_vec() } else { newer }
}

/// The directives that stay and those that were withdrawn. One that the newer summary lists as a directive stays, whatever else
/// it says about it.
fn standing(previous: &[String], newer: &[String], withdrawn: &[String]) -> (Vec<String>, Vec<String>) {
    let listed: HashSet<String> = newer.iter().map(|directive| plain(directive)).collect();
    let withdrawn: Vec<String> = withdrawn.iter().map(|words| plain(words)).collect();
    previous.iter().cloned().partition(|directive| {
        let directive = plain(directive);
        listed.contains(&directive) || !withdrawn.iter().any(|words| names(words, &directive))
    })
}

/// Whether somebody who says these words means this directive: they are the same, or one is in the other.
fn names(words: &str, directive: &str) -> bool {
    let is_part = |part: &str, whole: &str| part.len() >= SHORTEST_PART && occurs(part, whole);
    words == directive || is_part(words, directive) || is_part(directive, words)
}

/// The directives that somebody gave, and those that nobody did.
fn given(newer: Vec<String>, previous: &[String], said: &[&str]) -> (Vec<String>, Vec<String>) {
    if newer.is_empty() {
        return (vec![], vec![]);
    }
    let said: Vec<String> =
        said.iter().copied().chain(previous.iter().map(String::as_str)).map(plain).collect();
    newer.into_iter().partition(|directive| {
        let directive = plain(directive);
        said.iter().any(|said| occurs(&directive, said))
    })
}

/// What words are compared by: neither case nor spaces nor the form of quotes matter, nor what is around them.
fn plain(text: &str) -> String {
    let text = without_quotes(text).trim_end_matches(['.', ',', ';', '!']);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.replace(['‘', '’'], "'").replace(['“', '”', '„'], "\"")
}

/// Whether a text occurs in another, and not within a word of it.
fn occurs(part: &str, whole: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let (inside, bytes) = (part.as_bytes(), whole.as_bytes());
    !part.is_empty()
        && whole.match_indices(part).any(|(start, _)| {
            let end = start + part.len();
            let before = start.checked_sub(1).and_then(|before| bytes.get(before));
            let begins_within = is_word(before) && is_word(inside.first());
            let ends_within = is_word(bytes.get(end)) && is_word(inside.last());
            !begins_within && !ends_within
        })
}

/// The same entries, each once, without those that are known.
fn without_doubles(entries: impl Iterator<Item = String>, known: &mut HashSet<String>) -> Vec<String> {
    entries
        .filter(|entry| Some(plain(entry)).is_some_and(|plain| !plain.is_empty() && known.insert(plain)))
        .collect()
}

#[cfg(test)]
#[path = "merging_tests.rs"]
mod tests;
