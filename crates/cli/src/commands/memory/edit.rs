//! A page that a person writes. It wins over what the machine writes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use longhaul_agent::redactor;
use longhaul_memory::{Change, Error, change_page};
use longhaul_protocol::{PrintablePath, Seq};

use super::draft::{EditorResult, PageDraft, editor, read};
use super::{MemoryHandle, say_changed};
use crate::args::EditOptions;
use crate::input_text::given;
use crate::output::{note, shortened};
use crate::{BadUsage, exit};

/// What stands in the log if nobody says why.
const BY_HAND: &str = "edited by hand";

/// What a person wrote, and where it still is if it can't be written.
enum PageText {
    /// In a file of that person.
    File(PathBuf, String),
    /// On standard input.
    Input(String),
    /// In an editor.
    Draft(PageDraft, String),
}

impl PageText {
    fn text(&self) -> &str {
        match self {
            Self::File(_, text) | Self::Input(text) | Self::Draft(_, text) => text,
        }
    }

    /// Where it can be found from now on.
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
    let reason = redactor.redact(reason.as_deref().unwrap_or(BY_HAND)).into_owned();
    let change = |text| Change { page: name.clone(), text, reason, made_from: Some(memory.book.head) };
    if remove {
        memory.page(&name)?;
        let changed = change_page(&*memory.journal, &memory.book.scope, change(None)).await?;
        say_changed(memory, changed.as_ref(), as_json, "removed")?;
        memory.bring_files_up_to_date().await;
        return Ok(exit::DONE);
    }
    if seen.is_none() {
        say_that_it_is_new(memory, &name);
    }
    let written = match input.map(PathBuf::from).or(file) {
        Some(path) if path == Path::new("-") => PageText::Input(given("-".to_owned())?),
        Some(path) => PageText::File(path.clone(), read(&path)?),
        None => {
            let draft = PageDraft::new(&name, before)?;
            match draft.edit(&editor()?).await? {
                EditorResult::Text(text) => PageText::Draft(draft, text),
                EditorResult::Failed(why) => {
                    note(format!("{why}; nothing was changed"));
                    keep_what_was_written(draft, before);
                    return Ok(exit::FAILED);
                }
                EditorResult::Signal(code) => {
                    keep_what_was_written(draft, before);
                    return Ok(code);
                }
            }
        }
    };
    let text = written.text();
    if text.trim_end() == before.trim_end() {
        say_changed(memory, None, as_json, &shortened(&name, 80))?;
        return Ok(exit::DONE);
    }
    if text.trim().is_empty() {
        let hint = format!("the text of {name} is empty, so nothing was changed; --remove removes the page");
        return Err(BadUsage(hint).into());
    }
    let text = redactor.redact(text).into_owned();
    match change_page(&*memory.journal, &memory.book.scope, change(Some(text))).await {
        Ok(changed) => {
            let what = if seen.is_some() { "changed" } else { "new" };
            say_changed(memory, changed.as_ref(), as_json, what)?;
            if let (PageText::File(..), Some(changed)) = (&written, &changed) {
                say_what_is_gone(before, written.text(), changed.seq);
            }
            memory.bring_files_up_to_date().await;
            Ok(exit::DONE)
        }
        Err(error) => {
            let (kept, flag) = (written.keep(&name)?, memory.flag());
            note(format!("what you wrote is in {}", kept.printable()));
            if let Error::Changed { .. } = error {
                note(format!("longhaul memory show {name}{flag} shows what it is now"));
            }
            Err(error.into())
        }
    }
}

/// A file may be older than the page: what came to that meanwhile should not go unnoticed.
fn say_what_is_gone(before: &str, text: &str, seq: Seq) {
    let stays: HashSet<&str> = text.lines().map(str::trim_end).collect();
    let gone: Vec<&str> =
        before.lines().filter(|line| !line.trim().is_empty() && !stays.contains(line.trim_end())).collect();
    if let Some(first) = gone.first() {
        let lines =
            if gone.len() == 1 { "1 line is".to_owned() } else { format!("{} lines are", gone.len()) };
        let first = shortened(first, 80);
        note(format!(
            "{lines} not in the file and gone: {first}; longhaul memory undo {seq} takes that back"
        ));
    }
}

/// A name that leads nowhere makes a page; whoever has mistyped one should know.
fn say_that_it_is_new(memory: &MemoryHandle, name: &str) {
    let near = memory.nearest(name);
    let hint = match near.is_empty() {
        true => String::new(),
        false => format!(" (did you mean {}?)", near.join(" or ")),
    };
    note(format!("there is no page {} yet{hint}; it is made with this text", shortened(name, 80)));
}

/// What somebody has written is not lost because the editor was.
fn keep_what_was_written(draft: PageDraft, before: &str) {
    if draft.text().is_some_and(|text| text != before) {
        note(format!("what you wrote is in {}", draft.keep().printable()));
    }
}
