//! `/session`, `/save`, `/fork` and `/clear`.

use std::path::Path;

use anyhow::anyhow;
use longhaul_agent::housekeeping::PruneMode;
use longhaul_agent::{now, subagent_sessions, trash_tree};
use longhaul_journal::{pin_session, unpin_session};
use longhaul_memory::unindexed_notice;
use longhaul_protocol::PrintablePath;

use super::info::session_status;
use super::{CommandContext, TurnPhase};
use crate::commands::fork::{fork_as, forked_lines};
use crate::commands::save::check_saved;
use crate::commands::sessions::export::{describe_export, export_to};
use crate::commands::sessions::list::{SessionFilter, SessionList, SessionSummary, ago, list, table};
use crate::commands::sessions::overview::{SessionOverview, session_lines};
use crate::commands::sessions::prune::pruned_lines;
use crate::commands::sessions::rename::rename_to;
use crate::output::{format_count, truncate};
use crate::output_file::destination;
use crate::session_lookup::find_session;
use crate::suggested_command;
use crate::tui::PickerItem;

const USAGE: &str = "/session [list [WORDS]|resume [KEY]|fork [SEQ]|rename KEY|pin|unpin|delete|export FILE|prune [--dry-run]]";
const FORK_USAGE: &str = "usage: /fork [SEQ], with an entry number from `longhaul sessions show --records`";
/// Columns of the keys in a list to choose from.
const MAX_KEY_COLUMNS: usize = 40;
const NEW: &str = "this session is new; nothing is saved yet";

/// The session in which the chat goes on after a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextSession {
    Same,
    /// The session with this key.
    Named(String),
    /// A new session for the folder.
    New,
}

