//! `longhaul sessions fork|rename|pin|delete|restore|prune`, and `longhaul fork`.

use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_agent::{Forked, Mode, Pruned, Pruning, Reason, fork_session, load, prune};
use longhaul_journal::{
    Error, Journal, SessionEntry, delete_session, pin_session, rename_session, restore_session,
    trash_session, unpin_session,
};
use longhaul_protocol::{PrintablePath, SessionId, SessionRecord, StreamName};
use serde_json::json;

use super::finding::{all_sessions, find_exactly, find_session, open_session};
use super::listing::now;
use super::saving::size;
use super::{ONE, SessionForm};
use crate::arguments::{Choice, ForkOptions, ForkPoint, Place};
use crate::output::{count, json, line, note, safe, shortened};
use crate::talk::free_key;
use crate::tasks::board::left_behind;
use crate::{BadUsage, config, exit, resuming};

pub(crate) async fn fork(place: &Place, choice: &Choice, options: ForkOptions) -> anyhow::Result<u8> {
    fork_named(place, choice, &options.session, options.at).await
}

pub(super) async fn fork_named(
    place: &Place,
    choice: &Choice,
    name: &str,
    point: ForkPoint,
) -> anyhow::Result<u8> {
    let ForkPoint { seq, new, json: as_json } = point;
    let (journal, entry) = open_session(place, name).await?;
    let forked = fork_as(&journal, &entry.key, seq, new.as_deref()).await;
    journal.close().await;
    let forked = forked?;
    if as_json {
        json(&forked)?;
        return Ok(exit::DONE);
    }
    let come_back = resuming::come_back(place, choice, &forked.key);
    forked_lines(&entry.key, &forked, &come_back).into_iter().try_for_each(line)?;
    Ok(exit::DONE)
}

/// Forks a session, under a key that is free if none is given.
pub(crate) async fn fork_as(
    journal: &dyn Journal,
    key: &str,
    at: Option<u64>,
    new: Option<&str>,
) -> anyhow::Result<Forked> {
    let new = match new {
        Some(new) => new.to_owned(),
        None => free_key(journal, format!("{key}-fork")).await?,
    };
    Ok(fork_session(journal, key, at, &new).await?)
}

/// What came of a fork, and the command that goes on with it.
pub(crate) fn forked_lines(parent: &str, forked: &Forked, come_back: &str) -> Vec<String> {
    let (parent, key) = (shortened(parent, 200), shortened(&forked.key, 200));
    let records = count(forked.records, "record");
    let mut lines =
        vec![format!("Forked {parent} at record {} as {key} ({}): {records}", forked.origin.seq, forked.id)];
    for text in &forked.unsent {
        lines.push(format!("Not taken along, since the model had not seen it: {}", shortened(text, 200)));
    }
    lines.push(format!("To go on with it: {}", safe(come_back)));
    lines
}

pub(super) async fn rename(place: &Place, name: &str, new: &str, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(place, name).await?;
    let renamed = rename_to(&journal, &entry.key, new).await;
    journal.close().await;
    let said = format!("Renamed {} to {}", shortened(&entry.key, 200), shortened(new, 200));
    tell(renamed?, as_json, said)
}

/// Gives a session another key, which must be free.
pub(crate) async fn rename_to(journal: &dyn Journal, key: &str, new: &str) -> anyhow::Result<SessionEntry> {
    rename_session(journal, key, new).await.map_err(|error| match error {
        Error::SessionExists { key } => {
            BadUsage(format!("there is a session {key:?} already; choose another key")).into()
        }
        error => error.into(),
    })
}

pub(super) async fn pin(place: &Place, name: &str, off: bool, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(place, name).await?;
    let pinned = match off {
        true => unpin_session(&journal, &entry.key).await,
        false => pin_session(&journal, &entry.key).await,
    };
    journal.close().await;
    let what = if off { "Not pinned any more" } else { "Pinned" };
    tell(pinned?, as_json, format!("{what}: {}", shortened(&entry.key, 200)))
}

pub(super) async fn restore(place: &Place, name: &str, as_json: bool) -> anyhow::Result<u8> {
    let (journal, entry) = open_session(place, name).await?;
    let restored = restore_session(&journal, &entry.key).await;
    journal.close().await;
    let key = shortened(&entry.key, 200);
    let said = match entry.trashed {
        true => format!("Brought back: {key}"),
        false => format!("{key} was not in the trash"),
    };
    tell(restored?, as_json, said)
}

