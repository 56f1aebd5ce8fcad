//! `task_output`: lists the session's tasks, reads what one has printed, or waits for one.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::output_read::{OutputRead, compile_grep};
use super::task_list::list_tasks;
use super::task_wait::TaskWaiter;
use super::{TaskSettings, find_task, subagent};
use crate::{PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool, schema_of};

const MAX_WAIT_SECONDS: u64 = 600;
/// Time for the call besides the wait itself.
const CALL_MARGIN: Duration = Duration::from_secs(30);

/// What task_output takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task_id: Option<String>,
    /// Byte to read from.
    offset: Option<u64>,
    /// Bytes to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Only lines that match this expression.
    #[schemars(length(max = 1000))]
    grep: Option<String>,
    /// Seconds to wait for news, up to 600.
    wait: Option<u64>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "task_output".into(),
        description:
            "Read the output of a background task or subagent. To wait until it ends or prints again, set \
                      `wait` instead of polling. Without `task_id`, list the tasks."
                .into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Without `offset`: head and tail; with `wait`, what is new since the last look. With `offset`: from there on, up to \
             `limit` or what the model may read at once; the message says how to read on. Offsets count printed bytes, also where \
             some were not kept.",
            "A read ends at the end of a line, if one is near, and never within a character.",
            "With `grep`, from `offset` on; a line is shown with at most 500 bytes.",
            "`wait` is at most 600; more is taken as 600. New output is told when the task is quiet for 2 s, or came after 2 s of \
             silence. One that prints all the time is waited for until the time is over.",
            "The list has all tasks that run, and the newest of those that have ended. In the sandbox, a command that left processes \
             running (`server &`) is listed as long as they run; task_kill ends them.",
            "Raw output is kept 24 hours after the end; then read_file with `output:` and the call's id has what was kept.",
        ],
        example: r#"{"task_id": "task_01jq4z5v8k2m9x7w3r6t1y0b4n", "wait": 120}"#,
    }
}

pub(super) fn tool(settings: TaskSettings) -> Arc<dyn Tool> {
    function_tool(definition(), settings, prepare)
}

#[allow(clippy::needless_pass_by_value, reason = "a function tool hands its arguments over")]
fn prepare(
    settings: &TaskSettings,
    arguments: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let Some(task_id) = &arguments.task_id else {
        if arguments.offset.is_some() || arguments.grep.is_some() || arguments.wait.is_some() {
            return Err(ToolOutcome::error(
                "task_output was not run: `offset`, `grep` and `wait` need a `task_id`; without any of them it lists the tasks",
            ));
        }
        return Ok(list_tasks(settings, call));
    };
    let mut read = OutputRead {
        settings: settings.clone(),
        task: find_task(call, task_id)?,
        output_limit: call.output_limit,
        offset: arguments.offset,
        limit: arguments.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
        matcher: arguments.grep.as_deref().map(compile_grep).transpose()?,
        notes: Vec::new(),
    };
    let Some(seconds) = arguments.wait.filter(|seconds| *seconds > 0) else {
        if read.task.started.session.is_some() {
            return Ok(PreparedCall::new(move |stop| subagent::read(read, None, stop)));
        }
        return Ok(PreparedCall::cancellable(move |cancel| read.run(cancel)));
    };
    if seconds > MAX_WAIT_SECONDS {
        read.notes.push(format!("`wait` was taken as {MAX_WAIT_SECONDS}, not {seconds}"));
    }
    let seconds = seconds.min(MAX_WAIT_SECONDS);
    let most = Duration::from_secs(seconds) + CALL_MARGIN;
    if read.task.started.session.is_some() {
        let wait = Some(Duration::from_secs(seconds));
        return Ok(PreparedCall::new(move |stop| subagent::read(read, wait, stop)).taking_up_to(most));
    }
    let waiter = TaskWaiter { read, seconds };
    Ok(PreparedCall::new(move |stop| waiter.run(stop)).taking_up_to(most))
}
