//! `longhaul memory edit`: a page that the user writes. Consolidation never overwrites it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use longhaul_agent::redactor;
use longhaul_memory::{Error, PageEdit, change_page};
use longhaul_protocol::{PrintablePath, Seq};

use super::draft::{EditorResult, PageDraft, editor, read};
use super::{MemoryHandle, print_change};
use crate::args::EditOptions;
use crate::input_text::read_text;
use crate::output::{note, truncate};
use crate::{bad_usage, exit};

/// The reason in the log without `--reason`.
const DEFAULT_REASON: &str = "edited by hand";

/// The new text of a page, with where it is kept if it can't be saved.
enum PageText {
    /// From the user's file.
    File(PathBuf, String),
    /// From standard input.
    Input(String),
    /// From the editor.
    Draft(PageDraft, String),
}

impl PageText {
    fn text(&self) -> &str {
        match self {
            Self::File(_, text) | Self::Input(text) | Self::Draft(_, text) => text,
        }
    }

    /// Keeps the text in a file and returns its path.
    fn keep(self, page: &str) -> anyhow::Result<PathBuf> {
        Ok(match self {
            Self::File(path, _) => path,
            Self::Input(text) => PageDraft::new(page, &text)?.keep(),
            Self::Draft(draft, _) => draft.keep(),
        })
    }
}

pub(super) async fn edit(memory: &MemoryHandle, options: EditOptions, as_json: bool) -> anyhow::Result<u8> {
    let EditOptions { page: name, input, file, remove, reason } = options;
    let seen = memory.book.pages.get(&name);
    let before = seen.map_or("", |page| page.text.as_str());
    let redactor = redactor(&memory.config)?;
    let reason = redactor.redact(reason.as_deref().unwrap_or(DEFAULT_REASON)).into_owned();
    let change = |text| PageEdit { page: name.clone(), text, reason, made_from: Some(memory.book.head) };
    if remove {
        memory.page(&name)?;
        let changed = change_page(&*memory.journal, &memory.book.scope, change(None)).await?;
        print_change(memory, changed.as_ref(), as_json, "removed")?;
        memory.sync_files().await;
        return Ok(exit::DONE);
    }
    if seen.is_none() {
        note_new_page(memory, &name);
    }
    let written = match input.map(PathBuf::from).or(file) {
        Some(path) if path == Path::new("-") => PageText::Input(read_text("-".to_owned())?),
        Some(path) => PageText::File(path.clone(), read(&path)?),
        None => {
            let draft = PageDraft::new(&name, before)?;
            match draft.edit(&editor()?).await? {
                EditorResult::Text(text) => PageText::Draft(draft, text),
                EditorResult::Failed(why) => {
                    note(format!("{why}; nothing changed"));
                    keep_draft(draft, before);
                    return Ok(exit::FAILED);
                }
                EditorResult::Signal(code) => {
                    keep_draft(draft, before);
                    return Ok(code);
                }
            }
        }
    };
    let text = written.text();
    if text.trim_end() == before.trim_end() {
        print_change(memory, None, as_json, &truncate(&name, 80))?;
        return Ok(exit::DONE);
    }
    if text.trim().is_empty() {
        let hint = format!("the text of {name} is empty; to remove the page, use --remove");
        return Err(bad_usage(hint));
    }
    let text = redactor.redact(text).into_owned();
    match change_page(&*memory.journal, &memory.book.scope, change(Some(text))).await {
        Ok(changed) => {
            let what = if seen.is_some() { "changed" } else { "new" };
            print_change(memory, changed.as_ref(), as_json, what)?;
            if let (PageText::File(..), Some(changed)) = (&written, &changed) {
                note_removed_lines(before, written.text(), changed.seq);
            }
            memory.sync_files().await;
            Ok(exit::DONE)
        }
        Err(error) => {
            let (kept, flag) = (written.keep(&name)?, memory.flag());
            note(format!("your text is saved in {}", kept.printable()));
            if let Error::Changed { .. } = error {
                note(format!("to see the current page: longhaul memory show {name}{flag}"));
            }
            Err(error.into())
        }
    }
}

/// Notes the lines of the page that the file does not have: it may be an older copy.
fn note_removed_lines(before: &str, text: &str, seq: Seq) {
    let stays: HashSet<&str> = text.lines().map(str::trim_end).collect();
    let gone: Vec<&str> =
        before.lines().filter(|line| !line.trim().is_empty() && !stays.contains(line.trim_end())).collect();
    if let Some(first) = gone.first() {
        let lines = if gone.len() == 1 { "1 line".to_owned() } else { format!("{} lines", gone.len()) };
        let first = truncate(first, 80);
        note(format!(
            "removed {lines} that the file does not have: {first}; to undo: longhaul memory undo {seq}"
        ));
    }
}

/// Notes that the page is new, since its name may be mistyped.
fn note_new_page(memory: &MemoryHandle, name: &str) {
    let near = memory.nearest(name);
    let hint = match near.is_empty() {
        true => String::new(),
        false => format!(" (did you mean {}?)", near.join(" or ")),
    };
    note(format!("{} is a new page{hint}", truncate(name, 80)));
}

/// Keeps a changed draft when the editor failed.
fn keep_draft(draft: PageDraft, before: &str) {
    if draft.text().is_some_and(|text| text != before) {
        note(format!("your text is saved in {}", draft.keep().printable()));
    }
}
