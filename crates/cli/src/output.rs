//! What people and programs read.

use std::io::Write;

use longhaul_protocol::{
    Body, CompactDone, CompactedBy, EpochReason, Outcome, Record, SessionRecord, is_misleading,
};
use serde::Serialize;

/// Prints a line to standard output. Unlike `println!` it does not panic when nobody reads any more.
/// What could drive a terminal is taken out of it.
pub(crate) fn line(text: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", safe(&text.to_string()))?;
    Ok(())
}

/// Prints a line for people to standard error. Unlike `eprintln!` it does not panic when the terminal is gone, which is just
/// when something has to be brought to its end.
pub(crate) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "longhaul: {}", safe(&text.to_string()));
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}

/// Whether the error is only that the reader of our output has gone.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A count with its noun: `1 record`, `1,234 records`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A record in one line for people: where, when, what.
pub(crate) fn record(record: &Record) -> String {
    let what = match &record.body {
        Body::Here(body) => about_context(record).unwrap_or_else(|| shortened(body.get(), 100)),
        Body::Gone(gone) => format!("[gone since {}: {}]", gone.at, shortened(&gone.reason, 80)),
    };
    format!("{:>6}  {}  {:<16} {what}", record.seq, record.at, shortened(&record.kind, 40))
}

/// What a record says about the context, in words; nothing, if it is about something else.
fn about_context(record: &Record) -> Option<String> {
    // Few are, and the others need not be decoded.
    let kinds =
        ["epoch_started", "compact_start", "compact_done", "compact_failed", "system_message", "stubbed"];
    if !kinds.contains(&record.kind.as_str()) {
        return None;
    }
    match SessionRecord::decode(record).ok()? {
        SessionRecord::EpochStarted(started) => {
            let why = match started.reason {
                EpochReason::Created => "the session began",
                EpochReason::Compacted => "the context was compacted",
                EpochReason::Stubbed => "old output became stubs",
                EpochReason::Changed => "the system prompt or the tools changed",
            };
            Some(format!("epoch {}: {why}", started.epoch))
        }
        SessionRecord::CompactStart(start) => Some(shortened(&start.reason, 100)),
        SessionRecord::CompactDone(done) => Some(in_words_compacted(&done)),
        SessionRecord::CompactFailed(failed) => Some(shortened(&failed.reason, 100)),
        SessionRecord::SystemMessage(message) => {
            let words: Vec<&str> = message.content.iter().map(|part| part.text.as_str()).collect();
            Some(shortened(&words.join(" "), 100))
        }
        SessionRecord::Stubbed(stubbed) => {
            Some(format!("{} shortened to a line each", count(stubbed.calls.len() as u64, "result")))
        }
        _ => None,
    }
}

fn in_words_compacted(done: &CompactDone) -> String {
    let CompactDone { epoch, by, before, after, from, through } = *done;
    let by = match by {
        CompactedBy::Model => "by a summary",
        CompactedBy::Rule => "by rule",
    };
    let (before, after) = (grouped(before), grouped(after));
    let many = through.saturating_sub(from) + 1;
    format!(
        "epoch {epoch}, {by}: {before} tokens became {after}; it covers seq {from} to {through} \
         (--from {from} --limit {many} shows them)"
    )
}

/// Text from anywhere, safe to show in a terminal and at most so long.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).map(|character| visible(character, ' ')).collect();
    if text.chars().nth(longest).is_some() {
        short.push('…');
    }
    short
}

/// Text from anywhere, in as many lines as it has, safe to show in a terminal.
pub(crate) fn safe(text: &str) -> String {
    // The end of a line is the same with it and without.
    text.chars()
        .filter(|character| *character != '\r')
        .map(|character| visible(character, character))
        .collect()
}

/// A character that can't drive a terminal; white space that is none of the usual becomes `blank`.
fn visible(character: char, blank: char) -> char {
    match character {
        '\n' | '\t' => blank,
        character if is_misleading(character) => '\u{fffd}',
        character => character,
    }
}

/// How a turn ended.
pub(crate) fn in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Limit => "limit reached",
    }
}
