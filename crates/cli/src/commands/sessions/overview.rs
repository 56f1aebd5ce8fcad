//! S3: what `/session` shows, with the cost of the session.

use longhaul_agent::now;
use longhaul_journal::{Error, Journal, SessionEntry, records};
use longhaul_protocol::{At, Origin, SessionRecord, StreamName};
use longhaul_transcript::SessionCost;

use super::list::ago;
use crate::commands::context;
use crate::commands::save::session_size;
use crate::commands::status::StatusReport;
use crate::event_text;
use crate::output::{format_count, format_moment, format_number, named, truncate};

/// Facts about a session that are not in its state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionOverview {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The time of its last record.
    pub(crate) saved: Option<At>,
    pub(crate) pinned: bool,
    /// Where it was forked from.
    pub(crate) origin: Option<Origin>,
    pub(crate) cost: SessionCost,
}

impl SessionOverview {
    /// Reads all records of the session.
    pub(crate) async fn of(journal: &dyn Journal, entry: &SessionEntry) -> Result<Self, Error> {
        let size = session_size(journal, entry.id).await?;
        let mut about = Self {
            records: size.records,
            bytes: size.bytes,
            saved: entry.last_at,
            pinned: entry.pinned,
            origin: None,
            cost: SessionCost::default(),
        };
        let stream = StreamName::session(entry.id);
        let mut cursor = records(journal, &stream, 1).through(entry.head.seq);
        while let Some(record) = cursor.next_undamaged().await? {
            if !matches!(record.kind.as_str(), "usage" | "session_created") {
                continue;
            }
            match SessionRecord::decode(&record) {
                Ok(SessionRecord::SessionCreated(created)) => about.origin = created.origin,
                Ok(SessionRecord::Usage(usage)) => about.cost.add(&usage),
                _ => {}
            }
        }
        Ok(about)
    }

    fn cost(&self) -> String {
        let dollars = self.cost.cost.filter(|dollars| *dollars > 0.0);
        let unpriced = format_count(self.cost.unpriced, "call");
        match (dollars, self.cost.unpriced) {
            (None, 0) => "nothing yet".to_owned(),
            (None, _) => format!("unknown: no price for {unpriced}"),
            (Some(dollars), 0) => format!("${dollars:.4}"),
            (Some(dollars), _) => {
                format!("${dollars:.4}, without {unpriced} that have no known price")
            }
        }
    }
}

/// Without `about`, the session is not saved yet.
pub(crate) fn session_lines(report: &StatusReport, about: Option<&SessionOverview>) -> Vec<String> {
    let (status, state) = (&report.status, &report.status.state);
    let id = status.id.map_or_else(|| "not saved yet".to_owned(), |id| id.to_string());
    let model = Some(&report.model).filter(|model| !model.is_empty());
    let free = report.report.free().filter(|_| report.window().is_some());
    let free = match free {
        Some(free) => format!("{} tokens, plus room for the answer", format_number(free)),
        None => "unknown".to_owned(),
    };
    let mut lines = vec![
        named("session", truncate(&status.key, 200)),
        named("id", id),
        named("model", model.map_or_else(|| "none yet".to_owned(), |model| truncate(model, 200))),
        named("turns", format_count(state.turn_count, "turn")),
        named("used", report.context()),
        named("free", free),
        named("compactions", context::compactions(state.compaction.count, status.last_compaction.as_ref())),
    ];
    let Some(about) = about else { return lines };
    let (records, bytes) = (format_count(about.records, "entry"), format_count(about.bytes, "byte"));
    let saved = about
        .saved
        .map_or_else(|| "never".to_owned(), |at| format!("{} ({})", ago(now(), at), format_moment(at)));
    lines.push(named("last save", format!("{saved}; {records}, {bytes}")));
    lines.push(named("cost", about.cost()));
    if about.pinned {
        lines.push(named("pinned", "yes; never pruned"));
    }
    if let Some(imported) = event_text::imported(&status.import) {
        lines.push(named("imported", imported));
    }
    if let Some(origin) = &about.origin {
        lines.push(named("forked from", format!("{} at entry {}", origin.session, origin.seq)));
    }
    lines
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
