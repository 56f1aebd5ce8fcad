//! `longhaul tasks`: seeing and steering commands that go on in the background, from any process, and with no runtime alive.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `board` | which tasks there are, by the records, and how they are, by their keepers |
//! | `output_reader` | from a task's output to pieces of it, now and while more comes |
//! | `output_filter` | from pieces to what may be shown |

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
use crate::output::{json, line, note, shortened};
use crate::short_id::short;
use crate::signals::ExitSignals;
use crate::{BadUsage, config, event_text, exit};

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<TasksCommand>,
    options: TaskListOptions,
) -> anyhow::Result<u8> {
    match command.unwrap_or(TasksCommand::List(options)) {
        TasksCommand::List(options) => list(globals, &options).await,
        TasksCommand::Output(options) => output(globals, &options).await,
        TasksCommand::Follow(options) => follow_one(globals, &options).await,
        TasksCommand::Kill(options) => kill(globals, &options).await,
    }
}

/// The tasks of the home, if there is one.
async fn board(globals: &GlobalArgs) -> anyhow::Result<Option<TaskRegistry>> {
    let (Some(home), Some(journal)) = (globals.existing_home()?, globals.open_journal().await?) else {
        return Ok(None);
    };
    Ok(Some(TaskRegistry::new(Arc::new(journal), home.folder())?))
}

/// A task that somebody has named.
async fn one(
    globals: &GlobalArgs,
    session: Option<&str>,
    name: &str,
) -> anyhow::Result<(TaskRegistry, TaskEntry)> {
    match (board(globals).await?, session) {
        (Some(board), session) => {
            let task = board.named(session, name).await?;
            Ok((board, task))
        }
        (None, Some(key)) => Err(Error::NoSuchSession { key: key.to_owned() }.into()),
        (None, None) => Err(BadUsage(format!(
            "there is no task {name:?}: there are no sessions in {} yet",
            globals.home_dir()?.printable()
        ))
        .into()),
    }
}

