//! From the name that the user typed to a task, and a task in a few words.

use longhaul_agent::tasks::{TaskEntry, TaskRegistry};
use longhaul_protocol::{TaskStarted, TaskStatus};

use crate::output::truncate;
use crate::session_lookup::find_session;
use crate::short_id::{IdMatch, short};
use crate::{bad_usage, short_id};

/// Tasks that an error names.
const MAX_NAMED_TASKS: usize = 10;

/// The tasks of the named session, or of all sessions, and a message for each session that can't be read.
pub(crate) async fn select_tasks(
    registry: &TaskRegistry,
    session: Option<&str>,
) -> anyhow::Result<(Vec<TaskEntry>, Vec<String>)> {
    match session {
        Some(key) => {
            let entry = find_session(&**registry.journal(), key).await?;
            Ok((registry.of_session(&entry.key, entry.id).await?, vec![]))
        }
        None => Ok(registry.all().await?),
    }
}

/// The task whose id is, starts or ends with `name`.
pub(crate) async fn find_task(
    registry: &TaskRegistry,
    session: Option<&str>,
    name: &str,
) -> anyhow::Result<TaskEntry> {
    let (listed, _) = select_tasks(registry, session).await?;
    match short_id::find_task(listed.iter().map(TaskEntry::id), name) {
        IdMatch::One(id) => {
            listed.into_iter().find(|task| task.id() == id).ok_or_else(|| unknown_task(&[], name))
        }
        IdMatch::Several(ids) => {
            let several = listed.iter().filter(|task| ids.contains(&task.id()));
            let several: Vec<String> = several.map(|task| format!("\n  {}", short_line(task))).collect();
            Err(bad_usage(format!("{name:?} matches several tasks:{}", several.concat())))
        }
        IdMatch::Nothing => {
            if let Some(key) = session {
                refuse_foreign(registry, key, name).await?;
            }
            Err(unknown_task(&listed, name))
        }
    }
}

/// Refuses a task of another session, and names that session.
async fn refuse_foreign(registry: &TaskRegistry, key: &str, name: &str) -> anyhow::Result<()> {
    let (all, _) = registry.all().await?;
    if let IdMatch::One(id) = short_id::find_task(all.iter().map(TaskEntry::id), name)
        && let Some(task) = all.iter().find(|task| task.id() == id)
    {
        let (owner, key) = (truncate(&task.session, 80), truncate(key, 80));
        return Err(bad_usage(format!("task {} belongs to {owner}, not {key}", short(id))));
    }
    Ok(())
}

fn unknown_task(listed: &[TaskEntry], name: &str) -> anyhow::Error {
    let there = match listed {
        [] => "there are none; use -s KEY to see a session's old tasks".to_owned(),
        some => {
            let names =
                some.iter().rev().take(MAX_NAMED_TASKS).map(|task| format!("\n  {}", short_line(task)));
            let more = if some.len() > MAX_NAMED_TASKS { "\n  …" } else { "" };
            format!("there are:{}{more}", names.collect::<String>())
        }
    };
    bad_usage(format!("no task {name:?}; {there}"))
}

/// `a6k87v (running): what it does`.
fn short_line(task: &TaskEntry) -> String {
    format!("{} ({}): {}", short(task.id()), status_word(task.now.status), description(&task.started))
}

/// The description of a task, or its command where the model gave none.
pub(crate) fn description(started: &TaskStarted) -> String {
    let words = if started.description.is_empty() { &started.command } else { &started.description };
    truncate(words, 90)
}

pub(crate) fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::TimedOut => "timed out",
        status => status.word(),
    }
}
