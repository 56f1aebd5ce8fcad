//! The pages of a scope, as folding their stream gives them.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::Journal;
use longhaul_protocol::{
    At, ChangedBy, Hash, ItemSource, MemoryRecord, PageChange, PagesChanged, Record, Seq, SessionId,
    StreamName,
};

use crate::page::{self, items};
use crate::paging::read_after;
use crate::{Error, Result};

/// The page that every context begins with.
pub const CORE_PAGE: &str = "core";

/// The pages of a scope.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    /// The scope.
    pub scope: String,
    /// The last record that it knows.
    pub head: Seq,
    /// The pages that there are, by name.
    pub pages: BTreeMap<String, Page>,
    /// How far the extracts of each session have been read.
    pub read: BTreeMap<SessionId, Seq>,
    /// How often the machine has put the pages in order.
    pub consolidations: usize,
    /// In how many versions of pages an item was used.
    pub cited: BTreeMap<ItemSource, usize>,
    /// What else is known of every page that there ever was.
    pub(crate) past: BTreeMap<String, Past>,
}

/// One page.
#[derive(Debug, Clone)]
pub struct Page {
    /// What stands in it.
    pub text: String,
    /// How it came to be, the oldest first. Its text is that of the last.
    pub versions: Vec<PageVersion>,
}

/// One version of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageVersion {
    /// The record that holds it.
    pub seq: Seq,
    /// When.
    pub at: At,
    /// By whom.
    pub by: ChangedBy,
    /// From how many items.
    pub sources: usize,
}

/// What is known of a page besides its text, also where it was removed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// The newest change, which may have removed it.
    newest: Seq,
    /// What its texts were.
    hashes: BTreeSet<Hash>,
    /// The lines in it that a person wrote.
    pub(crate) by_people: BTreeSet<String>,
    /// Its versions, where it was removed.
    versions: Vec<PageVersion>,
}

impl PageSet {
    /// The pages of a scope as they are now.
    pub async fn load(journal: &dyn Journal, scope: &str) -> Result<Self> {
        let mut book = Self { scope: scope.to_owned(), ..Self::default() };
        book.catch_up(journal).await?;
        Ok(book)
    }

    /// Reads what has come since. What was erased or is damaged is passed over: what it said is gone.
    pub async fn catch_up(&mut self, journal: &dyn Journal) -> Result<()> {
        let stream = self.stream()?;
        let after = self.head;
        let head = read_after(journal, &stream, after, |record| {
            if let Some(changed) = changes_in(&record) {
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

    /// Folds one record, which comes after those that are known.
    pub(crate) fn apply(&mut self, record: &Record, changed: &PagesChanged) {
        self.head = record.seq;
        self.consolidations += usize::from(changed.by == ChangedBy::Consolidation);
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
        let past = self.past.entry(change.page.clone()).or_default();
        past.newest = record.seq;
        past.by_people = {
            let before: BTreeSet<&str> =
                before.iter().flat_map(|page| items(&page.text)).map(|line| line.says).collect();
            let now = text.into_iter().flat_map(items).map(|line| line.says);
            // What others than a person had noted stands on other pages than this one.
            let is_a_persons = match by {
                ChangedBy::Consolidation => false,
                ChangedBy::Note => change.page == CORE_PAGE,
                ChangedBy::Person | ChangedBy::Undo => true,
            };
            let stays =
                |says: &&str| past.by_people.contains(*says) || (is_a_persons && !before.contains(*says));
            now.filter(stays).map(str::to_owned).collect()
        };
        let mut versions = before.map_or_else(|| std::mem::take(&mut past.versions), |page| page.versions);
        versions.push(PageVersion { seq: record.seq, at: record.at, by, sources: change.sources.len() });
        match text {
            Some(text) => {
                past.hashes.insert(Hash::of(text));
                self.pages.insert(change.page.clone(), Page { text: text.to_owned(), versions });
            }
            None => past.versions = versions,
        }
    }

    /// The text of a page, if there is such a page.
    pub(crate) fn text(&self, page: &str) -> Option<&str> {
        self.pages.get(page).map(|page| page.text.as_str())
    }

    /// The newest change of a page, which may have removed it.
    pub(crate) fn newest_change(&self, page: &str) -> Option<Seq> {
        self.past.get(page).map(|past| past.newest)
    }

    /// Whether a page has, or once had, the text with this hash.
    pub(crate) fn had(&self, page: &str, text: Hash) -> bool {
        self.past.get(page).is_some_and(|past| past.hashes.contains(&text))
    }

    /// The pages that there were and are no more.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &str> {
        self.past.keys().map(String::as_str).filter(|name| !self.pages.contains_key(*name))
    }

    /// What of a page a person wrote, as far as it still stands there: what the lines say.
    pub(crate) fn by_people(&self, page: &str) -> impl Iterator<Item = &str> {
        self.past.get(page).into_iter().flat_map(|past| &past.by_people).map(String::as_str)
    }

    /// That there is no page of this name, and which there are.
    pub fn no_page(&self, name: &str) -> Error {
        const SHOWN: usize = 8;
        let mut names: Vec<&str> = self.pages.keys().map(String::as_str).take(SHOWN).collect();
        if self.pages.len() > SHOWN {
            names.push("…");
        }
        let nearest = if names.is_empty() {
            "; there is none yet".to_owned()
        } else {
            format!("; there are {}", names.join(", "))
        };
        Error::NoPage { name: name.chars().take(80).collect(), nearest }
    }
}

/// What a record changed, if that can be read.
pub(crate) fn changes_in(record: &Record) -> Option<PagesChanged> {
    let MemoryRecord::PagesChanged(mut changed) = MemoryRecord::decode(record).ok()? else { return None };
    // A name that is none was not written by us, and would be a path in the mirror.
    changed.pages.retain(|change| page::check_page_name(&change.page).is_ok());
    for change in &mut changed.pages {
        change.text.take_if(|text| text.trim().is_empty());
    }
    Some(changed)
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
