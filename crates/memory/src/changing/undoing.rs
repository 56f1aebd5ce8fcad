//! Taking a change back, which is a change itself.

use longhaul_journal::Journal;
use longhaul_protocol::{ChangedBy, PageChange, PagesChanged, Seq};

use super::looking::Looked;
use super::{PageEdited, TRIES, by, check_room, too_busy, write};
use crate::{Error, Result};

/// Takes a change back: each of its pages is again what it was before. Refused with both, where a newer change builds on it, which is where
/// a page is no longer as the change left it. So of two changes in a row, first the second and then the first can be taken back.
pub async fn undo_change(journal: &dyn Journal, scope: &str, seq: Seq) -> Result<PageEdited> {
    for _ in 0..TRIES {
        let mut looked = Looked::at(journal, scope, seq).await?;
        looked.deed.0.retain(|_, (before, after)| before != after);
        if looked.deed.0.is_empty() {
            return Err(Error::NothingToUndo { seq });
        }
        let reason = format!("change {seq} was taken back");
        let mut pages = Vec::new();
        for (page, (before, after)) in &looked.deed.0 {
            if looked.book.text(page) != after.as_deref() {
                return Err(looked.built_upon(seq, page));
            }
            check_room(&looked.book, page, before.as_deref())?;
            pages.push(PageChange {
                page: page.clone(),
                text: before.clone(),
                reason: reason.clone(),
                sources: vec![],
                dropped: vec![],
            });
        }
        let changed = PagesChanged { pages, undoes: Some(seq), ..by(ChangedBy::Undo, &reason) };
        if let Some(changed) = write(journal, &mut looked.book, changed).await? {
            return Ok(changed);
        }
    }
    // Only the head is of interest here, and the loop has seen it move each time.
    Err(too_busy(&crate::PageSet::load(journal, scope).await?))
}
