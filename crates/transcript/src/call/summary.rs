//! What a call is about, in a few words: the command, the file, the pattern.

use longhaul_protocol::TaskId;
use serde_json::Value;

use crate::block::Call;
use crate::text::{format_count, short_id, truncate};

const MAX_SUMMARY_CHARS: usize = 300;
/// Characters of a command's description, so that the command stays in sight.
const MAX_DESCRIPTION_CHARS: usize = 40;

/// Summarizes a call. Arguments that could not be parsed are shown as they are.
pub(super) fn summarize_call(call: &Call, arguments: Option<&Value>) -> String {
    let Some(arguments) = arguments else { return truncate(call.arguments.trim(), MAX_SUMMARY_CHARS) };
    let summary = match call.name.as_str() {
        "exec" => text_field(arguments, "command").map(|command| {
            let place = text_field(arguments, "work_dir").map(|place| format!("  (in {place})"));
            let about = text_field(arguments, "description").map(str::trim).filter(|about| !about.is_empty());
            let about = about.map(|about| format!("{} · ", truncate(about, MAX_DESCRIPTION_CHARS)));
            format!("{}{}{}", about.unwrap_or_default(), first_line(command), place.unwrap_or_default())
        }),
        "read_file" => text_field(arguments, "path").map(|path| format!("{path}{}", line_range(arguments))),
        "write_file" | "edit_file" => text_field(arguments, "path").map(str::to_owned),
        "list_files" => Some(text_field(arguments, "path").unwrap_or(".").to_owned()),
        "find_files" | "search_text" => text_field(arguments, "pattern").map(|pattern| {
            let glob = text_field(arguments, "glob").map(|glob| format!(" {glob}")).unwrap_or_default();
            let place = text_field(arguments, "path").map(|path| format!("  in {path}")).unwrap_or_default();
            format!("{}{place}{glob}", first_line(pattern))
        }),
        "todo" => arguments["items"].as_array().map(|items| {
            let done = items.iter().filter(|item| item["status"] == "done").count();
            format!("{}, {done} done", format_count(items.len() as u64, "item"))
        }),
        "task_list" => Some(String::new()),
        "task_output" if arguments.get("task_id").is_none() => Some(String::new()),
        "task_output" | "task_wait" | "task_kill" => text_field(arguments, "task_id").map(|id| {
            let grep = text_field(arguments, "grep")
                .map(|grep| format!("  {}", first_line(grep)))
                .unwrap_or_default();
            format!("{}{grep}", task_name(id))
        }),
        "history_read" => {
            Some(format!("{} to {}", plain_value(&arguments["from"]), plain_value(&arguments["to"])))
        }
        "recall" | "history_search" | "memory_search" => text_field(arguments, "query").map(first_line),
        "recall_read" => text_field(arguments, "ref").map(str::to_owned),
        "memory_read" => text_field(arguments, "page").map(str::to_owned),
        "patch" => text_field(arguments, "patch").map(patched_files),
        "delete_file" => text_field(arguments, "path").map(str::to_owned),
        "move_file" => text_field(arguments, "from")
            .zip(text_field(arguments, "to"))
            .map(|(from, to)| format!("{from} → {to}")),
        "memory_note" => text_field(arguments, "text").map(first_line),
        "web_fetch" => text_field(arguments, "url").map(first_line),
        "web_search" => text_field(arguments, "query").map(first_line),
        "ask_user" => text_field(arguments, "question").map(first_line),
        _ => None,
    };
    truncate(&summary.unwrap_or_else(|| list_fields(arguments)), MAX_SUMMARY_CHARS)
}

/// Whether the arguments of a call hold the change that it makes to a file.
pub(crate) fn is_edit(name: &str) -> bool {
    matches!(name, "edit_file" | "write_file")
}

/// Pairs of old and new text. The old text of a file that is written as a whole is not known.
pub(crate) fn list_edits<'a>(name: &str, arguments: &'a Value) -> Vec<(&'a str, &'a str)> {
    if name == "write_file" {
        return text_field(arguments, "content").map(|content| ("", content)).into_iter().collect();
    }
    let edits = arguments["edits"].as_array().map_or(&[][..], Vec::as_slice);
    edits.iter().filter_map(|edit| Some((text_field(edit, "old")?, text_field(edit, "new")?))).collect()
}

/// The language of the file that a call names.
pub(super) fn file_language(arguments: &Value) -> Option<&str> {
    language_of_path(text_field(arguments, "path")?)
}

/// The language of a file, by the extension of its name.
pub(super) fn language_of_path(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// `task 3f9k2a`; an id that can't be parsed as it is.
pub(super) fn task_name(id: &str) -> String {
    let known: Result<TaskId, _> = id.parse();
    known.map_or_else(|_| truncate(id, 40), |id| format!("task {}", short_id(id)))
}

pub(crate) fn text_field<'a>(arguments: &'a Value, key: &str) -> Option<&'a str> {
    arguments.get(key)?.as_str()
}

/// A string without quotes, anything else as JSON.
pub(crate) fn plain_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(_) => format!("{} …", first.trim_end()),
        None => first.to_owned(),
    }
}

/// The files that a patch names.
fn patched_files(patch: &str) -> String {
    let path = |line: &str| {
        let (_, path) = line.strip_prefix("*** ")?.split_once(" File: ")?;
        Some(path.trim().to_owned())
    };
    patch.lines().filter_map(path).collect::<Vec<_>>().join(", ")
}

/// The part of a file that is read: `:20-39`, `:20-`.
fn line_range(arguments: &Value) -> String {
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64);
    match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (offset, None) => format!(":{}-", offset.unwrap_or(1)),
        (offset, Some(limit)) => {
            let first = offset.unwrap_or(1);
            format!(":{first}-{}", first.saturating_add(limit).saturating_sub(1))
        }
    }
}

/// The arguments of an unknown tool.
fn list_fields(arguments: &Value) -> String {
    let Some(fields) = arguments.as_object() else { return plain_value(arguments) };
    let field = |(key, value): (&String, &Value)| {
        format!("{key}: {}", truncate(&plain_value(value), MAX_SUMMARY_CHARS))
    };
    fields.iter().take(20).map(field).collect::<Vec<_>>().join(", ")
}
