//! `longhaul memory`: the pages that are remembered across sessions, to be read, edited and undone. Needs no model.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `scope` | which memory the user means |
//! | `handle` | an opened memory: its pages, listing, search, files |
//! | `format` | lines and JSON |
//! | `edit`, `draft` | a page that the user writes, and the file that the editor gets |
//! | `export` | all pages, as files or as one JSON object |

mod draft;
mod edit;
mod export;
mod format;
mod handle;
mod scope;

use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_agent::memory_pages::{MemoryHitReport, MemorySearch, PageChangeReport, page_text};
use longhaul_journal::Journal;
use longhaul_memory::{
    Error, PageEdited, check_page_name, page_diff, page_log, undo_change, unindexed_notice,
};
use longhaul_protocol::{PrintablePath, Seq};
use serde_json::json;

pub(crate) use self::format::{hit_lines, log_lines};
pub(crate) use self::handle::MemoryHandle;
use crate::args::{EditOptions, GlobalArgs, MemoryCommand, MemoryOptions};
use crate::output::{json, line, note, print, sanitize, truncate};
use crate::{bad_usage, config, exit};

pub(crate) async fn run(globals: &GlobalArgs, options: MemoryOptions) -> anyhow::Result<u8> {
    let MemoryOptions { command, scope, json } = options;
    let command = command.unwrap_or(MemoryCommand::List);
    // A bad name is refused before a home is created and before the user writes the page.
    if let MemoryCommand::Edit(EditOptions { page, .. }) = &command {
        check_page_name(page)?;
    }
    let config = config::load(globals)?;
    let journal = match globals.open_journal().await? {
        Some(journal) => journal,
        None if creates_home(&command) && scope.is_default(globals.session.as_deref()) => {
            globals.open_or_create_journal().await?
        }
        None => return report_no_journal(globals, &command, json),
    };
    let config = with_canonical_home(globals, config)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let scope = scope.resolve(globals.session.as_deref(), &config, &*journal).await?;
    let memory = MemoryHandle::new(journal, config, &scope).await?;
    let done = run_command(&memory, command, json).await;
    memory.journal.close().await;
    done
}

async fn run_command(memory: &MemoryHandle, command: MemoryCommand, as_json: bool) -> anyhow::Result<u8> {
    let (journal, scope) = (&*memory.journal, memory.book.scope.as_str());
    match command {
        MemoryCommand::List => {
            let listing = memory.listing().await?;
            print(as_json, || listing.as_json(), || listing.lines())?;
        }
        MemoryCommand::Show { page, at } => show(memory, &page, at, as_json).await?,
        MemoryCommand::Search { query, limit } => {
            let MemorySearch { hits: found, unindexed } =
                memory.search(&query.join(" "), usize::from(limit)).await?;
            if let Some(notice) = unindexed_notice(unindexed) {
                note(notice);
            }
            let to_lines = || match found.is_empty() {
                true => vec!["No matches.".to_owned()],
                false => hit_lines(&found),
            };
            print(as_json, || found.iter().map(MemoryHitReport::from).collect::<Vec<_>>(), to_lines)?;
        }
        MemoryCommand::Log { page } => {
            let entries = page_log(journal, scope, page.as_deref()).await?;
            if let Some(page) = page.as_deref().filter(|_| entries.is_empty()) {
                memory.page(page)?;
            }
            let to_lines = || match entries.is_empty() {
                true => vec![format!("No changes in {scope} yet.")],
                false => log_lines(&entries),
            };
            print(as_json, || entries.iter().map(PageChangeReport::from).collect::<Vec<_>>(), to_lines)?;
        }
        MemoryCommand::Diff { seq } => {
            let diff = page_diff(journal, scope, seq).await?;
            let form = json!({"scope": scope, "seq": seq, "diff": diff});
            print(as_json, || form, || vec![sanitize(diff.trim_end())])?;
        }
        MemoryCommand::Undo { seq } => {
            let changed = undo_change(journal, scope, seq).await?;
            print_change(memory, Some(&changed), as_json, &format!("undid change {seq}"))?;
            memory.sync_files().await;
        }
        MemoryCommand::Edit(options) => return edit::edit(memory, options, as_json).await,
        MemoryCommand::Export { to } => export::export(memory, to.as_deref(), as_json).await?,
    }
    Ok(exit::DONE)
}

/// Prints a page, as it is or as it was after the change `at`.
async fn show(memory: &MemoryHandle, name: &str, at: Option<Seq>, as_json: bool) -> anyhow::Result<()> {
    // The error suggests the nearest names.
    if at.is_none() {
        memory.page(name)?;
    }
    let shown = page_text(&*memory.journal, &memory.book, name, at).await?;
    print(as_json, || &shown, || vec![sanitize(shown.text.trim_end())])
}

/// Prints the change that was made, or that there was none.
fn print_change(
    memory: &MemoryHandle,
    changed: Option<&PageEdited>,
    as_json: bool,
    what: &str,
) -> anyhow::Result<()> {
    let scope = &memory.book.scope;
    if as_json {
        let (seq, pages) = changed.map(|changed| (changed.seq, changed.pages.clone())).unzip();
        return json(&json!({"scope": scope, "seq": seq, "pages": pages.unwrap_or_default()}));
    }
    match changed {
        Some(PageEdited { seq, pages }) => {
            let pages = truncate(&pages.join(", "), 200);
            line(format!(
                "{what}: {pages} (change {seq}; to undo: longhaul memory undo {seq}{})",
                memory.flag()
            ))
        }
        None => line(format!("{what}: no changes")),
    }
}

/// The config with the canonical path of its home, as a runtime names it.
pub(crate) fn with_canonical_home(globals: &GlobalArgs, config: Config) -> anyhow::Result<Config> {
    let home = globals.existing_home()?.map_or_else(|| config.home.clone(), |home| home.folder().to_owned());
    Ok(Config { home, ..config })
}

/// Whether the command may create the home.
fn creates_home(command: &MemoryCommand) -> bool {
    matches!(command, MemoryCommand::Edit(EditOptions { remove: false, .. }))
}

/// The result where there is no journal yet. Reading creates none.
fn report_no_journal(globals: &GlobalArgs, command: &MemoryCommand, as_json: bool) -> anyhow::Result<u8> {
    let nothing = format!("no memory in {} yet", globals.home_dir()?.printable());
    match command {
        MemoryCommand::List if as_json => json(&json!({"scope": null, "pages": [], "waiting": 0}))?,
        MemoryCommand::Search { .. } | MemoryCommand::Log { page: None } if as_json => json(&json!([]))?,
        MemoryCommand::List | MemoryCommand::Search { .. } | MemoryCommand::Log { page: None } => {
            line(format!("{nothing}."))?;
        }
        _ => return Err(bad_usage(nothing)),
    }
    Ok(exit::DONE)
}

/// Whether the user named something that does not exist or is not allowed.
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

/// The journal error inside a memory error.
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
