//! The records of a session as a list, one line each.

use longhaul_protocol::{Body, CompactDone, EpochReason, Record, SessionRecord};

use crate::local_time::format_exact_moment;
use crate::notice::compacted_by_text;
use crate::text::{format_count, format_number, truncate};

/// A record in one line: where, when, what.
pub fn record_line(record: &Record) -> String {
    let what = match &record.body {
        Body::Here(body) => context_text(record).unwrap_or_else(|| truncate(body.get(), 100)),
        Body::Gone(gone) => {
            format!("[erased on {}: {}]", format_exact_moment(gone.at), truncate(&gone.reason, 80))
        }
    };
    format!(
        "{:>6}  {}  {:<16} {what}",
        record.seq,
        format_exact_moment(record.at),
        truncate(&record.kind, 40)
    )
}

/// What a record says about the context; None if it is about something else.
fn context_text(record: &Record) -> Option<String> {
    // Few records are about the context, and the others need no decoding.
    let kinds =
        ["epoch_started", "compact_start", "compact_done", "compact_failed", "system_message", "stubbed"];
    if !kinds.contains(&record.kind.as_str()) {
        return None;
    }
    match SessionRecord::decode(record).ok()? {
        SessionRecord::EpochStarted(started) => {
            let why = match started.reason {
                EpochReason::Created => "session created",
                EpochReason::Compacted => "compacted",
                EpochReason::Stubbed => "old output shortened",
                EpochReason::QuietDropped => "heartbeats with nothing to do dropped",
                EpochReason::Changed => "system prompt or tools changed",
            };
            Some(format!("context {}: {why}", started.epoch))
        }
        SessionRecord::CompactStart(start) => Some(truncate(&start.reason, 100)),
        SessionRecord::CompactDone(done) => Some(compaction_text(&done)),
        SessionRecord::CompactFailed(failed) => Some(truncate(&failed.reason, 100)),
        SessionRecord::SystemMessage(message) => {
            let words: Vec<&str> = message.content.iter().map(|part| part.text.as_str()).collect();
            Some(truncate(&words.join(" "), 100))
        }
        SessionRecord::Stubbed(stubbed) => {
            Some(format!("{} shortened", format_count(stubbed.calls.len() as u64, "result")))
        }
        _ => None,
    }
}

fn compaction_text(done: &CompactDone) -> String {
    let CompactDone { epoch, by, before, after, from, through } = *done;
    let by = compacted_by_text(by);
    let (before, after) = (format_number(before), format_number(after));
    let many = through.saturating_sub(from) + 1;
    format!(
        "context {epoch}, {by}: {before} → {after} tokens; covers entries {from} to {through} \
         (to list them: --from {from} --limit {many})"
    )
}
