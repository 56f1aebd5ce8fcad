//! `longhaul sessions delete`: into the trash, or with `--now` for good.

use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_agent::session::load;
use longhaul_agent::tasks::left_behind;
use longhaul_agent::{DeletedTree, delete_tree, subagent_sessions, trash_tree};
use longhaul_journal::{Journal, SessionEntry, all_sessions, record_at};
use longhaul_protocol::{SessionId, SessionRecord, StreamName};
use serde_json::json;

use super::print_session;
use crate::args::GlobalArgs;
use crate::commands::save::session_size;
use crate::output::{format_count, note, print, sanitize, truncate};
use crate::questions::{confirm, has_terminal};
use crate::session_lookup::{find_session, find_session_exactly, open_journal_with};
use crate::{bad_usage, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, name: &str, now: bool, as_json: bool) -> anyhow::Result<u8> {
    let journal = open_journal_with(globals, name).await?;
    if !now {
        let entry = find_session(&journal, name).await?;
        let subagents = subagent_sessions(&journal, entry.id).await?;
        if !may_delete(&entry.key, &subagents)? {
            return Ok(exit::FAILED);
        }
        if let Some(running) = describe_running_tasks(globals, &journal, &entry).await? {
            note(format!("{running}; they keep running, see `longhaul tasks`"));
        }
        let trashed = trash_tree(&journal, &entry.key).await;
        journal.close().await;
        let restore = suggested_command::command(globals, &["sessions", "restore", &entry.key]);
        let text = format!(
            "Moved {}{} to the trash for two weeks. To restore it: {}",
            truncate(&entry.key, 200),
            with_subagents(&subagents),
            sanitize(&restore)
        );
        return print_session(trashed?, as_json, text);
    }
    let entry = find_session_exactly(&journal, name).await?;
    if let Some(running) = describe_running_tasks(globals, &journal, &entry).await? {
        let kill = suggested_command::command(globals, &["tasks", "kill", "-s", &entry.key, "TASK"]);
        return Err(bad_usage(format!("{running}; kill them first: {kill}")));
    }
    let subagents = subagent_sessions(&journal, entry.id).await?;
    if !may_delete(&entry.key, &subagents)? {
        return Ok(exit::FAILED);
    }
    let forks = forks_of(&journal, entry.id).await?;
    let bytes = session_size(&journal, entry.id).await?.bytes;
    let deleted = delete_tree(&journal, &entry.key).await;
    journal.close().await;
    let DeletedTree { session, subagents: deleted_subagents } = deleted?;
    for id in deleted_subagents.into_iter().chain([session.id]) {
        kill_leftovers(globals, id)?;
    }
    let (key, id, records) = (session.key, session.id, session.records);
    let (size, bytes_text) = (format_count(records, "entry"), format_count(bytes, "byte"));
    let mut lines =
        vec![format!("Deleted {}{}: {size}, {bytes_text}", truncate(&key, 200), with_subagents(&subagents))];
    if !forks.is_empty() {
        lines.push(format!("Its forks are not affected: {}", truncate(&forks.join(", "), 400)));
    }
    lines.push("Earlier backups and exports still contain it.".to_owned());
    let form = json!({"key": key, "id": id, "records": records, "bytes": bytes, "deleted": true, "forks": forks,
        "subagents": subagents.len()});
    print(as_json, || form, || lines)?;
    Ok(exit::DONE)
}

/// Asks at a terminal before the subagents of a session go with it.
fn may_delete(key: &str, subagents: &[SessionEntry]) -> anyhow::Result<bool> {
    if subagents.is_empty() || !has_terminal() {
        return Ok(true);
    }
    let count = format_count(subagents.len() as u64, "subagent");
    Ok(confirm(&format!("{} has {count}. Delete them with it?", truncate(key, 200)))?)
}

fn with_subagents(subagents: &[SessionEntry]) -> String {
    match subagents.len() {
        0 => String::new(),
        count => format!(" with {}", format_count(count as u64, "subagent")),
    }
}

/// Kills the processes that commands of the session left running.
fn kill_leftovers(globals: &GlobalArgs, session: SessionId) -> anyhow::Result<()> {
    let tasks = Tasks::existing(&globals.home_dir()?.join("tasks"), Launcher::this_program()?)?;
    for left in left_behind(tasks.as_ref(), session) {
        let id = left.started.task_id;
        if let Some(Err(error)) = tasks.as_ref().map(|tasks| tasks.kill(id)) {
            note(format!("could not kill processes left by task {id}: {error}"));
        }
    }
    Ok(())
}

/// `KEY has 2 tasks that run`, if any run. A session that can't be loaded counts as having none, so that it can be deleted.
async fn describe_running_tasks(
    globals: &GlobalArgs,
    journal: &dyn Journal,
    entry: &SessionEntry,
) -> anyhow::Result<Option<String>> {
    // A task that is running by the records may have ended while no runtime was there to record it.
    let tasks = Tasks::existing(&globals.home_dir()?.join("tasks"), Launcher::this_program()?)?;
    let is_kept = |id| tasks.as_ref().is_some_and(|tasks| tasks.is_kept(id).unwrap_or(true));
    let state = load(journal, &entry.key, entry.id).await.unwrap_or_default();
    let mut running = 0;
    for task in state.tasks.running() {
        running += usize::from(match task.started.session {
            Some(child) => journal.live_holder(&StreamName::session(child)).await?.is_some(),
            None => is_kept(task.id()),
        });
    }
    let has =
        |number: u64| format!("{} has {} running", truncate(&entry.key, 200), format_count(number, "task"));
    Ok(Some(running as u64).filter(|number| *number > 0).map(has))
}

/// The keys of the sessions that were forked from this one.
async fn forks_of(journal: &dyn Journal, parent: SessionId) -> anyhow::Result<Vec<String>> {
    let mut forks = Vec::new();
    let mut sessions = all_sessions(journal);
    while let Some(entry) = sessions.next().await? {
        let first = record_at(journal, &StreamName::session(entry.id), 1).await.unwrap_or_default();
        if let Some(Ok(SessionRecord::SessionCreated(created))) = first.as_ref().map(SessionRecord::decode)
            && created.origin.is_some_and(|origin| origin.session == parent)
        {
            forks.push(entry.key);
        }
    }
    Ok(forks)
}
