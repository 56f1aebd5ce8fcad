//! K8: `task_kill`.

use std::sync::Arc;

use longhaul_keeper::LeftBehind;
use longhaul_protocol::{Effect, SessionId, TaskId, TaskNews};
use schemars::JsonSchema;
use serde::Deserialize;

use super::state::{TaskState, load_task_state};
use super::{TaskSettings, find_task, subagent};
use crate::blocking_run::run_to_completion;
use crate::output::{OutputReader, report_outcome, set_message};
use crate::{
    OutputLimit, PreparedCall, SessionTask, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool,
    schema_of,
};

/// What task_kill takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task_id: String,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "task_kill".into(),
        description: "Stop a task or subagent and all that it runs.".into(),
        effect: Effect::Idempotent,
        schema: schema_of::<Arguments>(),
        limits: &["It is asked to end, and forced after 2 s. The result comes when it is over."],
        example: r#"{"task_id": "task_01jq4z5v8k2m9x7w3r6t1y0b4n"}"#,
    }
}

pub(super) fn tool(settings: TaskSettings) -> Arc<dyn Tool> {
    function_tool(definition(), settings, prepare)
}

fn prepare(
    settings: &TaskSettings,
    arguments: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let (known, settings, output_limit) =
        (find_task(call, &arguments.task_id), settings.clone(), call.output_limit);
    let session = call.session;
    if let Some(task) = known.as_ref().ok().filter(|task| task.started.session.is_some()) {
        return Ok(subagent::kill(&settings, task.clone(), output_limit));
    }
    Ok(PreparedCall::new(move |_| async move {
        let kill = move || kill_task_or_leftover(&settings, known, &arguments.task_id, session, output_limit);
        run_to_completion(kill).await.unwrap_or_else(|trouble| trouble)
    }))
}

/// Kills a task. A command that ended in the foreground is no task, but processes that it left are killed like one.
fn kill_task_or_leftover(
    settings: &TaskSettings,
    known: Result<SessionTask, ToolOutcome>,
    task_id: &str,
    session: SessionId,
    output_limit: OutputLimit,
) -> Result<ToolOutcome, ToolOutcome> {
    let refused = match known {
        Ok(task) => return kill(settings, &task, output_limit),
        Err(refused) => refused,
    };
    let left = task_id.parse().ok().and_then(|id| left_behind(settings, id));
    let Some(left) = left.filter(|left| left.session == Some(session)) else { return Err(refused) };
    let finished = kill(settings, &left.started.into(), output_limit)?;
    // The leftover processes are no task, so there is no task progress to record.
    Ok(ToolOutcome { news: None, ..finished })
}

fn left_behind(settings: &TaskSettings, id: TaskId) -> Option<LeftBehind> {
    settings.tasks.left_behind(id).ok().flatten()
}

fn kill(
    settings: &TaskSettings,
    task: &SessionTask,
    output_limit: OutputLimit,
) -> Result<ToolOutcome, ToolOutcome> {
    let id = task.started.task_id;
    let before = load_task_state(&settings.tasks, task)?;
    if before.is_elsewhere {
        return Err(ToolOutcome::error(format!(
            "{id} was not ended: {}",
            before.message.unwrap_or_default()
        )));
    }
    // Asked after the state: a task that was running then can't have left anything before.
    let left = left_behind(settings, id);
    if before.has_ended() && left.is_none() {
        let said = format!("it had ended before ({})", before.status.word());
        return Ok(over(settings, task, &before, output_limit, said));
    }
    let failed = |error| ToolOutcome::error(format!("{id} could not be ended: {error}"));
    settings.tasks.kill(id).map_err(failed)?;
    if let Some(left) = left.filter(|_| before.has_ended()) {
        let said = format!("it had ended before ({}) and {left}, which is over now", before.status.word());
        return Ok(over(settings, task, &before, output_limit, said));
    }
    let state = load_task_state(&settings.tasks, task)?;
    if !state.has_ended() {
        return Err(ToolOutcome::error(format!("{id} could not be ended: it still runs")));
    }
    Ok(over(settings, task, &state, output_limit, "it is over, with everything that it started".to_owned()))
}

/// The result: how the task ended, and its last output.
fn over(
    settings: &TaskSettings,
    task: &SessionTask,
    state: &TaskState,
    output_limit: OutputLimit,
    said: String,
) -> ToolOutcome {
    let id = task.started.task_id;
    let told = task.told.map_or(0, |told| told.printed);
    let mut report = state.report(id);
    set_message(&mut report, [said].into_iter().chain(state.message.clone()));
    let read = settings.tasks.output(id).and_then(|output| {
        let end = output.printed()?;
        Ok((OutputReader::new(&output, &settings.redact).read_tail(end)?, end))
    });
    let (tail, printed) = read.unwrap_or_else(|_| (String::new(), told));
    let fits = report.with_output(&tail).len() <= output_limit.bytes;
    let finished = report_outcome(report, if fits { &tail } else { "" });
    let news = TaskNews { task_id: id, printed, ended: true };
    ToolOutcome { news: Some(news), ..finished }
}
