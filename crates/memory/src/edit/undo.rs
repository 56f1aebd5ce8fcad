//! Undoing a change. An undo is itself a change.

use longhaul_journal::Journal;
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Seq};

use super::history::ChangeInHistory;
use super::{MAX_CONFLICTS, PageEdited, append_edit, check_page_fits, conflict_error, empty_change};
use crate::{Error, Result};

/// Undoes a change: each of its pages gets the text from before it. Refused if a page has changed since. The error
/// shows both changes. So two changes in a row can be undone, the second one first.
pub async fn undo_change(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<PageEdited> {
    for _ in 0..MAX_CONFLICTS {
        let mut change = ChangeInHistory::at(journal, scope, seq).await?;
        change.diffs.0.retain(|_, (before, after)| before != after);
        if change.diffs.0.is_empty() {
            return Err(Error::NothingToUndo { seq });
        }
        let reason = format!("change {seq} was taken back");
        let mut pages = Vec::new();
        for (page, (before, after)) in &change.diffs.0 {
            if change.page_set.page_text(page) != after.as_deref() {
                return Err(change.built_upon(seq, page));
            }
            check_page_fits(&change.page_set, page, before.as_deref())?;
            pages.push(PageChange {
                page: page.clone(),
                text: before.clone(),
                reason: reason.clone(),
                sources: vec![],
                dropped: vec![],
            });
        }
        let changed = PagesChanged { pages, undoes: Some(seq), ..empty_change(ChangedBy::Undo, &reason) };
        if let Some(changed) = append_edit(journal, &mut change.page_set, changed).await? {
            return Ok(changed);
        }
    }
    Err(conflict_error(&crate::PageSet::load(journal, scope).await?))
}
