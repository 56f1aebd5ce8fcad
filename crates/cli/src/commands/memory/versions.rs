//! Older versions of the pages of a memory.

use longhaul_journal::records;
use longhaul_memory::Error;
use longhaul_protocol::{At, Body, MemoryRecord, PagesChanged, Seq, StreamName};

use super::MemoryHandle;
use crate::bad_usage;
use crate::output::{format_moment, note};

pub(super) struct PageChange {
    pub(super) seq: Seq,
    pub(super) at: At,
    pub(super) changed: PagesChanged,
}

pub(super) struct PageVersion {
    pub(super) seq: Seq,
    pub(super) text: String,
}

/// All changes of a memory, the oldest first. A change that can't be read is noted and skipped.
pub(super) async fn all_changes(memory: &MemoryHandle) -> anyhow::Result<Vec<PageChange>> {
    let stream = StreamName::memory(&memory.book.scope)?;
    let mut changes = Vec::new();
    let mut cursor = records(&*memory.journal, &stream, 1);
    while let Some(record) = cursor.next().await? {
        match (MemoryRecord::decode(&record), &record.body) {
            (Ok(MemoryRecord::PagesChanged(changed)), _) => {
                changes.push(PageChange { seq: record.seq, at: record.at, changed });
            }
            (_, Body::Gone(gone)) => {
                note(format!(
                    "change {} was erased on {}: {}",
                    record.seq,
                    format_moment(gone.at),
                    gone.reason
                ));
            }
            _ => note(format!("can't read change {}; try a newer longhaul", record.seq)),
        }
    }
    Ok(changes)
}

/// A page as it was after the change `seq`.
pub(super) async fn page_at(memory: &MemoryHandle, name: &str, seq: Seq) -> anyhow::Result<PageVersion> {
    if seq == 0 || seq > memory.book.head {
        return Err(Error::NoChange { seq }.into());
    }
    let changes = all_changes(memory).await?;
    let of_page = |change: &PageChange| {
        let page = change.changed.pages.iter().find(|page| page.page == name)?;
        Some((change.seq, page.text.clone()))
    };
    let versions: Vec<(Seq, Option<String>)> = changes.iter().filter_map(of_page).collect();
    let Some((first, _)) = versions.first() else {
        memory.page(name)?;
        return Err(Error::NoPage { name: name.to_owned(), nearest: String::new() }.into());
    };
    match versions.iter().rev().find(|(version, _)| *version <= seq) {
        Some((version, Some(text))) => Ok(PageVersion { seq: *version, text: text.clone() }),
        Some((version, None)) => Err(bad_usage(format!(
            "{name} did not exist after change {seq}; it was removed by change {version}"
        ))),
        None => Err(bad_usage(format!(
            "{name} did not exist yet after change {seq}; its first version is {first}"
        ))),
    }
}
