//! `longhaul tasks`: lists, follows and kills background commands, from any process, also while no runtime runs.
//!
//! `lookup` finds the task that the user names; everything else is in `longhaul_agent::tasks`.

pub(crate) mod lookup;

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::Context;
use longhaul_agent::tasks::{
    Audience, OutputChunk, OutputFilter, OutputReader, OutputStream, TaskEntry, TaskOutput, TaskRegistry,
    TaskReport,
};
use longhaul_agent::{now, redactor};
use longhaul_journal::Error;
use longhaul_protocol::{PrintablePath, TaskStatus};
use lookup::{description, select_tasks, status_word};

use crate::args::{
    GlobalArgs, TaskFollowOptions, TaskKillOptions, TaskListOptions, TaskOutputOptions, TasksCommand,
};
use crate::output::{format_duration, format_recent_moment, json, line, note, sanitize, task_text, truncate};
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
            let task = lookup::find_task(&registry, session, name).await?;
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
            let found = select_tasks(&registry, session.as_deref()).await?;
            registry.journal().close().await;
            found
        }
        (None, Some(key)) => return Err(Error::NoSuchSession { key: key.clone() }.into()),
        (None, None) => (vec![], vec![]),
    };
    unreadable.iter().for_each(note);
    if options.json {
        json(&listed.iter().map(TaskReport::from).collect::<Vec<_>>())?;
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
        let (session, what) = (truncate(&task.session, width), description(&task.started));
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
    let printed = open_output(&registry, &task).await?;
    OutputReader::new(printed, options.offset, filter)?.read_through(end, write)?;
    registry.journal().close().await;
    Ok(exit::DONE)
}

/// The output of a task. Notes if its files are gone, and what is shown instead.
async fn open_output(registry: &TaskRegistry, task: &TaskEntry) -> anyhow::Result<TaskOutput> {
    let output = registry.output(task).await?;
    let instead = match &output {
        TaskOutput::Kept(_) => return Ok(output),
        TaskOutput::Recorded(_) => "showing what was saved",
        TaskOutput::RecordedEnd(_) => "showing the end of its output, which was saved",
        TaskOutput::Gone => "nothing of its output was saved",
    };
    note(format!("the output files of task {} are gone; {instead}", short(task.id())));
    Ok(output)
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
    registry.journal().close().await;
    note(task_text(task.id(), now.status, now.exit_code));
    Ok(if now.status == TaskStatus::Completed { exit::DONE } else { exit::FAILED })
}

/// Prints the output of a task until it ends. If its files are gone, prints what the record of its end has.
async fn follow_to_its_end(
    registry: TaskRegistry,
    task: TaskEntry,
    filter: OutputFilter,
) -> anyhow::Result<()> {
    let output = open_output(&registry, &task).await?;
    let is_kept = matches!(output, TaskOutput::Kept(_));
    let reader = OutputReader::new(output, 0, filter)?;
    if !is_kept {
        return reader.read_through(u64::MAX, write);
    }
    let mut output = OutputStream::following(registry.tasks()?, task.id(), reader, u64::MAX);
    while let Some(chunks) = output.next().await? {
        chunks.into_iter().try_for_each(write)?;
    }
    Ok(())
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
        wanted.push(lookup::find_task(&registry, session, name).await?);
    }
    let mut forms: Vec<TaskReport> = Vec::new();
    let mut code = exit::DONE;
    for mut task in wanted {
        let (was_running, had_left) = (task.is_running(), task.now.left > 0);
        match registry.kill(&task).await {
            Ok(now) => task.now = now,
            Err(error) => {
                note(format!("could not kill task {}: {error}", short(task.id())));
                code = exit::FAILED;
                task.now = registry.condition(&task).await?;
            }
        }
        forms.push(TaskReport::from(&task));
        if !options.json {
            line(describe_killed(&task, was_running, had_left))?;
        }
    }
    registry.journal().close().await;
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
    format!(
        "{}{before}: {}",
        task_text(task.id(), task.now.status, task.now.exit_code),
        description(&task.started)
    )
}

/// Who reads standard output.
fn audience() -> Audience {
    if std::io::stdout().is_terminal() { Audience::Person(sanitize) } else { Audience::Program }
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

/// Writes to standard output and flushes.
fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
