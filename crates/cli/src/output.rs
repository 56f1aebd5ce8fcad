//! Printing for people and programs: lines, JSON, and text from anywhere made safe for a terminal.

use std::io::Write;

use longhaul_protocol::{
    Body, CompactDone, CompactedBy, EpochReason, Outcome, Record, SessionRecord, is_misleading,
};
use serde::Serialize;

/// Prints a line to standard output, without characters that could control a terminal. Unlike `println!` it does not panic when the
/// reader has gone.
pub(crate) fn line(text: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", safe(&text.to_string()))?;
    Ok(())
}

/// Prints a line to standard error. Unlike `eprintln!` it does not panic when the terminal is gone: the shutdown has to go on.
pub(crate) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "longhaul: {}", safe(&text.to_string()));
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}

/// Prints JSON with `--json`, and else lines for people.
pub(crate) fn print<Value: Serialize>(
    as_json: bool,
    value: impl FnOnce() -> Value,
    lines: impl FnOnce() -> Vec<String>,
) -> anyhow::Result<()> {
    if as_json { json(&value()) } else { lines().into_iter().try_for_each(line) }
}

/// Whether the error only says that the reader of the output has gone.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A count with its noun: `1 record`, `1,234 records`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// A number with thousands separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// A record in one line: sequence number, time, kind, content.
pub(crate) fn record(record: &Record) -> String {
    let what = match &record.body {
        Body::Here(body) => describe_context_record(record).unwrap_or_else(|| shortened(body.get(), 100)),
        Body::Gone(gone) => format!("[gone since {}: {}]", gone.at, shortened(&gone.reason, 80)),
    };
    format!("{:>6}  {}  {:<16} {what}", record.seq, record.at, shortened(&record.kind, 40))
}

/// A record about the context, in words; `None` for other kinds.
fn describe_context_record(record: &Record) -> Option<String> {
    // Most records are of other kinds, and need not be decoded.
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
        SessionRecord::CompactDone(done) => Some(describe_compaction(&done)),
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

fn describe_compaction(done: &CompactDone) -> String {
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

/// Text from anywhere on one line, safe for a terminal, cut to `max_chars` characters with an ellipsis.
pub(crate) fn shortened(text: &str, max_chars: usize) -> String {
    let mut short: String = text.chars().take(max_chars).map(|character| visible(character, ' ')).collect();
    if text.chars().nth(max_chars).is_some() {
        short.push('…');
    }
    short
}

/// Text from anywhere with its line breaks, safe for a terminal.
pub(crate) fn safe(text: &str) -> String {
    // `\r\n` ends a line like `\n`.
    text.chars()
        .filter(|character| *character != '\r')
        .map(|character| visible(character, character))
        .collect()
}

/// The character, unless it could control or mislead a terminal's reader. Line breaks and tabs become `blank`.
fn visible(character: char, blank: char) -> char {
    match character {
        '\n' | '\t' => blank,
        character if is_misleading(character) => '\u{fffd}',
        character => character,
    }
}

/// The outcome of a turn, in words.
pub(crate) fn in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Limit => "limit reached",
    }
}
