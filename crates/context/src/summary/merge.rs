//! Merges a new summary with the previous one.
//!
//! The prompt tells the model to merge, so most fields are taken unchanged. Directives are not left to the model. A
//! quotation is replaced by the whole passage of the user's input that contains it, because a part of a sentence can
//! mean the opposite. A directive stays until the model names it as withdrawn and a later input of the user mentions
//! it.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};

use super::WrittenSummary;
use super::parse::strip_quotes;
use crate::quotable::sentences;
use crate::{ContentWords, is_task_notification, quotable_passages};

/// A part of a directive names it only if it has at least this many bytes, because short words occur in too many
/// directives.
const MIN_NAMED_BYTES: usize = 4;
/// A withdrawal must name this share of a directive's content words to remove the whole directive.
const WITHDRAWN_SHARE: f64 = 2.0 / 3.0;
/// An input mentions a directive if they share this part of the content words of the shorter one.
const MENTION_SHARE: f64 = 0.5;
/// For a directive with more content words than this, a single shared word is no mention.
const MAX_SINGLE_WORD_TOPIC: usize = 2;

/// The user's messages among these items, without notifications.
pub fn user_messages(items: &[Arc<Item>]) -> Vec<&str> {
    let words = items.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::User, text } if !is_task_notification(text) => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// Merges a new summary with the previous one. A directive is dropped only if the new summary names it as withdrawn
/// and the user mentioned it after giving it. A new directive that the user did not say in these words becomes a
/// constraint. `said` are the user's inputs, the oldest first.
pub fn merge_summaries(previous: Option<&Summary>, newer: WrittenSummary, said: &[&str]) -> Summary {
    let nothing = Summary::default();
    let previous = previous.unwrap_or(&nothing);
    let WrittenSummary { summary: newer, withdrawn } = newer;
    let has_only_notes = newer == Summary { notes: newer.notes.clone(), ..Summary::default() };
    let mut merged = if has_only_notes {
        Summary { notes: newer.notes.clone(), ..previous.clone() }
    } else {
        Summary {
            goal: or_previous_text(newer.goal, &previous.goal),
            directives: vec![],
            constraints: or_previous_list(newer.constraints, &previous.constraints),
            decisions: or_previous_list(newer.decisions, &previous.decisions),
            done: or_previous_list(newer.done, &previous.done),
            in_progress: newer.in_progress,
            next_action: newer.next_action,
            blocked: newer.blocked,
            files: or_previous_list(newer.files, &previous.files),
            commands: or_previous_list(newer.commands, &previous.commands),
            notes: or_previous_text(newer.notes, &previous.notes),
        }
    };
    let said = UserInputs::new(said);
    let (quoted, invented) = said.split_directives(newer.directives, &previous.directives);
    let DirectiveOutcome { kept, withdrawn } =
        said.keep_directives(&previous.directives, &quoted, &withdrawn);
    merged.directives = dedup_entries(kept.into_iter().chain(quoted), &mut HashSet::new());
    let mut known = merged.directives.iter().map(|directive| comparable(directive)).collect();
    merged.constraints = dedup_entries(merged.constraints.into_iter().chain(invented), &mut known);
    for line in withdrawn {
        if !merged.decisions.contains(&line) {
            merged.decisions.push(line);
        }
    }
    merged
}

fn or_previous_text(newer: String, previous: &str) -> String {
    if newer.trim().is_empty() { previous.to_owned() } else { newer }
}

fn or_previous_list(newer: Vec<String>, previous: &[String]) -> Vec<String> {
    if newer.is_empty() { previous.to_vec() } else { newer }
}

/// The quotable passages of each input, the oldest input first.
struct UserInputs(Vec<Vec<String>>);

struct DirectiveOutcome {
    kept: Vec<String>,
    /// A line for each withdrawal, with the user's words that prove it.
    withdrawn: Vec<String>,
}

impl UserInputs {
    fn new(said: &[&str]) -> Self {
        Self(said.iter().map(|input| quotable_passages(input)).collect())
    }

