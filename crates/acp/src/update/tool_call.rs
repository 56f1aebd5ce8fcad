//! Tool calls as an editor shows them.

use std::path::Path;

use longhaul_protocol::{Effect, TodoStatus};
use longhaul_transcript::{Call, call_output, call_text, diff_hunks, todo_of_call, truncate};
use serde_json::Value;

use crate::wire::update::{Location, PlanEntry, ToolCall, ToolContent, ToolKind, ToolStatus};

const MAX_TITLE_CHARS: usize = 200;
/// The shortest fence around an output.
const MIN_FENCE: usize = 3;
/// Arguments that name a file.
const PATH_ARGUMENTS: [&str; 3] = ["path", "from", "to"];

/// A call that is about to run, or that waits for a permission. `folder` is the work folder.
pub(crate) fn started_call(call: &Call, folder: &Path, status: ToolStatus) -> ToolCall {
    let arguments = serde_json::from_str::<Value>(&call.arguments).ok().filter(Value::is_object);
    ToolCall {
        tool_call_id: call.call.to_string(),
        title: Some(call_text(call)),
        name: Some(truncate(&call.name, MAX_TITLE_CHARS)),
        kind: Some(kind_of(&call.name, call.effect)),
        status: Some(status),
        locations: arguments.as_ref().map(|arguments| locations(arguments, folder)).unwrap_or_default(),
        content: vec![],
        raw_input: arguments,
    }
}

/// What changes when a call has ended.
pub(crate) fn finished_call(call: &Call, folder: &Path) -> ToolCall {
    let result = call.result.as_ref();
    let is_error = result.is_none_or(|result| result.is_error);
    let status = if is_error { ToolStatus::Failed } else { ToolStatus::Completed };
    let diff = result.and_then(|result| result.diff.as_deref()).filter(|_| !is_error);
    let (mut content, mut changed) = diff.map(|diff| diff_content(diff, folder)).unwrap_or_default();
    let output = call_output(call);
    if content.is_empty() && !output.trim().is_empty() {
        content.push(ToolContent::text(fenced(&output)));
    }
    // Only the diff has the line in the file.
    changed.dedup_by(|later, earlier| later.path == earlier.path);
    ToolCall {
        tool_call_id: call.call.to_string(),
        status: Some(status),
        content,
        locations: changed,
        ..ToolCall::default()
    }
}

/// The changes of a unified diff, and where they are.
pub(crate) fn diff_content(diff: &str, folder: &Path) -> (Vec<ToolContent>, Vec<Location>) {
    let hunks = diff_hunks(diff);
    let locations = hunks.iter().map(|hunk| Location {
        path: absolute(&hunk.path, folder),
        line: u32::try_from(hunk.line).ok().filter(|line| *line > 0),
    });
    let locations = locations.collect();
    let content = hunks.into_iter().map(|hunk| ToolContent::Diff {
        path: absolute(&hunk.path, folder),
        old_text: hunk.old,
        new_text: hunk.new,
    });
    (content.collect(), locations)
}

/// The plan that a call of `todo` sets.
pub(crate) fn plan_of(call: &Call) -> Option<Vec<PlanEntry>> {
    let is_set = call.result.as_ref().is_some_and(|result| !result.is_error);
    let list = todo_of_call(&call.name, &call.arguments).filter(|_| is_set)?;
    let entry = |todo: longhaul_protocol::Todo| PlanEntry {
        content: todo.text,
        priority: "medium",
        status: match todo.status {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in_progress",
            TodoStatus::Done => "completed",
        },
    };
    Some(list.into_iter().map(entry).collect())
}

/// A text in a fence that it can't close: editors render Markdown, and the output of a tool is not Markdown.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(MIN_FENCE));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

fn kind_of(name: &str, effect: Option<Effect>) -> ToolKind {
    match name {
        "read_file" | "recall_read" | "task_output" => ToolKind::Read,
        "write_file" | "edit_file" | "patch" => ToolKind::Edit,
        "delete_file" => ToolKind::Delete,
        "move_file" => ToolKind::Move,
        "list_files" | "find_files" | "search_text" | "recall" | "tools_find" => ToolKind::Search,
        "exec" | "task_kill" => ToolKind::Execute,
        "todo" | "memory_note" | "agent" => ToolKind::Think,
        "web_fetch" | "web_search" => ToolKind::Fetch,
        _ => match effect {
            Some(Effect::Read) => ToolKind::Read,
            Some(Effect::CheckedWrite) => ToolKind::Edit,
            Some(Effect::Command) => ToolKind::Execute,
            Some(Effect::Idempotent | Effect::Unknown) | None => ToolKind::Other,
        },
    }
}

fn locations(arguments: &Value, folder: &Path) -> Vec<Location> {
    let line =
        arguments["offset"].as_u64().and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
    let paths = PATH_ARGUMENTS.iter().filter_map(|name| arguments[*name].as_str());
    paths.map(|path| Location { path: absolute(path, folder), line }).collect()
}

fn absolute(path: &str, folder: &Path) -> String {
    folder.join(path).display().to_string()
}

#[cfg(test)]
#[path = "tool_call_tests.rs"]
mod tests;
