//! The messages of protocol version 2, made from those of version 1.
//!
//! | version 1 | version 2 |
//! | --- | --- |
//! | a prompt is answered when its turn ends | it is answered when it is on record, with the id of its message; `state_update` says the rest |
//! | `tool_call`, then `tool_call_update` | `tool_call_update` alone |
//! | a diff has the text before and after | a diff names what changed; the text is a block beside it |
//! | `plan`, `current_mode_update` | `plan_update`, and the mode is a config option |
//! | `session/load`, `session/resume` | `session/resume`, with `replayFrom` for the past |

use serde_json::{Map, Value, json};

use super::reply::{ConfigOption, OpenedSession};
use super::update::{PermissionOption, SessionUpdate, ToolCall, ToolContent};

/// Sessions have one plan: the todo list.
const PLAN_ID: &str = "todo";

/// The answer to `initialize`.
pub(crate) fn initialize_reply() -> Value {
    json!({
        "protocolVersion": 2,
        "info": {"name": "longhaul", "title": "Longhaul", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {
            "session": {"prompt": {"image": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}}},
        },
        "authMethods": [],
    })
}

/// The answer to `session/new` and `session/resume`.
pub(crate) fn opened_session(opened: &OpenedSession, commands: &[Value]) -> Value {
    let mut reply = Map::new();
    reply.extend(opened.session_id.as_ref().map(|id| ("sessionId".to_owned(), json!(id))));
    reply.insert("configOptions".to_owned(), config_options(&opened.config_options));
    reply.insert("availableCommands".to_owned(), commands.iter().map(command).collect());
    reply.extend(opened.meta.as_ref().map(|meta| ("_meta".to_owned(), json!(meta))));
    Value::Object(reply)
}

pub(crate) fn config_options(options: &[ConfigOption]) -> Value {
    let option = |option: &ConfigOption| {
        let mut option = json!(option);
        let id = option.as_object_mut().and_then(|fields| fields.remove("id"));
        option["configId"] = id.unwrap_or_default();
        option
    };
    options.iter().map(option).collect()
}

/// An update of a session. `None` for one that version 2 does not have.
pub(crate) fn update(update: &SessionUpdate) -> Option<Value> {
    Some(match update {
        SessionUpdate::CurrentModeUpdate { .. } => return None,
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
            let mut call = tool_call(call);
            call["sessionUpdate"] = json!("tool_call_update");
            call
        }
        SessionUpdate::Plan { entries } => {
            let plan = json!({"type": "items", "planId": PLAN_ID, "entries": entries});
            json!({"sessionUpdate": "plan_update", "plan": plan})
        }
        SessionUpdate::AvailableCommandsUpdate { available_commands } => {
            let commands: Value = available_commands.iter().map(command).collect();
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        }
        SessionUpdate::ConfigOptionUpdate { config_options: options } => {
            json!({"sessionUpdate": "config_option_update", "configOptions": config_options(options)})
        }
        SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::AgentMessageChunk(_)
        | SessionUpdate::AgentThoughtChunk(_)
        | SessionUpdate::SessionInfoUpdate { .. }
        | SessionUpdate::UsageUpdate { .. }
        | SessionUpdate::Notice { .. }
        | SessionUpdate::CompactionUpdate { .. } => json!(update),
    })
}

/// The parameters of `session/request_permission`.
pub(crate) fn permission_request(
    session: &str,
    title: &str,
    call: &ToolCall,
    options: &[PermissionOption],
) -> Value {
    let subject = json!({"type": "tool_call", "toolCall": tool_call(call)});
    json!({"sessionId": session, "title": title, "subject": subject, "options": options})
}

fn tool_call(call: &ToolCall) -> Value {
    let mut shown = json!(call);
    if !call.content.is_empty() {
        shown["content"] = call.content.iter().flat_map(content).collect();
    }
    shown
}

fn content(content: &ToolContent) -> Vec<Value> {
    match content {
        ToolContent::Content { .. } => vec![json!(content)],
        ToolContent::Diff { path, old_text, new_text } => {
            let operation = if old_text.is_none() { "add" } else { "modify" };
            let removed = old_text.iter().flat_map(|text| text.lines()).map(|line| format!("-{line}\n"));
            let added = new_text.lines().map(|line| format!("+{line}\n"));
            let lines: String = removed.chain(added).collect();
            let fence = "`".repeat(longest_fence(&lines) + 1);
            let text = ToolContent::text(format!("{fence}diff\n{lines}{fence}"));
            vec![json!({"type": "diff", "changes": [{"operation": operation, "path": path}]}), json!(text)]
        }
    }
}

/// The most backticks in a row, at least two, so that a fence has three.
fn longest_fence(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0).max(2)
}

fn command(command: &Value) -> Value {
    let mut command = command.clone();
    command["type"] = json!("command");
    if let Some(input) = command.get_mut("input") {
        input["type"] = json!("text");
    }
    command
}

#[cfg(test)]
#[path = "version2_tests.rs"]
mod tests;
