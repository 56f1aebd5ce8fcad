//! Memory as lines for people and as JSON. Pure.

use std::collections::BTreeSet;
use std::path::PathBuf;

use longhaul_agent::config::MemorySettings;
use longhaul_agent::memory_pages::{MemoryHit, PageSummary};
use longhaul_memory::{PageLogEntry, PageSet, RecallPlace};
use longhaul_protocol::{ChangedBy, PrintablePath, Speaker};
use serde_json::{Value, json};

use super::scope::in_words;
use crate::output::{format_count, format_moment, format_number, sanitize, truncate};

/// Refused items listed for one change; JSON has all of them.
const MAX_REFUSALS_SHOWN: usize = 5;

/// What `longhaul memory` shows.
pub(crate) struct PageListing {
    pub(crate) pages: PageSet,
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
        match self.pages.pages.is_empty() {
            true => {
                lines.push(format!("No pages in {} yet.", self.pages.scope));
                if !self.others.is_empty() {
                    lines.push(format!("other memories (see with --scope NAME): {}", in_words(&self.others)));
                }
            }
            false => lines.extend(self.table()),
        }
        lines.push(self.waiting_line());
        if !self.pages.pages.is_empty() {
            lines.push(format!("as files: {}", self.folder.printable()));
        }
        lines.extend(self.left.iter().map(|left| format!("  {}", sanitize(left).replace('\n', "\n  "))));
        lines
    }

    fn table(&self) -> Vec<String> {
        let pages = PageSummary::list(&self.pages);
        let longest = pages.iter().map(|page| page.page.chars().count()).max().unwrap_or(0);
        let width = longest.clamp(4, 40);
        let count = format_count(pages.len() as u64, "page");
        let mut lines = vec![
            format!("{}: {count}", self.pages.scope),
            format!(
                "{:<width$}  {:>8}  {:<16}  {:<13}  {:>9}  FIRST LINE",
                "PAGE", "VERSIONS", "LAST CHANGE", "BY", "BYTES"
            ),
        ];
        for page in &pages {
            let last = self.pages.pages.get(&page.page).and_then(|page| page.versions.last());
            let at = last.map_or_else(|| "-".to_owned(), |version| format_moment(version.at));
            let by = last.map_or("-", |version| author(version.by));
            let (name, bytes) = (truncate(&page.page, width), format_number(page.bytes as u64));
            let versions = format_number(page.versions as u64);
            let first = truncate(&page.first_line, 60);
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
        json!({
            "scope": self.pages.scope,
            "pages": PageSummary::list(&self.pages),
            "waiting": self.waiting,
            "consolidate_at_items": self.settings.consolidate_at_items,
            "folder": self.folder,
            "files_left": self.left,
            "other_scopes": self.others,
        })
    }
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

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
