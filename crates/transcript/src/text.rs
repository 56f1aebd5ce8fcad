//! Text from anywhere made safe to show, and numbers, durations and ids in the form that people read.

use std::fmt::Display;
use std::time::Duration;

use longhaul_protocol::{Cause, Outcome, is_misleading, single_quoted};

/// Characters of an id that are shown: the last ones, because they are random; the first ones are the time.
const SHORT_ID_CHARS: usize = 6;

/// Replaces every character that could control a terminal or mislead a reader. Line breaks and tabs stay; a carriage return
/// is dropped, because a line ends the same with it and without.
pub fn sanitize(text: &str) -> String {
    let characters = text.chars().filter(|character| *character != '\r');
    characters.map(|character| sanitize_character(character, character)).collect()
}

/// Sanitizes a text, puts it on one line and cuts it after `max_chars` characters, with `…` where it is cut.
pub fn truncate(text: &str, max_chars: usize) -> String {
    let mut short: String =
        text.chars().take(max_chars).map(|character| sanitize_character(character, ' ')).collect();
    if text.chars().nth(max_chars).is_some() {
        short.push('…');
    }
    short
}

fn sanitize_character(character: char, white_space: char) -> char {
    match character {
        '\n' | '\t' => white_space,
        character if is_misleading(character) => '\u{fffd}',
        character => character,
    }
}

/// A count with its noun: `1 task`, `1,234 tasks`, `2 entries`.
pub fn format_count(number: u64, noun: &str) -> String {
    let (stem, ending) = match noun.strip_suffix("ry") {
        _ if number == 1 => (noun, ""),
        Some(stem) => (stem, "ries"),
        None => (noun, "s"),
    };
    format!("{} {stem}{ending}", format_number(number))
}

/// A number with separated thousands: `1,234,567`.
pub fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// A duration, rounded up: `0.2 s`, `3 s`, `2 min 5 s`, `1 h 20 min`.
pub fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1_000);
    match (milliseconds, seconds) {
        (0..950, _) => format!("0.{} s", milliseconds.div_ceil(100)),
        (_, 0..=90) => format!("{seconds} s"),
        (_, 91..=5_400) => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A running time in whole seconds, rounded down, so that a display changes once a second.
pub fn format_elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", format_number(seconds / 3_600), seconds % 3_600 / 60),
    }
}

/// The part of an id that people see and type.
pub fn short_id(id: impl Display) -> String {
    let id = id.to_string();
    id[id.len() - SHORT_ID_CHARS..].to_owned()
}

/// One word of a shell command, in quotes if it needs them.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => single_quoted(word),
    }
}

/// What began a turn, unless a person did.
pub(crate) fn cause_text(cause: Option<Cause>) -> Option<&'static str> {
    match cause? {
        Cause::Schedule => Some("by a schedule"),
        Cause::Task => Some("by the end of a task"),
        Cause::Child => Some("by the end of a subagent"),
        Cause::Subagent => Some("by the parent agent"),
        Cause::Message => Some("by another agent"),
        Cause::Turn | Cause::Compaction | Cause::Memory | Cause::Title => None,
    }
}

/// How a turn ended.
pub fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Limit => "limit reached",
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
