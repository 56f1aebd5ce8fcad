//! `longhaul sessions list`: those that there are, and those in which something was said.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_journal::{Journal, Match, Page, Search, SessionEntry, import_mark, session_times};
use longhaul_protocol::{At, InboxRecord, Origin, PrintablePath, SessionId, SessionRecord, StreamName};
use serde::Serialize;

use super::SessionForm;
use crate::args::{GlobalArgs, ListOptions};
use crate::exit;
use crate::output::{grouped, json, line, shortened};
use crate::session_lookup::all_sessions;

/// So many records from the first are looked at for what a session is about.
const TITLE_PAGE: Page = Page { records: 16, bytes: 1 << 16 };
/// So many records in which the words stand are looked at.
const MAX_SEARCH_HITS: usize = 1_000;
/// So much of an input is shown.
const MAX_TITLE_CHARS: usize = 60;
/// The end of an id is enough to name a session.
const SHOWN_OF_ID: usize = 6;

/// A session as a list shows it.
#[derive(Serialize)]
pub(crate) struct SessionSummary {
    #[serde(flatten)]
    session: SessionForm,
    /// What it began with, in a few words.
    title: Option<String>,
    /// Where it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// It came from a file.
    imported: bool,
    /// When it was last used: its last record, or if that is later, when it was forked or imported.
    #[serde(skip)]
    used: Option<At>,
    #[serde(skip)]
    entry: SessionEntry,
}

impl SessionSummary {
    /// The session.
    pub(crate) fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    /// What it began with, in a few words.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }
}

pub(super) async fn run(globals: &GlobalArgs, options: ListOptions) -> anyhow::Result<u8> {
    let ListOptions { words, all, json: as_json } = options;
    let words = words.join(" ");
    let mut listed = Vec::new();
    if let Some(journal) = globals.open_journal().await? {
        listed = list(&journal, &words, if all { SessionFilter::All } else { SessionFilter::Usual }).await?;
        journal.close().await;
    }
    if as_json {
        json(&listed)?;
        return Ok(exit::DONE);
    }
    if listed.is_empty() {
        let folder = globals.home_dir()?;
        line(match words.is_empty() {
            true => format!("No sessions in {}; --all lists what is in the trash, too.", folder.printable()),
            false => format!("No session in {} has {words:?}.", folder.printable()),
        })?;
        return Ok(exit::DONE);
    }
    lines(&listed, now()).into_iter().try_for_each(line)?;
    Ok(exit::DONE)
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFilter {
    /// Those in which something is, and that were not put away.
    Usual,
    All,
}

/// Sessions, those that are pinned first, then the newest; with words, those whose keys have them or in which they were said.
pub(crate) async fn list(
    journal: &dyn Journal,
    words: &str,
    which: SessionFilter,
) -> anyhow::Result<Vec<SessionSummary>> {
    let mut sessions = all_sessions(journal).await?;
    let is_usual = |entry: &SessionEntry| !entry.trashed && (entry.head.seq > 0 || entry.inbox_head > 0);
    sessions.retain(|entry| which == SessionFilter::All || is_usual(entry));
    if !words.trim().is_empty() {
        let said_in = said_in(journal, words).await?;
        let wanted = words.to_lowercase();
        sessions.retain(|entry| said_in.contains(&entry.id) || entry.key.to_lowercase().contains(&wanted));
    }
    let times = session_times(journal).await?;
    let mut listed = Vec::with_capacity(sessions.len());
    for entry in sessions {
        let (title, origin) = beginning(journal, entry.id).await;
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
    Ok(listed)
}

async fn said_in(journal: &dyn Journal, words: &str) -> anyhow::Result<HashSet<SessionId>> {
    let search =
        Search { words: words.to_owned(), matching: Match::All, streams: vec![], limit: MAX_SEARCH_HITS };
    let hits = journal.search(&search).await?;
    Ok(hits.iter().filter_map(|hit| hit.stream.session_id()).collect())
}

/// What a session began with, and where. What can't be read is not shown: a list is no place for that.
async fn beginning(journal: &dyn Journal, id: SessionId) -> (Option<String>, Option<Origin>) {
    let (mut title, mut origin) = (None, None);
    for record in journal.read(&StreamName::session(id), 1, TITLE_PAGE).await.unwrap_or_default() {
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::SessionCreated(created)) => origin = created.origin,
            Ok(SessionRecord::InputTaken(input)) if title.is_none() => title = Some(input.text),
            _ => {}
        }
    }
    if title.is_none() {
        let first = journal.read(&StreamName::inbox(id), 1, TITLE_PAGE).await.unwrap_or_default();
        title = first.iter().find_map(|record| match InboxRecord::decode(record) {
            Ok(InboxRecord::Input(input)) => Some(input.text),
            _ => None,
        });
    }
    let in_one_line = |text: String| {
        shortened(text.split_whitespace().collect::<Vec<_>>().join(" ").as_str(), MAX_TITLE_CHARS)
    };
    (title.map(in_one_line), origin)
}

pub(crate) fn lines(listed: &[SessionSummary], now: At) -> Vec<String> {
    let width = listed.iter().map(|listed| listed.entry.key.chars().count()).max().unwrap_or(0).clamp(3, 60);
    let heading =
        format!("{:<width$}  {:>9}  {:<14}  {:<6}  BEGAN WITH", "KEY", "RECORDS", "LAST USED", "ID");
    let row = |listed: &SessionSummary| {
        let entry = &listed.entry;
        let id = entry.id.to_string();
        let (key, id) = (shortened(&entry.key, width), &id[id.len() - SHOWN_OF_ID..]);
        let used = listed.used.map_or_else(|| "-".to_owned(), |at| ago(now, at));
        let marks = [
            (entry.pinned, "[pinned] "),
            (entry.trashed, "[trash] "),
            (listed.imported, "[imported] "),
            (listed.origin.is_some(), "[fork] "),
        ];
        let marks: String = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        let (records, title) = (grouped(entry.head.seq), listed.title());
        format!("{key:<width$}  {records:>9}  {used:<14}  {id:<6}  {marks}{title}").trim_end().to_owned()
    };
    std::iter::once(heading).chain(listed.iter().map(row)).collect()
}

/// How long ago something was, as people say it; a day, if that was long ago.
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
        _ => at.to_string().chars().take(10).collect(),
    }
}

pub(crate) fn now() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
