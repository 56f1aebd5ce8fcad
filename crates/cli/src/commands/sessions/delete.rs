//! `longhaul sessions delete`: into the trash, or with `--now` for good.

use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_agent::load;
use longhaul_journal::{Error, Journal, SessionEntry, delete_session, trash_session};
use longhaul_protocol::{SessionId, SessionRecord, StreamName};
use serde_json::json;

use super::{ONE, print_session};
use crate::args::GlobalArgs;
use crate::commands::save::size;
use crate::commands::tasks::registry::left_behind;
use crate::output::{count, json, line, note, safe, shortened};
use crate::session_lookup::{all_sessions, find_session, find_session_exactly};
use crate::{BadUsage, exit, suggested_command};

pub(crate) async fn run(globals: &GlobalArgs, name: &str, now: bool, as_json: bool) -> anyhow::Result<u8> {
    let Some(journal) = globals.open_journal().await? else {
        return Err(Error::NoSuchSession { key: name.to_owned() }.into());
    };
    if !now {
        let entry = find_session(&journal, name).await?;
        if let Some(running) = running_in(globals, &journal, &entry).await? {
            note(format!("{running}, which go on all the same: longhaul tasks lists them"));
        }
        let trashed = trash_session(&journal, &entry.key).await;
        journal.close().await;
        let restore = suggested_command::command(globals, &["sessions", "restore", &entry.key]);
        let said = format!(
            "Put into the trash: {}. It goes for good after two weeks; until then: {}",
            shortened(&entry.key, 200),
            safe(&restore)
        );
        return print_session(trashed?, as_json, said);
    }
    let entry = find_session_exactly(&journal, name).await?;
    if let Some(running) = running_in(globals, &journal, &entry).await? {
        let kill = suggested_command::command(globals, &["tasks", "kill", "-s", &entry.key, "TASK"]);
        return Err(BadUsage(format!("{running}; end them first: {kill}")).into());
    }
    let forks = forks_of(&journal, entry.id).await?;
    let bytes = size(&journal, entry.id).await?.bytes;
    let deleted = delete_session(&journal, &entry.key).await;
    journal.close().await;
    let deleted = deleted?;
    end_what_is_left(globals, deleted.id)?;
    if as_json {
        let (key, id, records) = (deleted.key, deleted.id, deleted.records);
        json(
            &json!({"key": key, "id": id, "records": records, "bytes": bytes, "deleted": true, "forks": forks}),
        )?;
        return Ok(exit::DONE);
    }
    let records = count(deleted.records, "record");
    line(format!("Deleted {}: {records}, {}", shortened(&deleted.key, 200), count(bytes, "byte")))?;
    if !forks.is_empty() {
        line(format!("Forked from it, and whole without it: {}", shortened(&forks.join(", "), 400)))?;
    }
    line("Backups and exports that were made before still hold it.")?;
    Ok(exit::DONE)
}

/// Ends what the commands of a session left running.
fn end_what_is_left(globals: &GlobalArgs, session: SessionId) -> anyhow::Result<()> {
    let tasks = Tasks::existing(&globals.home_dir()?.join("tasks"), Launcher::this_program()?)?;
    for left in left_behind(tasks.as_ref(), session) {
        let id = left.started.task_id;
        if let Some(Err(error)) = tasks.as_ref().map(|tasks| tasks.kill(id)) {
            note(format!("what task {id} left running could not be ended: {error}"));
        }
    }
    Ok(())
}

/// That tasks of a session run, if they do. One that can't be read may be deleted.
async fn running_in(
    globals: &GlobalArgs,
    journal: &dyn Journal,
    entry: &SessionEntry,
) -> anyhow::Result<Option<String>> {
    // What the records take for running may have ended while nobody was there to write it down.
    let tasks = Tasks::existing(&globals.home_dir()?.join("tasks"), Launcher::this_program()?)?;
    let is_kept = |id| tasks.as_ref().is_some_and(|tasks| tasks.is_kept(id).unwrap_or(true));
    let state = load(journal, &entry.key, entry.id).await;
    let running = state.map_or(0, |state| state.tasks.running().filter(|task| is_kept(task.id())).count());
    let has = |number: u64| format!("{} has {} that run", shortened(&entry.key, 200), count(number, "task"));
    Ok(Some(running as u64).filter(|number| *number > 0).map(has))
}

/// The keys of the sessions that were forked from one.
async fn forks_of(journal: &dyn Journal, parent: SessionId) -> anyhow::Result<Vec<String>> {
    let mut forks = Vec::new();
    for entry in all_sessions(journal).await? {
        let first = journal.read(&StreamName::session(entry.id), 1, ONE).await.unwrap_or_default().pop();
        if let Some(Ok(SessionRecord::SessionCreated(created))) = first.as_ref().map(SessionRecord::decode)
            && created.origin.is_some_and(|origin| origin.session == parent)
        {
            forks.push(entry.key);
        }
    }
    Ok(forks)
}
