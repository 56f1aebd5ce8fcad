//! `longhaul memory export`: all pages as Markdown files, or with `--json` every version as one object.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;
use longhaul_agent::memory_pages::{RecordedPageChange, recorded_page_changes};
use longhaul_protocol::PrintablePath;
use serde_json::{Value, json};

use super::MemoryHandle;
use crate::output::{format_count, line, note};
use crate::output_file::{OutputFile, destination};
use crate::{bad_usage, output};

pub(super) async fn export(memory: &MemoryHandle, to: Option<&Path>, as_json: bool) -> anyhow::Result<()> {
    let to = to.filter(|path| *path != Path::new("-"));
    match (to, as_json) {
        (None, false) => {
            let hint = "name a new folder for the pages, or use --json to write to standard output";
            Err(bad_usage(hint))
        }
        (None, true) => output::json(&all_versions(memory).await?),
        (Some(file), true) => {
            let really = destination(&memory.config.home, None, file)?;
            let mut out = OutputFile::create(&really)?;
            out.write_all(format!("{}\n", all_versions(memory).await?).as_bytes())?;
            out.finish()?;
            note(format!("exported {} to {}", describe_pages(memory), file.printable()));
            Ok(())
        }
        (Some(folder), false) => {
            write_files(memory, &destination(&memory.config.home, None, folder)?)?;
            line(format!("Exported {} to {}", describe_pages(memory), folder.printable()))
        }
    }
}

fn describe_pages(memory: &MemoryHandle) -> String {
    format!("{} of {}", format_count(memory.book.pages.len() as u64, "page"), memory.book.scope)
}

/// Writes one Markdown file for each page into a new or empty folder.
fn write_files(memory: &MemoryHandle, folder: &Path) -> anyhow::Result<()> {
    let in_words = || folder.printable().to_string();
    // J8: memory is as private as the home that it comes from.
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty || folder.is_symlink() {
                let refused = format!("{} already exists; name a new folder", folder.printable());
                return Err(bad_usage(refused));
            }
        }
        made => made.with_context(in_words)?,
    }
    for (name, page) in &memory.book.pages {
        let text = format!("{}\n", page.text.trim_end());
        let file = folder.join(format!("{name}.md"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let mut made = made.with_context(|| file.printable().to_string())?;
        made.write_all(text.as_bytes()).with_context(|| file.printable().to_string())?;
    }
    Ok(())
}

/// The current pages, and every version in the journal.
async fn all_versions(memory: &MemoryHandle) -> anyhow::Result<Value> {
    let (changes, unreadable) = recorded_page_changes(&*memory.journal, &memory.book).await?;
    unreadable.iter().for_each(note);
    let version = |change: &RecordedPageChange, name: &str| {
        let page = change.changed.pages.iter().find(|page| page.page == name)?;
        Some(json!({
            "seq": change.seq,
            "at": change.at.to_string(),
            "by": change.changed.by,
            "reason": if page.reason.is_empty() { &change.changed.reason } else { &page.reason },
            "text": page.text,
            "sources": page.sources,
            "dropped": page.dropped,
            "undoes": change.changed.undoes,
        }))
    };
    let mut names: Vec<&str> =
        changes.iter().flat_map(|change| &change.changed.pages).map(|page| page.page.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let page = |name: &str| {
        let versions: Vec<Value> = changes.iter().filter_map(|change| version(change, name)).collect();
        json!({"page": name, "text": memory.book.pages.get(name).map(|page| &page.text), "versions": versions})
    };
    Ok(json!({
        "scope": memory.book.scope,
        "head": memory.book.head,
        "pages": names.into_iter().map(page).collect::<Vec<_>>(),
    }))
}
