//! `longhaul sessions`: one module for each subcommand.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `report` | the conversation as a page, in the terminal or as HTML |
//! | `epochs` | where the epochs of a session begin and end |
//! | `overview` | what `/session` shows |

pub(crate) mod delete;
pub(crate) mod epochs;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod overview;
pub(crate) mod pin;
pub(crate) mod portable;
pub(crate) mod prune;
pub(crate) mod rename;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod show;

use longhaul_agent::housekeeping::PruneMode;

use longhaul_journal::SessionEntry;
use longhaul_protocol::{Seq, SessionId, StreamName};
use serde::Serialize;

use crate::args::{Family, GlobalArgs, ListOptions, SessionsCommand};
use crate::commands::fork;
use crate::exit;
use crate::output::print;
use crate::session_lookup::named_session;

impl Family {
    pub(crate) fn stream(self, session: SessionId) -> StreamName {
        match self {
            Self::Session => StreamName::session(session),
            Self::Inbox => StreamName::inbox(session),
            Self::Extract => StreamName::extract(session),
        }
    }
}

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<SessionsCommand>,
    json: bool,
) -> anyhow::Result<u8> {
    let alone = || SessionsCommand::List(ListOptions { json, ..ListOptions::default() });
    match command.unwrap_or_else(alone) {
        SessionsCommand::List(options) => list::run(globals, options).await,
        SessionsCommand::Show(options) => show::run(globals, options).await,
        SessionsCommand::Fork(options) => fork::fork_named(globals, &options.key, options.at).await,
        SessionsCommand::Rename { key, new, json } => {
            // With -s, the only word is the new key.
            let (key, new) = match new {
                Some(new) => (named_session(globals, Some(key))?, new),
                None => (named_session(globals, None)?, key),
            };
            rename::run(globals, &key, &new, json).await
        }
        SessionsCommand::Pin { key, off, json } => {
            pin::run(globals, &named_session(globals, key)?, off, json).await
        }
        SessionsCommand::Portable { key, json } => {
            portable::run(globals, &named_session(globals, key)?, json).await
        }
        SessionsCommand::Delete { key, now, json } => {
            delete::run(globals, &named_session(globals, key)?, now, json).await
        }
        SessionsCommand::Restore { key, json } => {
            restore::run(globals, &named_session(globals, key)?, json).await
        }
        SessionsCommand::Export { key, file: Some(file), tree: true, json } => {
            export::run_tree(globals, &key, &file, json).await
        }
        SessionsCommand::Export { key, file, json, .. } => {
            export::run(globals, &key, file.as_deref(), json).await
        }
        SessionsCommand::Import(options) => import::run(globals, options).await,
        SessionsCommand::Prune { dry_run, json } => {
            let mode = if dry_run { PruneMode::DryRun } else { PruneMode::ForReal };
            prune::run(globals, mode, json).await
        }
    }
}

/// A session as `--json` shows it.
#[derive(Serialize)]
struct SessionForm {
    key: String,
    id: SessionId,
    records: Seq,
    inbox: Seq,
    /// The first record of its newest epoch.
    epoch_from: Option<Seq>,
    last_at: Option<String>,
    trashed: bool,
    pinned: bool,
}

impl From<SessionEntry> for SessionForm {
    fn from(entry: SessionEntry) -> Self {
        let SessionEntry { key, id, trashed, pinned, head, last_at, epoch_from, inbox_head } = entry;
        let last_at = last_at.map(|at| at.to_string());
        Self { key, id, records: head.seq, inbox: inbox_head, epoch_from, last_at, trashed, pinned }
    }
}

/// Prints the session as JSON, or what was done with it.
fn print_session(entry: SessionEntry, as_json: bool, text: String) -> anyhow::Result<u8> {
    print(as_json, || SessionForm::from(entry), || vec![text])?;
    Ok(exit::DONE)
}
