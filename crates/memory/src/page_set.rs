//! The pages of a scope, folded from their stream.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::Journal;
use longhaul_protocol::{
    At, ChangedBy, Hash, ItemSource, MemoryRecord, PageChange, PagesChanged, Record, Seq, SessionId,
    StreamName,
};

use crate::page::{self, page_items};
use crate::stream_reader::read_all_after;
use crate::{Error, Result};

pub const CORE_PAGE: &str = "core";

#[derive(Debug, Clone, Default)]
pub struct PageSet {
    pub scope: String,
    /// The last record that was folded in.
    pub head: Seq,
    pub pages: BTreeMap<String, Page>,
    /// How far the extracts of each session are consolidated.
    pub read: BTreeMap<SessionId, Seq>,
    /// How often the pages were consolidated.
    pub consolidations: usize,
    /// When the model last did not keep to the form, if no consolidation came of it since.
    pub(crate) failed_at: Option<At>,
    /// How many versions of pages cite an item.
    pub cited: BTreeMap<ItemSource, usize>,
    /// The history of every page that ever existed.
    pub(crate) histories: BTreeMap<String, PageHistory>,
}

#[derive(Debug, Clone)]
pub struct Page {
    pub text: String,
    /// The versions of the page, the oldest first. The text is that of the last one.
    pub versions: Vec<PageVersion>,
}

/// One version of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageVersion {
    pub seq: Seq,
    pub at: At,
    pub by: ChangedBy,
    /// How many items it cites.
    pub sources: usize,
}

/// What is known about a page besides its text. It is kept after the page is removed.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageHistory {
    newest: Seq,
    /// Hashes of all texts that the page ever had.
    hashes: BTreeSet<Hash>,
    /// The lines of its text that a person wrote.
    pub(crate) lines_by_people: BTreeSet<String>,
    /// Its versions, if it was removed.
    versions: Vec<PageVersion>,
}

impl PageSet {
    pub async fn load(journal: &dyn Journal, scope: &str) -> Result<Self> {
        let mut page_set = Self { scope: scope.to_owned(), ..Self::default() };
        page_set.catch_up(journal).await?;
        Ok(page_set)
    }

    /// Folds in the records since the last load. Skips erased and damaged ones.
    pub async fn catch_up(&mut self, journal: &dyn Journal) -> Result<()> {
        let stream = self.stream()?;
        let after = self.head;
        let head = read_all_after(journal, &stream, after, |record| {
            if let Some(changed) = decode_changes(&record) {
                self.apply(&record, &changed);
            }
        })
        .await?;
        self.head = head;
        Ok(())
    }

    /// The stream of the scope.
    pub(crate) fn stream(&self) -> Result<StreamName> {
        StreamName::memory(&self.scope).map_err(|_| Error::BadScope { scope: self.scope.clone() })
    }

    /// Folds in the next record.
    pub(crate) fn apply(&mut self, record: &Record, changed: &PagesChanged) {
        self.head = record.seq;
        if changed.by == ChangedBy::Consolidation {
            let has_failed = changed.pages.is_empty() && changed.extracts.is_empty();
            self.failed_at = has_failed.then_some(record.at);
            self.consolidations += usize::from(!has_failed);
        }
        for source in &changed.extracts {
            let through = self.read.entry(source.session).or_default();
            *through = source.through.max(*through);
        }
        for change in &changed.pages {
            self.apply_change(record, changed.by, change);
        }
    }

    fn apply_change(&mut self, record: &Record, by: ChangedBy, change: &PageChange) {
        for source in &change.sources {
            *self.cited.entry(*source).or_default() += 1;
        }
        let before = self.pages.remove(&change.page);
        let text = change.text.as_deref();
        let history = self.histories.entry(change.page.clone()).or_default();
        history.newest = record.seq;
        history.lines_by_people = {
            let before: BTreeSet<&str> =
                before.iter().flat_map(|page| page_items(&page.text)).map(|line| line.words).collect();
            let now = text.into_iter().flat_map(page_items).map(|line| line.words);
            // The core page has only notes of the user. The notes of models are on other pages.
            let is_a_persons = match by {
                ChangedBy::Consolidation => false,
                ChangedBy::Note => change.page == CORE_PAGE,
                ChangedBy::Person | ChangedBy::Undo => true,
            };
            let stays = |says: &&str| {
                history.lines_by_people.contains(*says) || (is_a_persons && !before.contains(*says))
            };
            now.filter(stays).map(str::to_owned).collect()
        };
        let mut versions = before.map_or_else(|| std::mem::take(&mut history.versions), |page| page.versions);
        versions.push(PageVersion { seq: record.seq, at: record.at, by, sources: change.sources.len() });
        match text {
            Some(text) => {
                history.hashes.insert(Hash::of(text));
                self.pages.insert(change.page.clone(), Page { text: text.to_owned(), versions });
            }
            None => history.versions = versions,
        }
    }

    pub(crate) fn page_text(&self, page: &str) -> Option<&str> {
        self.pages.get(page).map(|page| page.text.as_str())
    }

    /// The newest change of a page. It may have removed the page.
    pub(crate) fn newest_change(&self, page: &str) -> Option<Seq> {
        self.histories.get(page).map(|history| history.newest)
    }

    /// Whether the page has or ever had the text with this hash.
    pub(crate) fn has_had(&self, page: &str, text: Hash) -> bool {
        self.histories.get(page).is_some_and(|history| history.hashes.contains(&text))
    }

    pub(crate) fn removed_pages(&self) -> impl Iterator<Item = &str> {
        self.histories.keys().map(String::as_str).filter(|name| !self.pages.contains_key(*name))
    }

    /// The lines of a page that a person wrote and that it still contains.
    pub(crate) fn lines_by_people(&self, page: &str) -> impl Iterator<Item = &str> {
        self.histories.get(page).into_iter().flat_map(|history| &history.lines_by_people).map(String::as_str)
    }

    /// The error for a missing page. It names some existing pages.
    pub fn no_page_error(&self, name: &str) -> Error {
        const SHOWN: usize = 8;
        let mut names: Vec<&str> = self.pages.keys().map(String::as_str).take(SHOWN).collect();
        if self.pages.len() > SHOWN {
            names.push("…");
        }
        let nearest = if names.is_empty() {
            "; no pages yet".to_owned()
        } else {
            format!("; there are {}", names.join(", "))
        };
        Error::NoPage { name: name.chars().take(80).collect(), nearest }
    }
}

/// The changes in a record, if it can be decoded.
pub(crate) fn decode_changes(record: &Record) -> Option<PagesChanged> {
    let MemoryRecord::PagesChanged(mut changed) = MemoryRecord::decode(record).ok()? else { return None };
    // The runtime never writes an invalid name, and such a name would be a path in the mirror.
    changed.pages.retain(|change| page::check_page_name(&change.page).is_ok());
    for change in &mut changed.pages {
        change.text.take_if(|text| text.trim().is_empty());
    }
    Some(changed)
}

#[cfg(test)]
#[path = "page_set_tests.rs"]
mod tests;
