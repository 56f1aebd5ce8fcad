//! The list of a session's tasks, for `task_output` without a `task_id`.

use longhaul_keeper::LeftBehind;
use longhaul_protocol::{CommandReport, SessionId};

use super::TaskSettings;
use super::state::load_task_state;
use super::subagent::with_subagents;
use crate::blocking_run::run_cancellable;
use crate::output::report_outcome;
use crate::{OutputLimit, PreparedCall, SessionTask, ToolInvocation, ToolOutcome, display};

/// Bytes of a command or a description to show.
const MAX_TEXT_BYTES: usize = 200;
const WAITS_FOR_INPUT: &str = "it seems to wait for input, which nobody can give it";

/// Lists the tasks of a call's session, the oldest first.
pub(super) fn list_tasks(settings: &TaskSettings, call: &ToolInvocation) -> PreparedCall {
    let (tasks, output_limit, session) = (call.tasks.to_vec(), call.output_limit, call.session);
    let settings = settings.clone();
    PreparedCall::new(move |stop| async move {
        let known = with_subagents(&*settings.subagents, tasks).await;
        run_cancellable(stop, move |_| list_known_tasks(&settings, &known, output_limit, session)).await
    })
}

/// The list of these tasks and of the processes that other commands of the session left. Blocks: it reads files.
fn list_known_tasks(
    settings: &TaskSettings,
    known: &[SessionTask],
    output_limit: OutputLimit,
    session: SessionId,
) -> ToolOutcome {
    let mut left = settings.tasks.all_left_behind();
    left.retain(|left| left.session == Some(session));
    let is_known = |id| known.iter().any(|task| task.started.task_id == id);
    let others = left.iter().filter(|left| !is_known(left.started.task_id));
    let others: Vec<SessionTask> = others.map(|left| left.started.clone().into()).collect();
    let entries = known.iter().chain(&others).map(|task| entry(settings, task, &left)).collect();
    within(output_limit, entries)
}

/// A task: its id and state, and what it is below that.
fn entry(settings: &TaskSettings, known: &SessionTask, left: &[LeftBehind]) -> String {
    let started = &known.started;
    let short = |text: &str| {
        let line: Vec<&str> = text.split_whitespace().collect();
        display::truncate_with_ellipsis(&(settings.redact)(&line.join(" ")), MAX_TEXT_BYTES)
    };
    let left = left.iter().find(|left| left.started.task_id == started.task_id).map(ToString::to_string);
    let (mut facts, message) = match load_task_state(&settings.tasks, known) {
        Ok(state) => {
            let mut facts = vec![state.status.word().to_owned()];
            facts.extend(state.exit_code.map(|code| format!("exit_code {code}")));
            // Only of an ended task: while it runs, the value would change each time.
            let duration = state.duration_ms.filter(|_| state.has_ended());
            facts.extend(duration.map(|duration| format!("duration_ms {duration}")));
            let waits = || known.is_waiting.then(|| WAITS_FOR_INPUT.to_owned());
            (facts, left.or(state.message).or_else(waits))
        }
        Err(trouble) => (vec!["unknown".to_owned()], Some(trouble.content)),
    };
    facts.extend(started.started_at.map(|at| format!("started {at}")));
    let printed = settings.tasks.output(started.task_id).and_then(|output| output.printed()).ok();
    facts.extend(printed.map(|bytes| format!("{bytes} bytes printed")));
    let mut lines = vec![format!("{}: {}", started.task_id, facts.join(", "))];
    let (description, command) = (short(&started.description), short(&started.command));
    if description != command {
        lines.push(format!("  {description}"));
    }
    lines.push(match started.session {
        Some(_) => format!("  {command}"),
        None => format!("  $ {command}"),
    });
    lines.extend(message.map(|message| format!("  {}", short(&message))));
    lines.join("\n") + "\n"
}

/// The list within `output_limit`. If there are too many tasks, the oldest are left out.
fn within(output_limit: OutputLimit, mut entries: Vec<String>) -> ToolOutcome {
    let mut left_out = 0;
    loop {
        let count = match entries.len() {
            0 => "this session has no tasks".to_owned(),
            1 => "1 task".to_owned(),
            count => format!("{count} tasks, the oldest first"),
        };
        let message = match left_out {
            0 => count,
            left_out => format!("{count}; {left_out} older tasks are not shown"),
        };
        let report = CommandReport { message: Some(message), ..CommandReport::default() };
        let finished = report_outcome(report, &entries.concat());
        let fits = finished.content.len() <= output_limit.bytes
            && finished.content.lines().count() <= output_limit.lines;
        if fits || entries.is_empty() {
            return finished;
        }
        entries.remove(0);
        left_out += 1;
    }
}
