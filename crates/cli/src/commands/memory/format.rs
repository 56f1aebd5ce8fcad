//! Memory as lines for people and as JSON. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use longhaul_agent::config::MemorySettings;
use longhaul_memory::{CORE_PAGE, Page, PageLogEntry, RecallHit, RecallPlace};
use longhaul_protocol::{ChangedBy, PrintablePath, Speaker};
use serde_json::{Value, json};

use super::scope::in_words;
use crate::output::{format_count, format_moment, format_number, sanitize, truncate};

/// Refused items listed for one change; JSON has all of them.
const MAX_REFUSALS_SHOWN: usize = 5;

/// What `longhaul memory` shows.
pub(crate) struct PageListing {
    pub(crate) scope: String,
    pub(crate) pages: BTreeMap<String, Page>,
    /// Extracted items that no page has taken in yet.
    pub(crate) waiting: u64,
    pub(crate) settings: MemorySettings,
    /// The folder with the pages as files.
    pub(crate) folder: PathBuf,
    /// Files that were left alone because the user changed them.
    pub(crate) left: Vec<String>,
    /// The other scopes of the home.
    pub(crate) others: BTreeSet<String>,
}

impl PageListing {
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.pages.is_empty() {
            true => {
                lines.push(format!("No pages in {} yet.", self.scope));
                if !self.others.is_empty() {
                    lines.push(format!("other memories (see with --scope NAME): {}", in_words(&self.others)));
                }
            }
            false => lines.extend(self.table()),
        }
        lines.push(self.waiting_line());
        if !self.pages.is_empty() {
            lines.push(format!("as files: {}", self.folder.printable()));
        }
        lines.extend(self.left.iter().map(|left| format!("  {}", sanitize(left).replace('\n', "\n  "))));
        lines
    }

    fn table(&self) -> Vec<String> {
        let longest = self.pages.keys().map(|name| name.chars().count()).max().unwrap_or(0);
        let width = longest.clamp(4, 40);
        let pages = format_count(self.pages.len() as u64, "page");
        let mut lines = vec![
            format!("{}: {pages}", self.scope),
            format!(
                "{:<width$}  {:>8}  {:<16}  {:<13}  {:>9}  FIRST LINE",
                "PAGE", "VERSIONS", "LAST CHANGE", "BY", "BYTES"
            ),
        ];
        for (name, page) in in_order(&self.pages) {
            let last = page.versions.last();
            let at = last.map_or_else(|| "-".to_owned(), |version| format_moment(version.at));
            let by = last.map_or("-", |version| author(version.by));
            let (name, bytes) = (truncate(name, width), format_number(page.text.len() as u64));
            let versions = format_number(page.versions.len() as u64);
            let first = truncate(first_line(&page.text), 60);
            let line = format!("{name:<width$}  {versions:>8}  {at:<16}  {by:<13}  {bytes:>9}  {first}");
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    /// How many items wait for consolidation, and when it runs.
    fn waiting_line(&self) -> String {
        let due = self.settings.consolidate_at_items;
        let waiting = match self.waiting {
            0 => "no new items".to_owned(),
            1 => "1 new item not in a page yet".to_owned(),
            many => format!("{} new items not in a page yet", format_number(many)),
        };
        let when = match (self.settings.extract_at_tokens, due) {
            (0, _) => "extraction is off (memory.extract_at_tokens is 0)".to_owned(),
            (_, 0) => "consolidation is off (memory.consolidate_at_items is 0)".to_owned(),
            (_, due) => format!("pages are updated at {}", format_count(due, "item")),
        };
        format!("{waiting}; {when}")
    }

    pub(crate) fn as_json(&self) -> Value {
        let page = |(name, page): (&String, &Page)| {
            let last = page.versions.last();
            json!({
                "page": name,
                "first_line": first_line(&page.text),
                "versions": page.versions.len(),
                "version": last.map(|version| version.seq),
                "changed_at": last.map(|version| version.at.to_string()),
                "changed_by": last.map(|version| version.by),
                "bytes": page.text.len(),
            })
        };
        json!({
            "scope": self.scope,
            "pages": in_order(&self.pages).map(page).collect::<Vec<_>>(),
            "waiting": self.waiting,
            "consolidate_at_items": self.settings.consolidate_at_items,
            "folder": self.folder,
            "files_left": self.left,
            "other_scopes": self.others,
        })
    }
}

/// The core page first, the others by name.
fn in_order(pages: &BTreeMap<String, Page>) -> impl Iterator<Item = (&String, &Page)> {
    let (core, others): (Vec<_>, Vec<_>) = pages.iter().partition(|(name, _)| *name == CORE_PAGE);
    core.into_iter().chain(others)
}

/// The first line with text, without Markdown marks.
fn first_line(text: &str) -> &str {
    let words = text.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ']).trim());
    words.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
}

fn author(by: ChangedBy) -> &'static str {
    match by {
        ChangedBy::Consolidation => "consolidation",
        ChangedBy::Person => "person",
        ChangedBy::Note => "note",
        ChangedBy::Undo => "undo",
    }
}

