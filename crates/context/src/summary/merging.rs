//! A summary together with the one before it.
//!
//! The model was told to merge, so most of what it wrote stands as it is. Directives do not depend on that. What the model quotes is
//! replaced by the whole passage of the user's input that it stands in: a part of a sentence can mean the opposite of it. A directive
//! stays until the model names it as withdrawn and a later input of the user mentions it.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};

use super::WrittenSummary;
use super::reading::without_quotes;
use crate::passages::sentences;
use crate::{ContentWords, is_task_notification, quotable_passages};

/// A part of a directive names it only if it has at least so many bytes: a single short word is in too many of them.
const SHORTEST_PART: usize = 4;
/// The share of a directive's content words that a withdrawal must name for the whole directive to go.
const NAMES_ALL: f64 = 2.0 / 3.0;
/// The share of the content words, of a directive or of an input, whichever has fewer, that both have in common if the input mentions it.
const MENTIONS: f64 = 0.5;
/// A directive with more content words than this is not mentioned by one of them alone.
const FEW_WORDS: usize = 2;

/// What people said among these items: whole messages, without what the runtime says in their role.
pub fn user_messages(items: &[Arc<Item>]) -> Vec<&str> {
    let words = items.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::User, text } if !is_task_notification(text) => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// A summary together with the one before it. A directive is never dropped, unless the newer summary names it as withdrawn and the user
/// mentions it after giving it; what the newer summary calls a directive and the user did not say in these words becomes a constraint.
/// `user_messages` are the user's inputs, the oldest first.
pub fn merge_summaries(previous: Option<&Summary>, newer: WrittenSummary, said: &[&str]) -> Summary {
    let nothing = Summary::default();
    let previous = previous.unwrap_or(&nothing);
    let WrittenSummary { summary: newer, withdrawn } = newer;
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
    let said = UserInputs::new(said);
    let (given, invented) = said.given(newer.directives, &previous.directives);
    let Standing { stay, withdrawn } = said.standing(&previous.directives, &given, &withdrawn);
    merged.directives = without_doubles(stay.into_iter().chain(given), &mut HashSet::new());
    let mut known = merged.directives.iter().map(|directive| plain(directive)).collect();
    merged.constraints = without_doubles(merged.constraints.into_iter().chain(invented), &mut known);
    for line in withdrawn {
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

/// What the user said, as far as it can be quoted: the passages of each input, the oldest input first.
struct UserInputs(Vec<Vec<String>>);

/// What becomes of the directives that there were.
struct Standing {
    stay: Vec<String>,
    /// What was withdrawn, and the words of the user that say so.
    withdrawn: Vec<String>,
}

impl UserInputs {
    fn new(said: &[&str]) -> Self {
        Self(said.iter().map(|input| quotable_passages(input)).collect())
    }

    /// The directives that the user gave, as whole passages, and those that the user did not give.
    fn given(&self, newer: Vec<String>, previous: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut given, mut invented) = (Vec::new(), Vec::new());
        for directive in newer {
            let whole = self.source_of(&directive, previous).map(|source| vec![source]);
            // A model may quote several sentences of a long input as one directive.
            let sentences =
                || sentences(&directive).iter().map(|part| self.source_of(part, previous)).collect();
            match whole.or_else(sentences) {
                Some(sources) => given.extend(sources.into_iter().map(str::to_owned)),
                None => invented.push(directive),
            }
        }
        (given, invented)
    }

    /// The passage that these words stand in: a directive that there is already, else the shortest of the user's inputs.
    fn source_of<'a>(&'a self, words: &str, previous: &'a [String]) -> Option<&'a str> {
        let words = plain(words);
        let holds = |passage: &&String| occurs(&words, &plain(passage));
        let known = previous.iter().find(|directive| plain(directive) == words);
        let said = || self.0.iter().flatten().filter(holds).min_by_key(|passage| passage.len());
        known.or_else(said).or_else(|| previous.iter().find(holds)).map(String::as_str)
    }

    /// What of the directives stays. One that the newer summary lists as a directive does, whatever else it says about it.
    fn standing(&self, previous: &[String], listed: &[String], withdrawn: &[String]) -> Standing {
        let listed: HashSet<String> = listed.iter().map(|directive| plain(directive)).collect();
        let mut standing = Standing { stay: vec![], withdrawn: vec![] };
        for directive in previous {
            let directive_words = ContentWords::of(directive);
            let named = withdrawn.iter().find(|words| names(&plain(words), &plain(directive)));
            let named = named.filter(|_| !listed.contains(&plain(directive)));
            let evidence = named.and_then(|words| Some((words, self.mentions(directive, words)?)));
            let mut goes = false;
            if let Some((words, said)) = evidence {
                // Of a directive of several sentences, one may be withdrawn.
                goes = plain(words) == plain(directive)
                    || directive_words.share_in(&ContentWords::of(words)) >= NAMES_ALL;
                let what = if goes { directive } else { words };
                standing
                    .withdrawn
                    .push(format!("withdrawn by the user: \"{what}\", in these words: \"{said}\""));
            }
            if !goes {
                standing.stay.push(directive.clone());
            }
        }
        standing
    }

    /// What the user said about a directive, or the part of it that is named, after giving it. The directive said again takes nothing back.
    fn mentions(&self, directive: &str, named: &str) -> Option<&str> {
        let repeats = |passage: &String| plain(passage) == plain(directive);
        let given = self.0.iter().position(|passages| passages.iter().any(repeats));
        let later = self.0.iter().skip(given.map_or(0, |given| given + 1)).flatten();
        let is_part = occurs(&plain(named), &plain(directive));
        let words = ContentWords::of(if is_part { named } else { directive });
        let is_about = |passage: &&String| {
            let said = ContentWords::of(passage);
            let common = words.common(&said).count();
            let share = words.share_in(&said).max(said.share_in(&words));
            share >= MENTIONS && (common > 1 || words.len() <= FEW_WORDS)
        };
        later.filter(|passage| !repeats(passage)).find(is_about).map(String::as_str)
    }
}

/// Whether somebody who says these words means this directive: they are the same, or one is in the other.
fn names(words: &str, directive: &str) -> bool {
    let is_part = |part: &str, whole: &str| part.len() >= SHORTEST_PART && occurs(part, whole);
    words == directive || is_part(words, directive) || is_part(directive, words)
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