/// `/session …`.
pub(crate) async fn run(
    context: &mut CommandContext<'_>,
    arguments: &str,
    phase: TurnPhase,
) -> anyhow::Result<NextSession> {
    let (command, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let rest = rest.trim();
    let is_for_later = matches!(command, "resume" | "fork" | "delete" | "rename" | "prune");
    if is_for_later && phase == TurnPhase::DuringTurn {
        context.printer.note(format!("/session {command} works between turns; Ctrl-C cancels this one"));
        return Ok(NextSession::Same);
    }
    match (command, rest) {
        ("resume", key) => resume_session(context, key).await,
        ("fork", at) => fork(context, at).await,
        ("rename", key) if !key.is_empty() => rename(context, key).await,
        ("delete", "") => delete(context).await,
        (command, rest) => session_subcommand(context, command, rest).await.map(|()| NextSession::Same),
    }
}

/// The subcommands that stay in the present session.
async fn session_subcommand(
    context: &mut CommandContext<'_>,
    command: &str,
    rest: &str,
) -> anyhow::Result<()> {
    let (journal, key) = (context.runtime.journal(), context.session.key().to_owned());
    match (command, rest) {
        ("pin" | "unpin", "") | ("export", _) if context.session.id().is_none() => context.printer.note(NEW),
        ("pin", "") => {
            pin_session(&*journal, &key).await?;
            context.printer.note(format!("pinned {key}; it is never pruned"));
        }
        ("unpin", "") => {
            unpin_session(&*journal, &key).await?;
            context.printer.note(format!("unpinned {key}"));
        }
        ("", "") => show_session(context).await?,
        ("list", words) => {
            let SessionList { sessions, unindexed } = list(&*journal, words, SessionFilter::Usual).await?;
            match sessions.is_empty() {
                true => context.printer.note("no session matches"),
                false => context.printer.table(&table(&sessions, now())),
            }
            if let Some(notice) = unindexed_notice(unindexed) {
                context.printer.note(notice);
            }
        }
        ("export", file) if !file.is_empty() => {
            let work_dir = context.session.state().await?.created.and_then(|created| created.work_dir);
            let path = destination(&context.globals.home_dir()?, work_dir.as_deref(), Path::new(file))?;
            let exported = export_to(&*journal, &key, &path).await?;
            context.printer.note(format!("exported {} to {}", describe_export(&exported), path.printable()));
        }
        ("prune", "" | "--dry-run") => {
            let mode = if rest.is_empty() { PruneMode::ForReal } else { PruneMode::DryRun };
            let pruning = context.runtime.prune(mode).await?;
            context.printer.page(&pruned_lines(&pruning, mode).join("\n"));
        }
        _ => context.printer.note(format!("usage: {USAGE}")),
    }
    Ok(())
}

/// S3: `/session`.
async fn show_session(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let journal = context.runtime.journal();
    let about = match journal.session(context.session.key()).await? {
        Some(entry) => Some(SessionOverview::of(&*journal, &entry).await?),
        None => None,
    };
    let status = session_status(context).await?;
    context.printer.page(&session_lines(&status, about.as_ref()).join("\n"));
    Ok(())
}

/// `/save`.
pub(crate) async fn save(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let journal = context.runtime.journal();
    let entry = journal.session(context.session.key()).await?.ok_or_else(|| anyhow!(NEW))?;
    let saved = check_saved(&*journal, &entry).await?;
    context.printer.page(&saved.lines().join("\n"));
    Ok(())
}

fn require_stored(context: &CommandContext<'_>) -> anyhow::Result<()> {
    if context.session.id().is_none() { Err(anyhow!(NEW)) } else { Ok(()) }
}

/// `/session resume [KEY]`; without a key, one is chosen from a list.
async fn resume_session(context: &mut CommandContext<'_>, key: &str) -> anyhow::Result<NextSession> {
    let key = match key {
        "" => match pick_session(context).await? {
            Some(key) => key,
            None => return Ok(NextSession::Same),
        },
        key => find_session(&*context.runtime.journal(), key).await?.key,
    };
    if key == context.session.key() {
        context.printer.note(format!("already in {key}"));
        return Ok(NextSession::Same);
    }
    Ok(NextSession::Named(key))
}

/// Lets the user pick a session from a list.
async fn pick_session(context: &mut CommandContext<'_>) -> anyhow::Result<Option<String>> {
    let listed = list(&*context.runtime.journal(), "", SessionFilter::Usual).await?.sessions;
    if context.screen.is_none() {
        context.printer.page(&table(&listed, now()).join("\n"));
        context.printer.note("usage: /session resume KEY");
        return Ok(None);
    }
    let keys = listed.iter().map(|listed| listed.entry().key.chars().count());
    let width = keys.max().unwrap_or(0).min(MAX_KEY_COLUMNS);
    let item = |listed: &SessionSummary| {
        let entry = listed.entry();
        let used = entry.last_at.map(|at| ago(now(), at)).unwrap_or_default();
        PickerItem {
            key: entry.key.clone(),
            line: format!("{:<width$}  {used:<14}", truncate(&entry.key, width)),
            detail: listed.title().to_owned(),
        }
    };
    let (title, choices) = ("Resume which session?".to_owned(), listed.iter().map(item).collect());
    let chosen = context.pick(title, choices).await.and_then(|index| listed.get(index));
    Ok(chosen.map(|chosen| chosen.entry().key.clone()))
}

/// `/fork [SEQ]`: the conversation goes on in the copy.
pub(crate) async fn fork(context: &mut CommandContext<'_>, at: &str) -> anyhow::Result<NextSession> {
    require_stored(context)?;
    let at = match at {
        "" => None,
        at => Some(at.parse::<u64>().map_err(|_| anyhow!(FORK_USAGE))?),
    };
    let before = context.session.key().to_owned();
    let forked = fork_as(&*context.runtime.journal(), &before, at, None).await?;
    context.printer.page(&forked_lines(&before, &forked).join("\n"));
    context.printer.note(format!("to go back: /session resume {before}"));
    Ok(NextSession::Named(forked.key))
}

async fn rename(context: &mut CommandContext<'_>, to: &str) -> anyhow::Result<NextSession> {
    require_stored(context)?;
    // The session is opened again under its new key.
    context.session.release().await;
    rename_to(&*context.runtime.journal(), context.session.key(), to).await?;
    Ok(NextSession::Named(to.to_owned()))
}

/// `/session delete`: into the trash; the conversation goes on in a new one. Asks first if subagents go along.
async fn delete(context: &mut CommandContext<'_>) -> anyhow::Result<NextSession> {
    require_stored(context)?;
    let key = context.session.key().to_owned();
    let journal = context.runtime.journal();
    let subagents = match context.session.id() {
        Some(id) => subagent_sessions(&*journal, id).await?.len() as u64,
        None => 0,
    };
    let count = format_count(subagents, "subagent");
    if subagents > 0 && !confirm(context, format!("{key} has {count}. Delete them with it?")).await {
        context.printer.note(format!("{key} stays"));
        return Ok(NextSession::Same);
    }
    context.session.release().await;
    trash_tree(&*journal, &key).await?;
    let with_subagents = if subagents == 0 { String::new() } else { format!(" with {count}") };
    let restore = suggested_command::command(context.globals, &["sessions", "restore", &key]);
    context
        .printer
        .note(format!("moved {key}{with_subagents} to the trash for two weeks; to restore it: {restore}"));
    Ok(NextSession::New)
}

/// Asks a question that is answered with yes or no. Without a screen there is nobody to choose: yes.
async fn confirm(context: &mut CommandContext<'_>, question: String) -> bool {
    if context.screen.is_none() {
        return true;
    }
    let item = |line: &str| PickerItem { key: String::new(), line: line.to_owned(), detail: String::new() };
    context.pick(question, vec![item("no"), item("yes")]).await == Some(1)
}

/// `/clear`: a new session for the folder.
pub(crate) fn clear(context: &mut CommandContext<'_>) -> NextSession {
    if context.session.id().is_none() {
        context.printer.note("this session is already new");
        return NextSession::Same;
    }
    let before = context.session.key();
    context.printer.note(format!("saved {before}; to go back: /session resume {before}"));
    NextSession::New
}
