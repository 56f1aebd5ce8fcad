use std::ops::RangeInclusive;

use longhaul_journal::Result;
use longhaul_protocol::{Body, Record, Seq, SessionRecord};
use longhaul_tools::{OutputLimit, ToolOutcome};

use super::format::{RecordView, minute, status_suffix};
use super::reader::{HistoryPage, SessionHistory};

/// The most records in one answer.
const MAX_RECORDS: u64 = 200;
/// Bytes reserved for the last line.
const LAST_LINE_BYTES: usize = 240;

/// Records as a transcript. `key` stands before the numbers in references; it is empty for the session that asks.
pub(super) async fn read(
    mut history: SessionHistory,
    key: &str,
    range: RangeInclusive<Seq>,
    cap: OutputLimit,
) -> Result<ToolOutcome> {
    let (from, to) = range.into_inner();
    let head = history.head().await?;
    if from > head {
        return Ok(ToolOutcome::error(format!(
            "there is no record {key}#{from}: the session has records 1 to {head}"
        )));
    }
    let last = to.min(head).min(from.saturating_add(MAX_RECORDS - 1));
    let mut transcript = Transcript::within(cap);
    let mut next = from;
    while next <= last {
        let page = match history.page(next).await? {
            HistoryPage::Damaged(seq) => {
                if seq <= last && !transcript.add(&format!("[{key}#{seq}] can't be read: it is damaged\n")) {
                    break;
                }
                next = seq + 1;
                continue;
            }
            HistoryPage::Records(page) if page.is_empty() => break,
            HistoryPage::Records(page) => page,
        };
        for record in page.into_iter().filter(|record| record.seq <= last) {
            let seq = record.seq;
            let entry = entry(&mut history, key, record).await?;
            if entry.is_some_and(|entry| !transcript.add(&entry)) {
                return Ok(ToolOutcome::ok(transcript.closed(key, seq, to.min(head))));
            }
            next = seq + 1;
        }
    }
    Ok(ToolOutcome::ok(transcript.closed(key, next, to.min(head))))
}

/// A record as a transcript entry. `None` if it has no content.
async fn entry(history: &mut SessionHistory, key: &str, record: Record) -> Result<Option<String>> {
    let head = format!("[{key}#{}] {}", record.seq, minute(record.at));
    if let Body::Gone(gone) = &record.body {
        let reason: String = gone.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        return Ok(Some(format!("{head} {}: gone since {} ({reason})\n", record.kind, minute(gone.at))));
    }
    let Ok(fact) = SessionRecord::decode(&record) else {
        return Ok(Some(format!("{head} can't be read: it is not as a {} should be\n", record.kind)));
    };
    let status = history.status(record.seq, &fact).await?;
    let Some(RecordView { who, text }) = RecordView::of(fact) else { return Ok(None) };
    let mut entry = format!("{head} {who}{}\n", status_suffix(status));
    // Indented, so that no text can look like another record.
    for line in text.lines() {
        entry.push_str("  ");
        entry.push_str(line);
        entry.push('\n');
    }
    Ok(Some(entry))
}

/// Entries up to the size limit of a result.
struct Transcript {
    text: String,
    lines: usize,
    cap: OutputLimit,
}

impl Transcript {
    fn within(cap: OutputLimit) -> Self {
        let cap = OutputLimit {
            lines: cap.lines.saturating_sub(1),
            bytes: cap.bytes.saturating_sub(LAST_LINE_BYTES),
        };
        Self { text: String::new(), lines: 0, cap }
    }

    /// Adds an entry if there is room. The first entry is always added: if it is too long for any result, the result
    /// is truncated as usual and the whole output is kept.
    fn add(&mut self, entry: &str) -> bool {
        let lines = entry.lines().count();
        let fits = self.text.len() + entry.len() <= self.cap.bytes && self.lines + lines <= self.cap.lines;
        if !fits && !self.text.is_empty() {
            return false;
        }
        self.text.push_str(entry);
        self.lines += lines;
        true
    }

    /// The transcript, with a last line that says how to continue if something is missing.
    fn closed(mut self, key: &str, next: Seq, to: Seq) -> String {
        if self.text.is_empty() {
            self.text.push_str("[these records are bookkeeping; there is nothing to show]\n");
        }
        if next <= to {
            self.text
                .push_str(&format!("[not all of it: recall_read with ref \"{key}#{next}-{to}\" goes on]"));
        }
        self.text.trim_end_matches('\n').to_owned()
    }
}
