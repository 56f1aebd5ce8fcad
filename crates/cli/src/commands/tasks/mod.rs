//! `longhaul tasks`: lists, follows and kills background commands, from any process, also while no runtime runs.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `registry` | the tasks of a home: which there are, by the records, and their condition, by their keepers |
//! | `output_reader` | reads the output of a task, now and while more comes |
//! | `output_filter` | redacts secrets, and for terminals control characters |

pub(crate) mod output_filter;
pub(crate) mod output_reader;
pub(crate) mod registry;

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Context;
use longhaul_agent::redactor;
use longhaul_journal::Error;
use longhaul_protocol::{PrintablePath, TaskStatus};
use output_filter::{Audience, OutputFilter, write_out};
use output_reader::{OutputChunk, OutputReader, follow};
use registry::{TaskEntry, TaskRegistry, status_word};
use serde_json::Value;

use crate::args::{
    GlobalArgs, TaskFollowOptions, TaskKillOptions, TaskListOptions, TaskOutputOptions, TasksCommand,
};
use crate::commands::sessions::list::now;
use crate::output::{format_duration, format_recent_moment, json, line, note, task_text, truncate};
use crate::short_id::short;
use crate::signals::ExitSignals;
use crate::{bad_usage, config, event_text, exit};

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<TasksCommand>,
    options: TaskListOptions,
) -> anyhow::Result<u8> {
    match command.unwrap_or(TasksCommand::List(options)) {
        TasksCommand::List(options) => list(globals, &options).await,
        TasksCommand::Output(options) => output(globals, &options).await,
        TasksCommand::Follow(options) => follow_task(globals, &options).await,
        TasksCommand::Kill(options) => kill(globals, &options).await,
    }
}

/// The tasks of the home, if it has a journal.
async fn open_registry(globals: &GlobalArgs) -> anyhow::Result<Option<TaskRegistry>> {
    let (Some(home), Some(journal)) = (globals.existing_home()?, globals.open_journal().await?) else {
        return Ok(None);
    };
    Ok(Some(TaskRegistry::new(Arc::new(journal), home.folder())?))
}

/// The task that the user named.
async fn find_task(
    globals: &GlobalArgs,
    session: Option<&str>,
    name: &str,
) -> anyhow::Result<(TaskRegistry, TaskEntry)> {
    match (open_registry(globals).await?, session) {
        (Some(registry), session) => {
            let task = registry.find(session, name).await?;
            Ok((registry, task))
        }
        (None, Some(key)) => Err(Error::NoSuchSession { key: key.to_owned() }.into()),
        (None, None) => Err(bad_usage(format!(
            "no task {name:?}: no sessions in {} yet",
            globals.home_dir()?.printable()
        ))),
    }
}

async fn list(globals: &GlobalArgs, options: &TaskListOptions) -> anyhow::Result<u8> {
    let (listed, unreadable) = match (open_registry(globals).await?, &globals.session) {
        (Some(registry), session) => {
            let found = registry.select(session.as_deref()).await?;
            registry.journal.close().await;
            found
        }
        (None, Some(key)) => return Err(Error::NoSuchSession { key: key.clone() }.into()),
        (None, None) => (vec![], vec![]),
    };
    unreadable.iter().for_each(note);
    if options.json {
        json(&listed.iter().map(TaskEntry::as_json).collect::<Vec<_>>())?;
    } else if listed.is_empty() {
        line("No tasks.")?;
    } else {
        table(&listed).into_iter().try_for_each(line)?;
    }
    Ok(if unreadable.is_empty() { exit::DONE } else { exit::FAILED })
}

