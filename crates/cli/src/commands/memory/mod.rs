//! `longhaul memory`: what is remembered across sessions, for people to see, correct and undo. No model is asked.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `scope` | which memory is meant |
//! | `handle` | a memory, and what can be known of it |
//! | `versions` | how its pages were at any time |
//! | `format` | from what is known to lines and JSON |
//! | `edit`, `draft` | a page that a person writes, and the copy that an editor is given |
//! | `export` | all pages, as files or as one object |

mod draft;
mod edit;
mod export;
mod format;
mod handle;
mod scope;
mod versions;

use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_journal::Journal;
use longhaul_memory::{Changed, Error, check_name, diff, log, undo};
use longhaul_protocol::{PrintablePath, Seq};
use serde_json::json;

pub(crate) use self::format::{found_lines, log_lines};
pub(crate) use self::handle::MemoryHandle;
pub(crate) use self::scope::scope_of_session;
use crate::args::{EditOptions, GlobalArgs, MemoryCommand, MemoryOptions};
use crate::output::{json, line, safe, shortened};
use crate::{BadUsage, config, exit};

pub(crate) async fn run(globals: &GlobalArgs, options: MemoryOptions) -> anyhow::Result<u8> {
    let MemoryOptions { command, whose, json } = options;
    let command = command.unwrap_or(MemoryCommand::List);
    // What can't be a page makes no home, and nobody writes it in vain.
    if let MemoryCommand::Edit(EditOptions { page, .. }) = &command {
        check_name(page)?;
    }
    let config = config::load(globals)?;
    let journal = match globals.open_journal().await? {
        Some(journal) => journal,
        None if may_begin(&command) && whose.is_this_folder() => globals.open_or_create_journal().await?,
        None => return nothing_yet(globals, &command, json),
    };
    let config = with_real_home(globals, config)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let scope = whose.scope(&config, &*journal).await?;
    let memory = MemoryHandle::new(journal, config, &scope).await?;
    let done = carry_out(&memory, command, json).await;
    memory.journal.close().await;
    done
}

async fn carry_out(memory: &MemoryHandle, command: MemoryCommand, as_json: bool) -> anyhow::Result<u8> {
    let (journal, scope) = (&*memory.journal, memory.book.scope.as_str());
    match command {
        MemoryCommand::List => {
            let listing = memory.listing().await?;
            match as_json {
                true => json(&listing.as_json())?,
                false => listing.lines().into_iter().try_for_each(line)?,
            }
        }
        MemoryCommand::Show { page, at } => show(memory, &page, at, as_json).await?,
        MemoryCommand::Search { query, limit } => {
            let found = memory.search(&query.join(" "), usize::from(limit)).await?;
            match as_json {
                true => json(&found.iter().map(format::found_form).collect::<Vec<_>>())?,
                false if found.is_empty() => line("Nothing was found.")?,
                false => found_lines(&found).into_iter().try_for_each(line)?,
            }
        }
        MemoryCommand::Log { page } => {
            let entries = log(journal, scope, page.as_deref()).await?;
            if let Some(page) = page.as_deref().filter(|_| entries.is_empty()) {
                memory.page(page)?;
            }
            match as_json {
                true => json(&entries.iter().map(format::log_form).collect::<Vec<_>>())?,
                false if entries.is_empty() => line(format!("Nothing was ever changed in {scope}."))?,
                false => log_lines(&entries).into_iter().try_for_each(line)?,
            }
        }
        MemoryCommand::Diff { seq } => {
            let diff = diff(journal, scope, seq).await?;
            match as_json {
                true => json(&json!({"scope": scope, "seq": seq, "diff": diff}))?,
                false => line(safe(diff.trim_end()))?,
            }
        }
        MemoryCommand::Undo { seq } => {
            let changed = undo(journal, scope, seq).await?;
            say_changed(memory, Some(&changed), as_json, &format!("change {seq} is undone"))?;
            memory.bring_files_up_to_date().await;
        }
        MemoryCommand::Edit(options) => return edit::edit(memory, options, as_json).await,
        MemoryCommand::Export { to } => export::export(memory, to.as_deref(), as_json).await?,
    }
    Ok(exit::DONE)
}

