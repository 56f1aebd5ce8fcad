//! `/tasks`: the tasks of this conversation.

use longhaul_agent::Session;
use longhaul_agent::tasks::{
    Audience, OutputChunk, OutputFilter, OutputReader, OutputStream, TaskEntry, TaskOutput, TaskRegistry,
};

use super::{CommandContext, TurnPhase};
use crate::commands::status::running_tasks;
use crate::commands::tasks::{describe_killed, lookup, table};
use crate::event_printer::EventPrinter;
use crate::event_text;
use crate::one_shot::goes_on;
use crate::output::{format_number, sanitize, task_text};
use crate::short_id::short;
use crate::signals::SIGINT;
use crate::tui::chat::LineEvent;
use crate::tui::{Activity, ScreenUpdate};

/// The end of an output that `/tasks output` prints; `longhaul tasks output` has all of it.
const MAX_OUTPUT_BYTES: u64 = 16 << 10;
const USAGE: &str = "/tasks [list|output ID|kill ID|follow [ID]]";

pub(crate) async fn run(
    context: &mut CommandContext<'_>,
    arguments: &str,
    phase: TurnPhase,
) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    match (&words[..], phase) {
        ([] | ["list"], _) => list_tasks(context).await?,
        (["output", name], _) => show_output(context, name).await?,
        (["kill", name], _) => kill_task(context, name).await?,
        (["follow"], TurnPhase::BetweenTurns) => match only_running_task(context).await? {
            Ok(task) => follow_task(context, &task).await?,
            Err(why) => context.printer.note(why),
        },
        (["follow", name], TurnPhase::BetweenTurns) => {
            let task = find_task(context, name).await?;
            follow_task(context, &task).await?;
        }
        (["follow", name], TurnPhase::DuringTurn) => context.printer.note(format!(
            "/tasks follow works between turns; to see the output so far: /tasks output {name}"
        )),
        _ => context.printer.note(format!("usage: {USAGE}")),
    }
    Ok(())
}

async fn list_tasks(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let listed = match context.session.id() {
        Some(id) => context.registry.of_session(context.session.key(), id).await?,
        None => vec![],
    };
    match listed.is_empty() {
        true => context.printer.note("this session has no tasks"),
        false => context.printer.page(&table(&listed).join("\n")),
    }
    Ok(())
}

async fn find_task(context: &CommandContext<'_>, name: &str) -> anyhow::Result<TaskEntry> {
    lookup::find_task(context.registry, Some(context.session.key()), name).await
}

/// The task that runs, or why none is meant.
async fn only_running_task(context: &CommandContext<'_>) -> anyhow::Result<Result<TaskEntry, String>> {
    let mut running = match context.session.id() {
        Some(id) => running_tasks(context.registry, context.session.key(), id).await?,
        None => vec![],
    };
    Ok(match (running.pop(), running.len()) {
        (Some(task), 0) => Ok(task),
        (Some(_), _) => Err(format!("several tasks run; usage: {USAGE}")),
        (None, _) => Err("no task runs in this session".to_owned()),
    })
}

async fn show_output(context: &mut CommandContext<'_>, name: &str) -> anyhow::Result<()> {
    let task = find_task(context, name).await?;
    let output = context.registry.tasks()?.output(task.id())?;
    let printed = output.printed()?;
    let from = printed.saturating_sub(MAX_OUTPUT_BYTES);
    let id = short(task.id());
    context.printer.note(match from {
        0 => format!("task {id} has printed {} bytes", format_number(printed)),
        _ => format!(
            "the end of {} bytes from task {id}; for all of it: longhaul tasks output {id}",
            format_number(printed)
        ),
    });
    let filter = OutputFilter::new(context.runtime.redactor(), Audience::Person(sanitize));
    let printer = &mut *context.printer;
    OutputReader::new(TaskOutput::Kept(output), from, filter)?.read_through(printed, |chunk| {
        show_chunk(printer, chunk);
        anyhow::Ok(())
    })?;
    context.printer.close_line();
    Ok(())
}

async fn kill_task(context: &mut CommandContext<'_>, name: &str) -> anyhow::Result<()> {
    let mut task = find_task(context, name).await?;
    let (was_running, had_left) = (task.is_running(), task.now.left > 0);
    task.now = context.registry.kill(&task).await?;
    context.printer.note(describe_killed(&task, was_running, had_left));
    Ok(())
}

/// Prints the output of a task until it ends, or the user presses Esc or Ctrl-C or enters a line.
async fn follow_task(context: &mut CommandContext<'_>, task: &TaskEntry) -> anyhow::Result<()> {
    let output = context.registry.tasks()?.output(task.id())?;
    context.printer.note(match context.screen {
        Some(_) => "Esc or Ctrl-C stops following; the task goes on",
        None => "Ctrl-C stops following; the task goes on",
    });
    context.printer.tell(ScreenUpdate::Activity(Activity::Following));
    let filter = OutputFilter::new(context.runtime.redactor(), Audience::Person(sanitize));
    let CommandContext { printer, registry, signals, lines, typed, .. } = context;
    let reader = OutputReader::new(TaskOutput::Kept(output), 0, filter)?;
    let mut output = OutputStream::following(registry.tasks()?, task.id(), reader, u64::MAX);
    let follow = async {
        while let Some(chunks) = output.next().await? {
            chunks.into_iter().for_each(|chunk| show_chunk(printer, chunk));
        }
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        number = signals.next() => {
            // Any other signal suspends the chat; the prompt loop sees it next.
            *context.suspended = (number != SIGINT).then_some(number);
        }
        event = lines.next_during_turn() => match event {
            LineEvent::Escape | LineEvent::Interrupt | LineEvent::TakeBack => {}
            event => **typed = Some(event),
        },
        followed = follow => {
            followed?;
            let now = registry.condition(task).await?;
            context.printer.close_line();
            context.printer.note(task_text(task.id(), now.status, now.exit_code));
        }
    }
    context.printer.close_line();
    Ok(())
}

/// K6: notes the tasks that keep running after this process ends.
pub(crate) async fn note_running_tasks(
    session: &Session,
    registry: &TaskRegistry,
    printer: &mut EventPrinter,
) {
    let Some(id) = session.id() else { return };
    let tasks = running_tasks(registry, session.key(), id).await.unwrap_or_default();
    tasks.iter().for_each(|task| printer.note(goes_on(task)));
}

fn show_chunk(printer: &mut EventPrinter, chunk: OutputChunk) {
    match chunk {
        OutputChunk::Bytes(bytes) => printer.printed(&String::from_utf8_lossy(&bytes)),
        OutputChunk::Dropped(range) => printer.note(event_text::dropped(&range)),
    }
}