pub(crate) fn table(listed: &[TaskEntry]) -> Vec<String> {
    let longest = listed.iter().map(|task| task.session.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(7, 40);
    let mut lines = vec![format!(
        "{:<6}  {:<9}  {:<16}  {:<11}  {:>4}  {:<width$}  COMMAND",
        "TASK", "STATUS", "SINCE", "FOR", "EXIT", "SESSION"
    )];
    let today = now();
    for task in listed {
        let now = &task.now;
        let since =
            task.started.started_at.map_or_else(|| "-".to_owned(), |at| format_recent_moment(at, today));
        let lasted = now.duration_ms.map_or_else(|| "-".to_owned(), format_duration);
        let code = now.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        let (session, what) = (truncate(&task.session, width), task.description());
        let message = now.message.as_ref().map(|message| format!("  ({})", truncate(message, 200)));
        lines.push(format!(
            "{:<6}  {:<9}  {since:<16}  {lasted:<11}  {code:>4}  {session:<width$}  {what}{}",
            short(task.id()),
            status_word(now.status),
            message.unwrap_or_default(),
        ));
    }
    lines
}

async fn output(globals: &GlobalArgs, options: &TaskOutputOptions) -> anyhow::Result<u8> {
    let redactor = redactor(&config::load(globals)?)?;
    let (registry, task) = find_task(globals, globals.session.as_deref(), &options.task).await?;
    let filter = OutputFilter::new(&redactor, audience());
    let end = options.limit.map_or(u64::MAX, |limit| options.offset.saturating_add(limit));
    match registry.tasks().and_then(|tasks| Ok(tasks.output(task.id())?)) {
        Ok(printed) => {
            let mut to = write;
            let mut reader = OutputReader::new(printed, options.offset, filter, &mut to)?;
            reader.read_until(end)?;
            reader.finish()?;
        }
        Err(_) => {
            let (kept, what) = recorded_output(&registry, &task).await?;
            note(format!("the output files of task {} are gone; {what}", short(task.id())));
            let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(kept.len());
            let (from, to) = (index(options.offset), index(end));
            let mut filter = filter;
            filter.lead_in(&kept[..from]);
            write_out(&filter.push(&kept[from..to]))?;
            write_out(&filter.finish_before(&kept[to..]))?;
        }
    }
    registry.journal.close().await;
    Ok(exit::DONE)
}

/// The output in the record of a task's end, and a word for how much of it that is.
async fn recorded_output(
    registry: &TaskRegistry,
    task: &TaskEntry,
) -> anyhow::Result<(Vec<u8>, &'static str)> {
    let Some(ended) = &task.record else { return Ok((vec![], "nothing of its output was saved")) };
    Ok(match &ended.output {
        Some(blob) => (registry.journal.blob(blob.hash).await?, "showing what was saved"),
        None => (ended.tail.clone().into_bytes(), "showing the end of its output, which was saved"),
    })
}

async fn follow_task(globals: &GlobalArgs, options: &TaskFollowOptions) -> anyhow::Result<u8> {
    let mut signals = ExitSignals::new()?;
    let redactor = redactor(&config::load(globals)?)?;
    let (registry, task) = find_task(globals, globals.session.as_deref(), &options.task).await?;
    let filter = OutputFilter::new(&redactor, audience());
    let followed = on_own_thread(follow_to_its_end(registry.clone(), task.clone(), filter));
    tokio::select! {
        biased;
        number = signals.next() => return Ok(exit::SIGNAL + number),
        followed = followed => followed?,
    }
    let now = registry.condition(&task).await?;
    registry.journal.close().await;
    note(task_text(task.id(), now.status, now.exit_code));
    Ok(if now.status == TaskStatus::Completed { exit::DONE } else { exit::FAILED })
}

/// Prints the output of a task until it ends. If its files are gone, prints what the record of its end has.
async fn follow_to_its_end(
    registry: TaskRegistry,
    task: TaskEntry,
    mut filter: OutputFilter,
) -> anyhow::Result<()> {
    if let Ok(tasks) = registry.tasks()
        && let Ok(printed) = tasks.output(task.id())
    {
        let mut to = write;
        let mut reader = OutputReader::new(printed, 0, filter, &mut to)?;
        follow(tasks, task.id(), &mut reader).await?;
        return reader.finish();
    }
    let (kept, what) = recorded_output(&registry, &task).await?;
    note(format!("the output files of task {} are gone; {what}", short(task.id())));
    write_out(&filter.push(&kept))?;
    write_out(&filter.finish())
}

/// Runs work on a thread of its own: printing may block on a slow reader, and a signal must be heard meanwhile.
async fn on_own_thread(
    work: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> anyhow::Result<()> {
    let (tell, done) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || tell.send(runtime.block_on(work)));
    done.await.context("could not print the output")?
}

async fn kill(globals: &GlobalArgs, options: &TaskKillOptions) -> anyhow::Result<u8> {
    // Finds all tasks before the first is killed, so that a wrong name kills none.
    let [first, others @ ..] = &options.tasks[..] else { return Ok(exit::DONE) };
    let session = globals.session.as_deref();
    let (registry, first) = find_task(globals, session, first).await?;
    let mut wanted = vec![first];
    for name in others {
        wanted.push(registry.find(session, name).await?);
    }
    let mut forms: Vec<Value> = Vec::new();
    let mut code = exit::DONE;
    for mut task in wanted {
        let (was_running, had_left) = (task.is_running(), task.now.left > 0);
        let id = task.id();
        if let Ok(tasks) = registry.tasks().cloned()
            && let Err(error) = tokio::task::spawn_blocking(move || tasks.kill(id)).await?
        {
            note(format!("could not kill task {}: {error}", short(id)));
            code = exit::FAILED;
        }
        task.now = registry.condition(&task).await?;
        forms.push(task.as_json());
        if !options.json {
            line(describe_killed(&task, was_running, had_left))?;
        }
    }
    registry.journal.close().await;
    if options.json {
        json(&forms)?;
    }
    Ok(code)
}

/// The condition of a task after the user asked to kill it.
pub(crate) fn describe_killed(task: &TaskEntry, was_running: bool, had_left: bool) -> String {
    let before = match (was_running, had_left) {
        (true, _) => "",
        (false, true) => " (it had already ended; killed the processes it left)",
        (false, false) => " (it had already ended)",
    };
    format!("{}{before}: {}", task_text(task.id(), task.now.status, task.now.exit_code), task.description())
}

/// Who reads standard output.
fn audience() -> Audience {
    if std::io::stdout().is_terminal() { Audience::Person } else { Audience::Program }
}

fn write(chunk: OutputChunk) -> anyhow::Result<()> {
    match chunk {
        OutputChunk::Bytes(bytes) => write_out(&bytes),
        OutputChunk::Dropped(range) => {
            note(event_text::dropped(&range));
            Ok(())
        }
    }
}
