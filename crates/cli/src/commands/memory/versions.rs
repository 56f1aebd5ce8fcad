//! How the pages of a memory were at any time.

use longhaul_journal::Page as Records;
use longhaul_memory::Error;
use longhaul_protocol::{At, Body, MemoryRecord, PagesChanged, Seq, StreamName};

use super::MemoryHandle;
use crate::BadUsage;
use crate::output::note;

/// A change, with its place.
pub(super) struct PageChange {
    pub(super) seq: Seq,
    pub(super) at: At,
    pub(super) changed: PagesChanged,
}

/// A page as it was.
pub(super) struct PageVersion {
    pub(super) seq: Seq,
    pub(super) text: String,
}

/// All changes of a memory, the oldest first. One whose words were erased is said and passed over.
pub(super) async fn all(memory: &MemoryHandle) -> anyhow::Result<Vec<PageChange>> {
    let stream = StreamName::memory(&memory.book.scope)?;
    let mut changes = Vec::new();
    let mut next = 1;
    loop {
        let page = memory.journal.read(&stream, next, Records::default()).await?;
        let Some(last) = page.last() else { return Ok(changes) };
        next = last.seq + 1;
        for record in &page {
            match (MemoryRecord::decode(record), &record.body) {
                (Ok(MemoryRecord::PagesChanged(changed)), _) => {
                    changes.push(PageChange { seq: record.seq, at: record.at, changed });
                }
                (_, Body::Gone(gone)) => {
                    note(format!("change {} is gone since {}: {}", record.seq, gone.at, gone.reason));
                }
                _ => note(format!("change {} can't be read; a newer version may", record.seq)),
            }
        }
    }
}

/// A page as it was after a change.
pub(super) async fn at(memory: &MemoryHandle, name: &str, seq: Seq) -> anyhow::Result<PageVersion> {
    if seq == 0 || seq > memory.book.head {
        return Err(Error::NoChange { seq }.into());
    }
    let changes = all(memory).await?;
    let of_page = |placed: &PageChange| {
        let change = placed.changed.pages.iter().find(|change| change.page == name)?;
        Some((placed.seq, change.text.clone()))
    };
    let versions: Vec<(Seq, Option<String>)> = changes.iter().filter_map(of_page).collect();
    let Some((first, _)) = versions.first() else {
        memory.page(name)?;
        return Err(Error::NoPage { name: name.to_owned(), nearest: String::new() }.into());
    };
    match versions.iter().rev().find(|(version, _)| *version <= seq) {
        Some((version, Some(text))) => Ok(PageVersion { seq: *version, text: text.clone() }),
        Some((version, None)) => {
            Err(BadUsage(format!("{name} was not there after change {seq}: change {version} removed it"))
                .into())
        }
        None => Err(BadUsage(format!(
            "{name} was not there yet after change {seq}: its first version is {first}"
        ))
        .into()),
    }
}
