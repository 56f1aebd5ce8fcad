//! A tool call as HTML: the terminal's row as summary, and below it arguments, changes and output.

use longhaul_protocol::{Todo, TodoStatus};
use serde_json::Value;

use super::diff::push_diff;
use super::fragment::{MAX_OUTPUT_BYTES, escape, push, push_line, push_pre, push_row, time_element};
use crate::block::{Block, BlockState, Call, CallResult};
use crate::call::command_result::CommandResult;
use crate::call::{
    call_output, call_summary_line, is_call_ok, is_edit, list_edits, parse_arguments, plain_value,
    running_call_line, text_field,
};
use crate::diff::diff;
use crate::text::format_count;
use crate::todo::todo_of_call;

/// Shorter values stand beside their name.
const MAX_SHORT_VALUE: usize = 200;

pub(super) fn push_call(html: &mut String, block: &Block, call: &Call) {
    let todo = todo_of_call(&call.name, &call.arguments);
    let class = match (block.state, &call.result) {
        (BlockState::Running, _) => "running",
        (_, Some(_)) if is_call_ok(call) => "ok",
        _ => "failed",
    };
    let open = if todo.is_some() { " open=\"open\"" } else { "" };
    push(html, format_args!("<details class=\"call {class}\"{open}>\n<summary dir=\"auto\">"));
    push_summary(html, block, call);
    html.push_str("</summary>\n");
    push(html, format_args!("<p class=\"meta\">{}</p>\n", time_element(block.started_at)));
    match &todo {
        Some(list) => push_todo(html, list),
        None => push_arguments(html, call),
    }
    if let Some(result) = &call.result {
        push_result(html, call, result);
    }
    html.push_str("</details>\n");
}

fn push_summary(html: &mut String, block: &Block, call: &Call) {
    let word = match (block.state, &call.result) {
        (_, Some(_)) => {
            let took = block.elapsed(block.ended_at.unwrap_or(block.started_at));
            return push_row(html, &call_summary_line(call, took, u16::MAX));
        }
        (BlockState::Running, None) => "running",
        (_, None) => "interrupted",
    };
    push_row(html, &running_call_line(call, u16::MAX));
    push(html, format_args!("  <span class=\"state\">{word}</span>"));
}

fn push_arguments(html: &mut String, call: &Call) {
    let has_diff = call.result.as_ref().is_some_and(|result| result.diff.is_some());
    let arguments = parse_arguments(&call.arguments).filter(|_| call.arguments.len() <= MAX_OUTPUT_BYTES);
    match arguments {
        None if call.arguments.trim().is_empty() => {}
        None => push_group(html, "arguments", "Arguments", |html| push_pre(html, "", &call.arguments)),
        Some(arguments) if call.name == "exec" => push_group(html, "arguments", "Command", |html| {
            push_pre(html, "command", text_field(&arguments, "command").unwrap_or_default());
            // The summary has the description.
            push_fields(html, &arguments, &["command", "description"]);
        }),
        // The changes have everything.
        Some(_) if is_edit(&call.name) && has_diff => {}
        Some(arguments) if is_edit(&call.name) => push_group(html, "arguments", "Arguments", |html| {
            push_fields(html, &arguments, &["edits", "content"]);
            push_edits(html, call, &arguments);
        }),
        Some(arguments) => push_group(html, "arguments", "Arguments", |html| {
            push_fields(html, &arguments, &[]);
        }),
    }
}

/// The changes of an edit, where only its arguments tell them.
fn push_edits(html: &mut String, call: &Call, arguments: &Value) {
    for (old, new) in list_edits(&call.name, arguments) {
        let rows = diff(old, new, None, u16::MAX);
        let text = rows.iter().map(|row| format!("{row}\n")).collect::<String>();
        push_pre(html, "diff", &text);
    }
}

fn push_result(html: &mut String, call: &Call, result: &CallResult) {
    if let Some(diff) = &result.diff {
        push_diff(html, diff);
    }
    let is_done_edit = is_edit(&call.name) && !result.is_error;
    let report = CommandResult::parse(&result.content).filter(|_| !result.is_error);
    let output = call_output(call);
    let is_todo = call.name == "todo" && !result.is_error;
    if is_todo || ((is_done_edit || output.trim().is_empty()) && report.is_none()) {
        return;
    }
    let label = if result.is_error { "Error" } else { "Output" };
    push_group(html, "output", label, |html| {
        if let Some(report) = &report {
            let fields = report.fields.iter().filter(|(name, value)| !is_usual(name, value));
            push_list(html, fields.map(|(name, value)| (name.as_str(), value.clone())));
        }
        if !output.trim().is_empty() {
            push_pre(html, if result.is_error { "wrong" } else { "" }, &output);
        }
        if let Some(lines) = result.lines {
            push_line(html, "note", &format!("The whole output has {}.", format_count(lines, "line")));
        }
    });
}

/// Whether a field of a command's result says nothing that the summary does not.
fn is_usual(name: &str, value: &str) -> bool {
    matches!((name, value), ("duration_ms", _) | ("status", "completed") | ("exit_code", "0"))
}

/// The todo list that a call sets, with the state of each item in words.
fn push_todo(html: &mut String, list: &[Todo]) {
    html.push_str("<ul class=\"todo\">\n");
    for todo in list {
        let (class, state) = match todo.status {
            TodoStatus::Pending => ("pending", "pending"),
            TodoStatus::InProgress => ("in_progress", "in progress"),
            TodoStatus::Done => ("done", "done"),
        };
        let text = escape(&todo.text);
        push(
            html,
            format_args!(
                "<li class=\"{class}\" dir=\"auto\"><span class=\"state\">{state}:</span> {text}</li>\n"
            ),
        );
    }
    html.push_str("</ul>\n");
}

fn push_fields(html: &mut String, object: &Value, except: &[&str]) {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(key, _)| !except.contains(&key.as_str()));
    push_list(html, fields.map(|(key, value)| (key.as_str(), plain_value(value))));
}

fn push_list<'a>(html: &mut String, fields: impl Iterator<Item = (&'a str, String)>) {
    let mut fields = fields.peekable();
    if fields.peek().is_none() {
        return;
    }
    html.push_str("<dl>\n");
    for (name, value) in fields {
        push(html, format_args!("<dt dir=\"auto\">{}</dt>\n", escape(name)));
        if value.len() <= MAX_SHORT_VALUE && !value.contains('\n') {
            push(html, format_args!("<dd dir=\"auto\">{}</dd>\n", escape(&value)));
        } else {
            html.push_str("<dd>");
            push_pre(html, "", &value);
            html.push_str("</dd>\n");
        }
    }
    html.push_str("</dl>\n");
}

fn push_group(html: &mut String, class: &str, label: &str, push_content: impl FnOnce(&mut String)) {
    push(html, format_args!("<div class=\"{class}\" role=\"group\" aria-label=\"{label}\">\n"));
    push_content(html);
    html.push_str("</div>\n");
}
