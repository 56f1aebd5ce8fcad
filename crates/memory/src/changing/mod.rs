//! What people do to pages, and what the runtime does at their word: each is one append of a version.
//!
//! Nobody holds a lease for it: the append says which head it was decided upon, and where another was faster, it is decided again.

mod looking;
mod noting;
mod undoing;

use longhaul_journal::{Append, Journal};
use longhaul_protocol::{ChangedBy, MemoryRecord, PageChange, PagesChanged, Seq};

pub use looking::{PageLogEntry, page_diff, page_log, pages_citing};
pub use noting::add_note;
pub use undoing::undo_change;

use crate::book::PageSet;
use crate::page::{self, MOST_PAGES};
use crate::{Error, Result};

/// So often is decided again where others are faster.
pub(crate) const TRIES: usize = 20;

/// A new version of a page, by a person.
#[derive(Debug, Clone)]
pub struct PageEdit {
    /// The page.
    pub page: String,
    /// Its text from now on; nothing removes the page.
    pub text: Option<String>,
    /// Why.
    pub reason: String,
    /// The version that it was made from, as the person saw it: refused, if there is a newer one. Nothing: whatever there is.
    pub made_from: Option<Seq>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEdited {
    /// The record.
    pub seq: Seq,
    /// The pages.
    pub pages: Vec<String>,
}

/// Writes a page as a person wants it. Nothing, if it is so already.
pub async fn change_page(journal: &dyn Journal, scope: &str, change: PageEdit) -> Result<Option<PageEdited>> {
    page::check_page_name(&change.page)?;
    let text = change.text.as_deref().and_then(page::tidy);
    let mut book = PageSet::load(journal, scope).await?;
    for _ in 0..TRIES {
        let newest = book.newest_change(&change.page);
        if let (Some(seen), Some(newer)) = (change.made_from, newest)
            && newer > seen
        {
            return Err(Error::Changed { page: change.page, newer });
        }
        if text.is_none() && book.text(&change.page).is_none() {
            return Err(book.no_page(&change.page));
        }
        if book.text(&change.page) == text.as_deref() {
            return Ok(None);
        }
        check_room(&book, &change.page, text.as_deref())?;
        let changed = PagesChanged {
            pages: vec![PageChange {
                page: change.page.clone(),
                text: text.clone(),
                reason: change.reason.clone(),
                sources: vec![],
                dropped: vec![],
            }],
            ..by(ChangedBy::Person, &change.reason)
        };
        if let Some(changed) = write(journal, &mut book, changed).await? {
            return Ok(Some(changed));
        }
    }
    Err(too_busy(&book))
}

/// A change that has no pages yet.
fn by(by: ChangedBy, reason: &str) -> PagesChanged {
    PagesChanged {
        by,
        reason: reason.to_owned(),
        extracts: vec![],
        pages: vec![],
        undoes: None,
        refused: vec![],
        usage: vec![],
    }
}

/// Whether a page may have this text in this book.
fn check_room(book: &PageSet, name: &str, text: Option<&str>) -> Result<()> {
    let full = || {
        (text.is_some() && book.text(name).is_none() && book.pages.len() >= MOST_PAGES)
            .then(|| format!("there are {MOST_PAGES} pages already; remove one first"))
    };
    match text.and_then(page::too_large).or_else(full) {
        Some(reason) => Err(Error::Unfit { page: name.to_owned(), reason }),
        None => Ok(()),
    }
}

/// Appends a change that was decided upon this book. Nothing, where another was faster: then the book has caught up, and it must be decided
/// again.
pub(crate) async fn write(
    journal: &dyn Journal,
    book: &mut PageSet,
    changed: PagesChanged,
) -> Result<Option<PageEdited>> {
    let stream = book.stream()?;
    let record = MemoryRecord::PagesChanged(changed.clone()).encode();
    match journal.append(Append::to(&stream).expecting(book.head).record(record)).await {
        Ok(records) => {
            for record in &records {
                book.apply(record, &changed);
            }
            let pages = changed.pages.into_iter().map(|change| change.page).collect();
            Ok(Some(PageEdited { seq: book.head, pages }))
        }
        Err(longhaul_journal::Error::Conflict { .. }) => {
            book.catch_up(journal).await?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// That others were faster each time.
pub(crate) fn too_busy(book: &PageSet) -> Error {
    let page = format!("the memory {}", book.scope);
    Error::Changed { page, newer: book.head }
}
