//! Editing pages by hand. Each edit is one append of a version.
//!
//! An edit needs no lease. The append names the head that the edit was based on. After a conflict the edit is
//! computed again.

mod history;
mod note;
mod undo;

use longhaul_journal::{Append, Journal};
use longhaul_protocol::{ChangedBy, MemoryRecord, PageChange, PagesChanged, Seq};

pub use history::{CitedPlace, PageLogEntry, cited_places, page_diff, page_log, pages_citing};
pub use note::{add_note, add_token_note};
pub use undo::undo_change;

use crate::page::{self, MAX_PAGES};
use crate::page_set::PageSet;
use crate::{Error, Result};

/// An edit gives up after this many conflicts.
pub(crate) const MAX_CONFLICTS: usize = 20;

#[derive(Debug, Clone)]
pub struct PageEdit {
    pub page: String,
    /// `None` removes the page.
    pub text: Option<String>,
    pub reason: String,
    /// The version that the person saw. The edit is refused if there is a newer one. With `None` the edit applies to
    /// any version.
    pub made_from: Option<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEdited {
    pub seq: Seq,
    pub pages: Vec<String>,
}

/// Changes a page by hand. `None` if it already has this text.
pub async fn change_page(journal: &dyn Journal, scope: &str, change: PageEdit) -> Result<Option<PageEdited>> {
    page::check_page_name(&change.page)?;
    let text = change.text.as_deref().and_then(page::normalise_page);
    let mut page_set = PageSet::load(journal, scope).await?;
    for _ in 0..MAX_CONFLICTS {
        let newest = page_set.newest_change(&change.page);
        if let (Some(seen), Some(newer)) = (change.made_from, newest)
            && newer > seen
        {
            return Err(Error::Changed { page: change.page, newer });
        }
        if text.is_none() && page_set.page_text(&change.page).is_none() {
            return Err(page_set.no_page_error(&change.page));
        }
        if page_set.page_text(&change.page) == text.as_deref() {
            return Ok(None);
        }
        check_page_fits(&page_set, &change.page, text.as_deref())?;
        let changed = PagesChanged {
            pages: vec![PageChange {
                page: change.page.clone(),
                text: text.clone(),
                reason: change.reason.clone(),
                sources: vec![],
                dropped: vec![],
            }],
            ..empty_change(ChangedBy::Person, &change.reason)
        };
        if let Some(changed) = append_edit(journal, &mut page_set, changed).await? {
            return Ok(Some(changed));
        }
    }
    Err(conflict_error(&page_set))
}

fn empty_change(by: ChangedBy, reason: &str) -> PagesChanged {
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

/// Checks that the page and the number of pages stay within their limits.
fn check_page_fits(page_set: &PageSet, name: &str, text: Option<&str>) -> Result<()> {
    let full = || {
        (text.is_some() && page_set.page_text(name).is_none() && page_set.pages.len() >= MAX_PAGES)
            .then(|| format!("the limit of {MAX_PAGES} pages is reached; remove one first"))
    };
    match text.and_then(page::size_error).or_else(full) {
        Some(reason) => Err(Error::Unfit { page: name.to_owned(), reason }),
        None => Ok(()),
    }
}

/// Appends a change that is based on this state. Returns `None` after a conflict: then `page_set` has caught up, and
/// the caller computes the change again.
pub(crate) async fn append_edit(
    journal: &dyn Journal,
    page_set: &mut PageSet,
    changed: PagesChanged,
) -> Result<Option<PageEdited>> {
    let stream = page_set.stream()?;
    let record = MemoryRecord::PagesChanged(changed.clone()).encode();
    match journal.append(Append::to(&stream).expecting(page_set.head).record(record)).await {
        Ok(records) => {
            for record in &records {
                page_set.apply(record, &changed);
            }
            let pages = changed.pages.into_iter().map(|change| change.page).collect();
            Ok(Some(PageEdited { seq: page_set.head, pages }))
        }
        Err(longhaul_journal::Error::Conflict { .. }) => {
            page_set.catch_up(journal).await?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The error after too many conflicts.
pub(crate) fn conflict_error(page_set: &PageSet) -> Error {
    let page = format!("the memory {}", page_set.scope);
    Error::Changed { page, newer: page_set.head }
}