pub(crate) fn log_lines(entries: &[PageLogEntry]) -> Vec<String> {
    entries.iter().flat_map(change_lines).collect()
}

fn change_lines(entry: &PageLogEntry) -> Vec<String> {
    let PageLogEntry { seq, at, by: who, reason, pages, refused, undoes, cost } = entry;
    let names: Vec<&str> = pages.iter().map(|(page, ..)| page.as_str()).collect();
    let names = if names.is_empty() { "no page".to_owned() } else { truncate(&names.join(", "), 200) };
    let undoes = undoes.map(|seq| format!(", undoes {seq}")).unwrap_or_default();
    let cost = cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    let mut lines =
        vec![format!("{seq:>6}  {}  {}: {names}{undoes}{cost}", format_moment(*at), author(*who))];
    if !reason.is_empty() {
        lines.push(format!("        {}", truncate(reason, 300)));
    }
    for (page, why, sources) in pages {
        let sources = match *sources {
            0 => String::new(),
            many => format!(" (from {})", format_count(many as u64, "item")),
        };
        if (why.is_empty() || why == reason) && sources.is_empty() {
            continue;
        }
        let why = if why.is_empty() { String::new() } else { format!(": {}", truncate(why, 300)) };
        lines.push(format!("        {}{why}{sources}", truncate(page, 80)));
    }
    lines.extend(
        refused
            .iter()
            .take(MAX_REFUSALS_SHOWN)
            .map(|why| format!("        rejected: {}", truncate(why, 300))),
    );
    if refused.len() > MAX_REFUSALS_SHOWN {
        lines.push(format!("        and {} more rejected", refused.len() - MAX_REFUSALS_SHOWN));
    }
    lines
}

pub(super) fn log_json(entry: &PageLogEntry) -> Value {
    let page = |(page, reason, sources): &(String, String, usize)| json!({"page": page, "reason": reason, "sources": sources});
    json!({
        "seq": entry.seq,
        "at": entry.at.to_string(),
        "by": entry.by,
        "reason": entry.reason,
        "pages": entry.pages.iter().map(page).collect::<Vec<_>>(),
        "refused": entry.refused,
        "undoes": entry.undoes,
        "cost": entry.cost,
    })
}

/// A search result with the key of its session.
pub(crate) struct MemoryHit {
    pub(crate) found: RecallHit,
    pub(crate) key: Option<String>,
}

pub(crate) fn hit_lines(hits: &[MemoryHit]) -> Vec<String> {
    hits.iter().flat_map(lines_of_hit).collect()
}

fn lines_of_hit(hit: &MemoryHit) -> [String; 2] {
    let MemoryHit { found, key } = hit;
    let key = truncate(key.as_deref().unwrap_or("a session"), 60);
    let place = match &found.place {
        RecallPlace::Page(name) => format!("page {}", truncate(name, 80)),
        RecallPlace::Item { .. } => match &found.sources[..] {
            [] => format!("item from {key}"),
            sources => format!("item from {key}, {}", records(sources)),
        },
        RecallPlace::Record { seq, .. } => format!("entry {seq} of {key}"),
    };
    let speaker = match found.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
        Speaker::Untrusted => "untrusted",
    };
    [
        format!("{place}  ({speaker}, {})", format_moment(found.at)),
        format!("    {}", truncate(found.excerpt.trim(), 400)),
    ]
}

fn records(seqs: &[u64]) -> String {
    let shown: Vec<String> = seqs.iter().take(5).map(ToString::to_string).collect();
    let more = if seqs.len() > shown.len() { ", …" } else { "" };
    let noun = if seqs.len() == 1 { "entry" } else { "entries" };
    format!("{noun} {}{more}", shown.join(", "))
}

pub(super) fn hit_json(hit: &MemoryHit) -> Value {
    let MemoryHit { found, key } = hit;
    let mut form = match &found.place {
        RecallPlace::Page(name) => json!({"kind": "page", "page": name}),
        RecallPlace::Item { session, seq, item } => {
            json!({"kind": "item", "session": key, "id": session, "extract": seq, "item": item})
        }
        RecallPlace::Record { session, seq } => {
            json!({"kind": "record", "session": key, "id": session, "seq": seq})
        }
    };
    form["speaker"] = json!(found.speaker);
    form["at"] = json!(found.at.to_string());
    form["excerpt"] = json!(found.excerpt);
    form["sources"] = json!(found.sources);
    form
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