    /// Splits new directives into those that the user said, as whole passages, and the others.
    fn split_directives(&self, newer: Vec<String>, previous: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut quoted, mut invented) = (Vec::new(), Vec::new());
        for directive in newer {
            let whole = self.source_passage(&directive, previous).map(|source| vec![source]);
            // A model may quote several sentences of a long input as one directive.
            let sentences =
                || sentences(&directive).iter().map(|part| self.source_passage(part, previous)).collect();
            match whole.or_else(sentences) {
                Some(sources) => quoted.extend(sources.into_iter().map(str::to_owned)),
                None => invented.push(directive),
            }
        }
        (quoted, invented)
    }

    /// The passage that contains these words: a known directive, otherwise the shortest passage of the user's inputs.
    fn source_passage<'a>(&'a self, words: &str, previous: &'a [String]) -> Option<&'a str> {
        let words = comparable(words);
        let holds = |passage: &&String| occurs_as_words(&words, &comparable(passage));
        let known = previous.iter().find(|directive| comparable(directive) == words);
        let said = || self.0.iter().flatten().filter(holds).min_by_key(|passage| passage.len());
        known.or_else(said).or_else(|| previous.iter().find(holds)).map(String::as_str)
    }

    /// Decides which directives stay. A directive that the new summary lists always stays.
    fn keep_directives(
        &self,
        previous: &[String],
        listed: &[String],
        withdrawn: &[String],
    ) -> DirectiveOutcome {
        let listed: HashSet<String> = listed.iter().map(|directive| comparable(directive)).collect();
        let mut outcome = DirectiveOutcome { kept: vec![], withdrawn: vec![] };
        for directive in previous {
            let directive_words = ContentWords::of(directive);
            let named =
                withdrawn.iter().find(|words| is_named_by(&comparable(words), &comparable(directive)));
            let named = named.filter(|_| !listed.contains(&comparable(directive)));
            let evidence = named.and_then(|words| Some((words, self.later_mention(directive, words)?)));
            let mut goes = false;
            if let Some((words, said)) = evidence {
                // The user may withdraw one sentence of a directive that has several.
                goes = comparable(words) == comparable(directive)
                    || directive_words.share_in(&ContentWords::of(words)) >= WITHDRAWN_SHARE;
                let what = if goes { directive } else { words };
                outcome
                    .withdrawn
                    .push(format!("withdrawn by the user: \"{what}\", in these words: \"{said}\""));
            }
            if !goes {
                outcome.kept.push(directive.clone());
            }
        }
        outcome
    }

    /// What the user said about a directive, or about its named part, after giving it. Repeating the directive does
    /// not withdraw it.
    fn later_mention(&self, directive: &str, named: &str) -> Option<&str> {
        let repeats = |passage: &String| comparable(passage) == comparable(directive);
        let given_at = self.0.iter().position(|passages| passages.iter().any(repeats));
        let later = self.0.iter().skip(given_at.map_or(0, |at| at + 1)).flatten();
        let is_part = occurs_as_words(&comparable(named), &comparable(directive));
        let words = ContentWords::of(if is_part { named } else { directive });
        let is_about = |passage: &&String| {
            let said = ContentWords::of(passage);
            let common = words.common(&said).count();
            let share = words.share_in(&said).max(said.share_in(&words));
            share >= MENTION_SHARE && (common > 1 || words.len() <= MAX_SINGLE_WORD_TOPIC)
        };
        later.filter(|passage| !repeats(passage)).find(is_about).map(String::as_str)
    }
}

/// Whether these words mean this directive: they are equal, or one contains the other.
fn is_named_by(words: &str, directive: &str) -> bool {
    let is_part = |part: &str, whole: &str| part.len() >= MIN_NAMED_BYTES && occurs_as_words(part, whole);
    words == directive || is_part(words, directive) || is_part(directive, words)
}

/// A text for comparison: ignores case, spaces, the form of quotes and surrounding punctuation.
fn comparable(text: &str) -> String {
    let text = strip_quotes(text).trim_end_matches(['.', ',', ';', '!']);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.replace(['‘', '’'], "'").replace(['“', '”', '„'], "\"")
}

/// Whether a text contains another at word boundaries.
fn occurs_as_words(part: &str, whole: &str) -> bool {
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

fn dedup_entries(entries: impl Iterator<Item = String>, known: &mut HashSet<String>) -> Vec<String> {
    entries
        .filter(|entry| {
            Some(comparable(entry))
                .is_some_and(|comparable| !comparable.is_empty() && known.insert(comparable))
        })
        .collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
