//! S3: `/session`, what there is to know about a session at a glance.

use longhaul_journal::{Error, Journal, Page, SessionEntry};
use longhaul_protocol::{At, Origin, SessionRecord, StreamName};

use super::list::{ago, now};
use crate::commands::context;
use crate::commands::save::size;
use crate::commands::status::SessionStatus;
use crate::event_text;
use crate::output::{count, grouped, shortened};

/// What is known of a session besides its state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionOverview {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// When its last record came.
    pub(crate) saved: Option<At>,
    pub(crate) pinned: bool,
    /// Where it was forked from.
    pub(crate) origin: Option<Origin>,
    /// What it has cost, in US dollars.
    pub(crate) cost: f64,
    /// Calls of which nobody says what they cost.
    pub(crate) unpriced: u64,
}

impl SessionOverview {
    /// It costs a look at all records.
    pub(crate) async fn of(journal: &dyn Journal, entry: &SessionEntry) -> Result<Self, Error> {
        let size = size(journal, entry.id).await?;
        let mut about = Self {
            records: size.records,
            bytes: size.bytes,
            saved: entry.last_at,
            pinned: entry.pinned,
            origin: None,
            cost: 0.0,
            unpriced: 0,
        };
        let stream = StreamName::session(entry.id);
        let mut next = 1;
        while next <= entry.head.seq {
            let page = match journal.read(&stream, next, Page::default()).await {
                Err(Error::Damaged { seq, .. }) => {
                    next = seq + 1;
                    continue;
                }
                page => page?,
            };
            let Some(last) = page.last() else { break };
            next = last.seq + 1;
            for record in
                page.iter().filter(|record| matches!(record.kind.as_str(), "usage" | "session_created"))
            {
                match SessionRecord::decode(record) {
                    Ok(SessionRecord::SessionCreated(created)) => about.origin = created.origin,
                    Ok(SessionRecord::Usage(usage)) => match usage.cost {
                        Some(cost) => about.cost += cost,
                        None => about.unpriced += 1,
                    },
                    _ => {}
                }
            }
        }
        Ok(about)
    }

    fn cost(&self) -> String {
        match (self.cost > 0.0, self.unpriced) {
            (false, 0) => "nothing yet".to_owned(),
            (false, unpriced) => format!("not known: nobody says what {} cost", count(unpriced, "call")),
            (true, 0) => format!("${:.4}", self.cost),
            (true, unpriced) => {
                format!(
                    "${:.4}, and {} of which nobody says what they cost",
                    self.cost,
                    count(unpriced, "call")
                )
            }
        }
    }
}

/// What `/session` shows, one thing a line. Without `about`, the session is not stored yet.
pub(crate) fn session_lines(status: &SessionStatus, about: Option<&SessionOverview>) -> Vec<String> {
    let named = |name: &str, value: String| format!("{name:<13} {value}");
    let state = &status.state;
    let id = status.id.map_or_else(|| "not stored yet".to_owned(), |id| id.to_string());
    let model = Some(&status.model).filter(|model| !model.is_empty());
    // What another model has room for is not what is asked about.
    let free = status.report.free().filter(|_| status.window().is_some());
    let free = match free {
        Some(free) => format!("{} tokens, besides room for an answer", grouped(free)),
        None => "not known".to_owned(),
    };
    let mut lines = vec![
        named("session", shortened(&status.key, 200)),
        named("id", id),
        named("model", model.map_or_else(|| "none yet".to_owned(), |model| shortened(model, 200))),
        named("turns", count(state.turns, "turn")),
        named("used", status.context()),
        named("free", free),
        named("compactions", context::compactions(state.compaction.count, status.last_compaction.as_ref())),
    ];
    let Some(about) = about else { return lines };
    let (records, bytes) = (count(about.records, "record"), count(about.bytes, "byte"));
    let saved = about.saved.map_or_else(|| "never".to_owned(), |at| format!("{} ({at})", ago(now(), at)));
    lines.push(named("last save", format!("{saved}; {records}, {bytes}")));
    lines.push(named("cost", about.cost()));
    if about.pinned {
        lines.push(named("pinned", "retention leaves it alone".to_owned()));
    }
    if let Some(imported) = event_text::imported(&status.import) {
        lines.push(named("imported", imported));
    }
    if let Some(origin) = &about.origin {
        lines.push(named("forked from", format!("{} at record {}", origin.session, origin.seq)));
    }
    lines
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
