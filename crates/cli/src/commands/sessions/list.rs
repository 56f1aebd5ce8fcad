//! `longhaul sessions list [WORDS]`: the sessions, or those that match a search.

use longhaul_agent::{SessionTitle, now, session_title};
use longhaul_journal::{
    Journal, SessionEntry, all_sessions, import_mark, session_times, sessions_with_words,
};
use longhaul_memory::unindexed_notice;
use longhaul_protocol::{At, Origin, PrintablePath};
use serde::Serialize;

use super::SessionForm;
use crate::args::{GlobalArgs, ListOptions};
use crate::exit;
use crate::output::{format_date, format_number, note, print, truncate};
use crate::short_id::short;

const MAX_TITLE_CHARS: usize = 60;

/// A session in a list.
#[derive(Serialize)]
pub(crate) struct SessionSummary {
    #[serde(flatten)]
    session: SessionForm,
    /// The beginning of its first input.
    title: Option<String>,
    /// Where it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    imported: bool,
    /// The time of its last record, or of its fork or import if that is later.
    #[serde(skip)]
    used: Option<At>,
    #[serde(skip)]
    entry: SessionEntry,
}

impl SessionSummary {
    pub(crate) fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }
}

pub(super) async fn run(globals: &GlobalArgs, options: ListOptions) -> anyhow::Result<u8> {
    let ListOptions { words, all, json: as_json } = options;
    let words = words.join(" ");
    let mut found = SessionList::default();
    if let Some(journal) = globals.open_journal().await? {
        found = list(&journal, &words, if all { SessionFilter::All } else { SessionFilter::Usual }).await?;
        journal.close().await;
    }
    let SessionList { sessions: listed, unindexed } = found;
    if let Some(notice) = unindexed_notice(unindexed) {
        note(notice);
    }
    let (folder, has_words) = (globals.home_dir()?, !words.is_empty());
    let to_lines = || match listed.is_empty() {
        true if has_words => vec![format!("No session in {} matches {words:?}.", folder.printable())],
        true => {
            vec![format!("No sessions in {} (--all includes the trash).", folder.printable())]
        }
        false => table(&listed, now()),
    };
    print(as_json, || &listed, to_lines)?;
    Ok(exit::DONE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFilter {
    /// Those with content that are not in the trash.
    Usual,
    All,
}

/// Sessions, and whether there may be more.
#[derive(Default)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<SessionSummary>,
    /// Records in which the words were not looked for yet, because the search index is being rebuilt.
    pub(crate) unindexed: u64,
}

/// The sessions, pinned ones first, then by last use. With words, those whose key contains them or in which they were said.
pub(crate) async fn list(
    journal: &dyn Journal,
    words: &str,
    which: SessionFilter,
) -> anyhow::Result<SessionList> {
    let mut unindexed = 0;
    let mut sessions = all_sessions(journal).collect().await?;
    let is_usual = |entry: &SessionEntry| !entry.trashed && (entry.head.seq > 0 || entry.inbox_head > 0);
    sessions.retain(|entry| which == SessionFilter::All || is_usual(entry));
    if !words.trim().is_empty() {
        let said_in = sessions_with_words(journal, words).await?;
        unindexed = said_in.unindexed;
        let wanted = words.to_lowercase();
        sessions.retain(|entry| {
            said_in.sessions.contains(&entry.id) || entry.key.to_lowercase().contains(&wanted)
        });
    }
    let times = session_times(journal).await?;
    let mut listed = Vec::with_capacity(sessions.len());
    for entry in sessions {
        let SessionTitle { text, origin } = session_title(journal, entry.id).await;
        let title = text.map(|text| truncate(&text, MAX_TITLE_CHARS));
        let used = entry.last_at.max(times.get(&entry.id).map(|times| times.named));
        let imported = import_mark(journal, entry.id).await?.seq > 0;
        listed.push(SessionSummary { session: entry.clone().into(), title, origin, imported, used, entry });
    }
    listed.sort_by(|one, other| {
        let newest = other.used.cmp(&one.used);
        other
            .entry
            .pinned
            .cmp(&one.entry.pinned)
            .then(newest)
            .then_with(|| one.entry.key.cmp(&other.entry.key))
    });
    Ok(SessionList { sessions: listed, unindexed })
}

pub(crate) fn table(listed: &[SessionSummary], now: At) -> Vec<String> {
    let width = listed.iter().map(|listed| listed.entry.key.chars().count()).max().unwrap_or(0).clamp(3, 60);
    let heading =
        format!("{:<width$}  {:>9}  {:<14}  {:<6}  FIRST MESSAGE", "KEY", "ENTRIES", "LAST USED", "ID");
    let row = |listed: &SessionSummary| {
        let entry = &listed.entry;
        let (key, id) = (truncate(&entry.key, width), short(entry.id));
        let used = listed.used.map_or_else(|| "-".to_owned(), |at| ago(now, at));
        let marks = [
            (entry.pinned, "[pinned] "),
            (entry.trashed, "[trash] "),
            (listed.imported, "[imported] "),
            (listed.origin.is_some(), "[fork] "),
        ];
        let marks: String = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        let (records, title) = (format_number(entry.head.seq), listed.title());
        format!("{key:<width$}  {records:>9}  {used:<14}  {id:<6}  {marks}{title}").trim_end().to_owned()
    };
    std::iter::once(heading).chain(listed.iter().map(row)).collect()
}

/// `5 min ago`; from 30 days on, the date.
pub(crate) fn ago(now: At, at: At) -> String {
    let seconds = now.0.saturating_sub(at.0).max(0) / 1_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..2_592_000 => {
            let days = seconds / 86_400;
            if days == 1 { "1 day ago".to_owned() } else { format!("{days} days ago") }
        }
        _ => format_date(at),
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