async fn list(globals: &GlobalArgs, options: &TaskListOptions) -> anyhow::Result<u8> {
    let (listed, unreadable) = match (board(globals).await?, &options.session) {
        (Some(board), session) => {
            let found = board.meant(session.as_deref()).await?;
            board.journal.close().await;
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

/// For people: one task a line, under a heading.
pub(crate) fn table(listed: &[TaskEntry]) -> Vec<String> {
    let longest = listed.iter().map(|task| task.session.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(7, 40);
    let mut lines = vec![format!(
        "{:<6}  {:<9}  {:<24}  {:<11}  {:>4}  {:<width$}  WHAT",
        "TASK", "STATUS", "SINCE", "FOR", "EXIT", "SESSION"
    )];
    for task in listed {
        let now = &task.now;
        let since = task.started.started_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let lasted = now.duration_ms.map_or_else(|| "-".to_owned(), event_text::duration);
        let code = now.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        let (session, what) = (shortened(&task.session, width), task.what());
        let message = now.message.as_ref().map(|message| format!("  ({})", shortened(message, 200)));
        lines.push(format!(
            "{:<6}  {:<9}  {since:<24}  {lasted:<11}  {code:>4}  {session:<width$}  {what}{}",
            short(task.id()),
            status_word(now.status),
            message.unwrap_or_default(),
        ));
    }
    lines
}

async fn output(globals: &GlobalArgs, options: &TaskOutputOptions) -> anyhow::Result<u8> {
    let redactor = redactor(&config::load(globals)?)?;
    let (board, task) = one(globals, options.session.as_deref(), &options.task).await?;
    let shown = OutputFilter::new(&redactor, reader());
    let end = options.limit.map_or(u64::MAX, |limit| options.offset.saturating_add(limit));
    match board.tasks().and_then(|tasks| Ok(tasks.output(task.id())?)) {
        Ok(printed) => {
            let mut to = write;
            let mut reading = OutputReader::new(printed, options.offset, shown, &mut to)?;
            reading.read_until(end)?;
            reading.finish()?;
        }
        Err(_) => {
            let (kept, what) = kept(&board, &task).await?;
            note(format!("the files of task {} are gone; its record has {what}", short(task.id())));
            let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(kept.len());
            let (from, to) = (index(options.offset), index(end));
            let mut shown = shown;
            shown.lead_in(&kept[..from]);
            write_out(&shown.push(&kept[from..to]))?;
            write_out(&shown.finish_before(&kept[to..]))?;
        }
    }
    board.journal.close().await;
    Ok(exit::DONE)
}

/// What the record of a task's end keeps of its output, and what that is.
async fn kept(board: &TaskRegistry, task: &TaskEntry) -> anyhow::Result<(Vec<u8>, &'static str)> {
    let Some(ended) = &task.record else { return Ok((vec![], "nothing of its output")) };
    Ok(match &ended.output {
        Some(blob) => (board.journal.blob(blob.hash).await?, "this of its output"),
        None => (ended.tail.clone().into_bytes(), "the last of its output"),
    })
}

async fn follow_one(globals: &GlobalArgs, options: &TaskFollowOptions) -> anyhow::Result<u8> {
    let mut signals = ExitSignals::new()?;
    let redactor = redactor(&config::load(globals)?)?;
    let (board, task) = one(globals, options.session.as_deref(), &options.task).await?;
    let shown = OutputFilter::new(&redactor, reader());
    let followed = beside(follow_to_its_end(board.clone(), task.clone(), shown));
    tokio::select! {
        biased;
        number = signals.next() => return Ok(exit::SIGNAL + number),
        followed = followed => followed?,
    }
    let now = board.now(&task).await?;
    board.journal.close().await;
    note(event_text::task(task.id(), now.status, now.exit_code));
    Ok(if now.status == TaskStatus::Completed { exit::DONE } else { exit::FAILED })
}

/// Shows what a task prints until it is over; of one whose files are gone, what the record of its end has.
async fn follow_to_its_end(
    board: TaskRegistry,
    task: TaskEntry,
    mut shown: OutputFilter,
) -> anyhow::Result<()> {
    if let Ok(tasks) = board.tasks()
        && let Ok(printed) = tasks.output(task.id())
    {
        let mut to = write;
        let mut reading = OutputReader::new(printed, 0, shown, &mut to)?;
        follow(tasks, task.id(), &mut reading).await?;
        return reading.finish();
    }
    let (kept, what) = kept(&board, &task).await?;
    note(format!("the files of task {} are gone; its record has {what}", short(task.id())));
    write_out(&shown.push(&kept))?;
    write_out(&shown.finish())
}

/// Does something in a thread of its own, because it may wait for whoever reads: a signal must be heard meanwhile.
async fn beside(work: impl Future<Output = anyhow::Result<()>> + Send + 'static) -> anyhow::Result<()> {
    let (tell, done) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || tell.send(runtime.block_on(work)));
    done.await.context("what was printed could not be shown")?
}

async fn kill(globals: &GlobalArgs, options: &TaskKillOptions) -> anyhow::Result<u8> {
    // All of them are found before the first is ended: a wrong name ends nothing.
    let [first, others @ ..] = &options.tasks[..] else { return Ok(exit::DONE) };
    let session = options.session.as_deref();
    let (board, first) = one(globals, session, first).await?;
    let mut wanted = vec![first];
    for name in others {
        wanted.push(board.named(session, name).await?);
    }
    let mut forms: Vec<Value> = Vec::new();
    let mut code = exit::DONE;
    for mut task in wanted {
        let (was_running, had_left) = (task.is_running(), task.now.left > 0);
        let id = task.id();
        if let Ok(tasks) = board.tasks().cloned()
            && let Err(error) = tokio::task::spawn_blocking(move || tasks.kill(id)).await?
        {
            note(format!("task {} could not be ended: {error}", short(id)));
            code = exit::FAILED;
        }
        task.now = board.now(&task).await?;
        forms.push(task.as_json());
        if !options.json {
            line(ended(&task, was_running, had_left))?;
        }
    }
    board.journal.close().await;
    if options.json {
        json(&forms)?;
    }
    Ok(code)
}

/// What became of a task that somebody wanted to end.
pub(crate) fn ended(task: &TaskEntry, was_running: bool, had_left: bool) -> String {
    let before = match (was_running, had_left) {
        (true, _) => "",
        (false, true) => " before, and what it left running is over now",
        (false, false) => ", before anybody asked",
    };
    format!("{}{before}: {}", event_text::task(task.id(), task.now.status, task.now.exit_code), task.what())
}

/// Who reads standard output.
fn reader() -> Audience {
    if std::io::stdout().is_terminal() { Audience::Person } else { Audience::Program }
}

fn write(piece: OutputChunk) -> anyhow::Result<()> {
    match piece {
        OutputChunk::Bytes(bytes) => write_out(&bytes),
        OutputChunk::Dropped(range) => {
            note(event_text::dropped(&range));
            Ok(())
        }
    }
}
