//! `task_list`.

use std::sync::Arc;

use longhaul_keeper::LeftBehind;
use longhaul_protocol::{Effect, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskSettings;
use super::state::load_task_state;
use crate::{
    OutputLimit, PreparedCall, SessionTask, Tool, ToolDefinition, ToolInvocation, ToolOutcome, display,
    function_tool, schema_of,
};

/// Bytes of a command or a description to show.
const MAX_TEXT_BYTES: usize = 200;

/// What task_list takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[derive(Serialize)]
struct TaskRow {
    task_id: TaskId,
    status: &'static str,
    description: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Only of an ended task: while it runs, the value would change each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct TaskTable {
    tasks: Vec<TaskRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "task_list",
        description: "Lists this session's tasks, the oldest first.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "All that run, and the newest of those that have ended.",
            "In the sandbox, a command that left processes running (`server &`) is listed as long as they run; task_kill ends them.",
        ],
        example: "{}",
    }
}

pub(super) fn tool(settings: TaskSettings) -> Arc<dyn Tool> {
    function_tool(definition(), settings, prepare)
}

fn prepare(
    settings: &TaskSettings,
    _: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let (settings, known, output_limit) = (settings.clone(), call.tasks.clone(), call.output_limit);
    let session = call.session;
    Ok(PreparedCall::cancellable(move |_| {
        let mut left = settings.tasks.all_left_behind();
        left.retain(|left| left.session == Some(session));
        let is_known = |id| known.iter().any(|task| task.started.task_id == id);
        let others = left.iter().filter(|left| !is_known(left.started.task_id));
        let others: Vec<SessionTask> = others.map(|left| left.started.clone().into()).collect();
        let rows = known.iter().chain(&others).map(|task| row(&settings, task, &left)).collect();
        ToolOutcome::ok(within(output_limit, TaskTable { tasks: rows, message: None }))
    }))
}

fn row(settings: &TaskSettings, known: &SessionTask, left: &[LeftBehind]) -> TaskRow {
    let started = &known.started;
    let short = |text: &str| display::truncate_with_ellipsis(&(settings.redact)(text), MAX_TEXT_BYTES);
    let printed = settings.tasks.output(started.task_id).and_then(|output| output.printed()).ok();
    let row = TaskRow {
        task_id: started.task_id,
        status: "unknown",
        description: short(&started.description),
        command: short(&started.command),
        started_at: started.started_at.map(|at| at.to_string()),
        exit_code: None,
        duration_ms: None,
        printed,
        message: None,
    };
    let left = left.iter().find(|left| left.started.task_id == started.task_id).map(ToString::to_string);
    match load_task_state(&settings.tasks, known) {
        Ok(state) => TaskRow {
            status: state.status.word(),
            exit_code: state.exit_code,
            duration_ms: state.duration_ms.filter(|_| state.has_ended()),
            message: left.or(state.message).or_else(|| {
                known.is_waiting.then(|| "it seems to wait for input, which nobody can give it".to_owned())
            }),
            ..row
        },
        Err(trouble) => TaskRow { message: Some(trouble.content), ..row },
    }
}

/// Encodes the table within `output_limit`. If there are too many tasks, the oldest are left out.
fn within(output_limit: OutputLimit, mut list: TaskTable) -> String {
    let encode =
        |list: &TaskTable| serde_json::to_string(list).expect("it has string keys and no fallible parts");
    let (mut content, mut left_out) = (encode(&list), 0);
    while content.len() > output_limit.bytes && !list.tasks.is_empty() {
        list.tasks.remove(0);
        left_out += 1;
        list.message = Some(format!("{left_out} older tasks are not shown"));
        content = encode(&list);
    }
    content
}