fn tell(entry: SessionEntry, as_json: bool, said: String) -> anyhow::Result<u8> {
    match as_json {
        true => json(&SessionForm::from(entry))?,
        false => line(said)?,
    }
    Ok(exit::DONE)
}

pub(super) async fn delete(
    place: &Place,
    choice: &Choice,
    name: &str,
    now: bool,
    as_json: bool,
) -> anyhow::Result<u8> {
    let Some(journal) = place.journal().await? else {
        return Err(Error::NoSuchSession { key: name.to_owned() }.into());
    };
    if !now {
        let entry = find_session(&journal, name).await?;
        if let Some(running) = running_in(place, &journal, &entry).await? {
            note(format!("{running}, which go on all the same: longhaul tasks lists them"));
        }
        let trashed = trash_session(&journal, &entry.key).await;
        journal.close().await;
        let restore = resuming::command(place, choice, &["sessions", "restore", &entry.key]);
        let said = format!(
            "Put into the trash: {}. It goes for good after two weeks; until then: {}",
            shortened(&entry.key, 200),
            safe(&restore)
        );
        return tell(trashed?, as_json, said);
    }
    let entry = find_exactly(&journal, name).await?;
    if let Some(running) = running_in(place, &journal, &entry).await? {
        let kill = resuming::command(place, choice, &["tasks", "kill", "-s", &entry.key, "TASK"]);
        return Err(BadUsage(format!("{running}; end them first: {kill}")).into());
    }
    let forks = forks_of(&journal, entry.id).await?;
    let bytes = size(&journal, entry.id).await?.bytes;
    let deleted = delete_session(&journal, &entry.key).await;
    journal.close().await;
    let deleted = deleted?;
    end_what_is_left(place, deleted.id)?;
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
fn end_what_is_left(place: &Place, session: SessionId) -> anyhow::Result<()> {
    let tasks = Tasks::existing(&place.folder()?.join("tasks"), Launcher::this_program()?)?;
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
    place: &Place,
    journal: &dyn Journal,
    entry: &SessionEntry,
) -> anyhow::Result<Option<String>> {
    // What the records take for running may have ended while nobody was there to write it down.
    let tasks = Tasks::existing(&place.folder()?.join("tasks"), Launcher::this_program()?)?;
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

pub(super) async fn prune_now(
    place: &Place,
    choice: &Choice,
    mode: Mode,
    as_json: bool,
) -> anyhow::Result<u8> {
    let config = config::load(place, choice)?;
    let pruning = match place.journal().await? {
        Some(journal) => {
            let pruning = prune(&journal, &place.folder()?, &config.settings.sessions, now(), mode).await;
            journal.close().await;
            pruning?
        }
        None => Pruning::default(),
    };
    if as_json {
        json(&pruning)?;
        return Ok(exit::DONE);
    }
    let settings = &config.settings.sessions;
    if settings.keep == 0 && settings.max_age_days == 0 && settings.max_bytes == 0 {
        note(
            "no limit is set, so no session is put away: sessions.keep, sessions.max_age_days, sessions.max_bytes",
        );
    }
    pruned_lines(&pruning, mode).into_iter().try_for_each(line)?;
    Ok(exit::DONE)
}

pub(crate) fn pruned_lines(pruning: &Pruning, mode: Mode) -> Vec<String> {
    let would = match mode {
        Mode::DryRun => "would be ",
        Mode::ForReal => "",
    };
    let session = |session: &Pruned| {
        let what = if session.deleted { "deleted" } else { "put into the trash" };
        let why = match session.reason {
            Reason::TooMany => "there are more than sessions.keep",
            Reason::TooOld => "it was not used for sessions.max_age_days",
            Reason::TooLarge => "all of them have more than sessions.max_bytes",
            Reason::InTrash => "it was in the trash for two weeks",
            Reason::Empty => "there is nothing in it",
        };
        let bytes = count(session.bytes, "byte");
        format!("{}: {would}{what}, {bytes}: {why}", shortened(&session.key, 200))
    };
    let mut lines: Vec<String> = pruning.sessions.iter().map(session).collect();
    lines.extend(
        pruning
            .files
            .iter()
            .map(|file| format!("{}: {would}removed, a file that was left half written", file.printable())),
    );
    if pruning.blobs > 0 {
        lines.push(format!("{} that nothing referred to: {would}removed", count(pruning.blobs, "blob")));
    }
    if lines.is_empty() {
        lines.push("nothing has to go".to_owned());
    }
    lines
}