/// A page as it is, or as it was.
async fn show(memory: &MemoryHandle, name: &str, at: Option<Seq>, as_json: bool) -> anyhow::Result<()> {
    let (text, version) = match at {
        Some(seq) => {
            let version = versions::at(memory, name, seq).await?;
            (version.text, version.seq)
        }
        None => {
            let page = memory.page(name)?;
            (page.text.clone(), page.versions.last().map_or(0, |version| version.seq))
        }
    };
    match as_json {
        true => json(&json!({"scope": memory.book.scope, "page": name, "version": version, "text": text})),
        false => line(safe(text.trim_end())),
    }
}

/// Says what was written: on standard output, since it is what was asked for.
fn say_changed(
    memory: &MemoryHandle,
    changed: Option<&Changed>,
    as_json: bool,
    what: &str,
) -> anyhow::Result<()> {
    let scope = &memory.book.scope;
    if as_json {
        let (seq, pages) = changed.map(|changed| (changed.seq, changed.pages.clone())).unzip();
        return json(&json!({"scope": scope, "seq": seq, "pages": pages.unwrap_or_default()}));
    }
    match changed {
        Some(Changed { seq, pages }) => {
            let pages = shortened(&pages.join(", "), 200);
            line(format!(
                "{what}: {pages} (change {seq}; longhaul memory undo {seq}{} takes it back)",
                memory.flag()
            ))
        }
        None => line(format!("{what}: nothing changed")),
    }
}

/// The config with its home by its canonical path, as a runtime names it.
pub(crate) fn with_real_home(globals: &GlobalArgs, config: Config) -> anyhow::Result<Config> {
    let home = globals.existing_home()?.map_or_else(|| config.home.clone(), |home| home.folder().to_owned());
    Ok(Config { home, ..config })
}

/// Whether there is something to do where nothing was ever remembered.
fn may_begin(command: &MemoryCommand) -> bool {
    matches!(command, MemoryCommand::Edit(EditOptions { remove: false, .. }))
}

/// What there is to say where there is no home yet. Looking makes none.
fn nothing_yet(globals: &GlobalArgs, command: &MemoryCommand, as_json: bool) -> anyhow::Result<u8> {
    let nothing = format!("nothing is remembered in {} yet", globals.home_dir()?.printable());
    match command {
        MemoryCommand::List if as_json => json(&json!({"scope": null, "pages": [], "waiting": 0}))?,
        MemoryCommand::Search { .. } | MemoryCommand::Log { page: None } if as_json => json(&json!([]))?,
        MemoryCommand::List | MemoryCommand::Search { .. } | MemoryCommand::Log { page: None } => {
            line(format!("{nothing}."))?;
        }
        _ => return Err(BadUsage(nothing).into()),
    }
    Ok(exit::DONE)
}

/// Whether somebody has named something that is not there.
pub(crate) fn is_bad_usage(error: &anyhow::Error) -> bool {
    matches!(
        memory_error(error),
        Some(
            Error::NoPage { .. }
                | Error::BadName { .. }
                | Error::BadScope { .. }
                | Error::Unfit { .. }
                | Error::NoChange { .. }
                | Error::NothingToUndo { .. }
        )
    )
}

/// What the journal said, where memory asked it.
pub(crate) fn journal_error(error: &anyhow::Error) -> Option<&longhaul_journal::Error> {
    match memory_error(error) {
        Some(Error::Journal(error)) => Some(error),
        _ => None,
    }
}

fn memory_error(error: &anyhow::Error) -> Option<&Error> {
    match error.downcast_ref() {
        Some(longhaul_agent::Error::Memory(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}
