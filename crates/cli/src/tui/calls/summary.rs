//! What a call is about, in a few words.

use longhaul_protocol::TaskId;
use serde_json::Value;

use crate::output::{count, shortened};
use crate::short_id::short;

/// More of it is never shown in a line.
const LONGEST: usize = 300;

/// What a call is about: the command, the file, what is sought. Arguments that can't be read are shown as they are.
pub(super) fn about(name: &str, arguments: Option<&Value>, raw: &str) -> String {
    let Some(arguments) = arguments else { return shortened(raw.trim(), LONGEST) };
    let words = match name {
        "exec" => text(arguments, "command").map(|command| {
            let place =
                text(arguments, "work_dir").map(|place| format!("  (in {place})")).unwrap_or_default();
            format!("{}{place}", first_line(command))
        }),
        "read_file" => text(arguments, "path").map(|path| format!("{path}{}", lines(arguments))),
        "write_file" | "edit_file" => text(arguments, "path").map(str::to_owned),
        "list_files" => Some(text(arguments, "path").unwrap_or(".").to_owned()),
        "find_files" | "search_text" => text(arguments, "pattern").map(|pattern| {
            let glob = text(arguments, "glob").map(|glob| format!(" {glob}")).unwrap_or_default();
            let place = text(arguments, "path").map(|path| format!("  in {path}")).unwrap_or_default();
            format!("{}{place}{glob}", first_line(pattern))
        }),
        "todo" => arguments["items"].as_array().map(|items| {
            let done = items.iter().filter(|item| item["status"] == "done").count();
            format!("{}, {done} done", count(items.len() as u64, "item"))
        }),
        "task_list" => Some(String::new()),
        "task_output" | "task_wait" | "task_kill" => text(arguments, "task_id").map(|id| {
            let grep =
                text(arguments, "grep").map(|grep| format!("  {}", first_line(grep))).unwrap_or_default();
            format!("{}{grep}", task(id))
        }),
        "history_read" => Some(format!("{} to {}", plain(&arguments["from"]), plain(&arguments["to"]))),
        "history_search" | "memory_search" => text(arguments, "query").map(first_line),
        "memory_read" => text(arguments, "page").map(str::to_owned),
        "memory_note" => text(arguments, "text").map(first_line),
        _ => None,
    };
    shortened(&words.unwrap_or_else(|| fields(arguments)), LONGEST)
}

/// Whether a call changes a file by what its arguments say.
pub(super) fn is_edit(name: &str) -> bool {
    matches!(name, "edit_file" | "write_file")
}

/// What an edit replaces by what. Of a file that is written as a whole it is not known what was there.
pub(super) fn edits<'a>(name: &str, arguments: &'a Value) -> Vec<(&'a str, &'a str)> {
    if name == "write_file" {
        return text(arguments, "content").map(|content| ("", content)).into_iter().collect();
    }
    let edits = arguments["edits"].as_array().map_or(&[][..], Vec::as_slice);
    edits.iter().filter_map(|edit| Some((text(edit, "old")?, text(edit, "new")?))).collect()
}

/// The language of the file that a call is about, as its name tells.
pub(super) fn language(arguments: &Value) -> Option<&str> {
    let name = text(arguments, "path")?.rsplit('/').next()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// How a task is named to people.
pub(super) fn task(id: &str) -> String {
    let known: Result<TaskId, _> = id.parse();
    known.map_or_else(|_| shortened(id, 40), |id| format!("task {}", short(id)))
}

/// A text among the arguments.
pub(super) fn text<'a>(arguments: &'a Value, key: &str) -> Option<&'a str> {
    arguments.get(key)?.as_str()
}

/// A value as people write it.
pub(super) fn plain(value: &Value) -> String {
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

/// The part of a file that is read: `:20-39`, `:20-`.
fn lines(arguments: &Value) -> String {
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

/// The arguments of a tool that nobody here knows.
fn fields(arguments: &Value) -> String {
    let Some(fields) = arguments.as_object() else { return plain(arguments) };
    let field = |(key, value): (&String, &Value)| format!("{key}: {}", shortened(&plain(value), LONGEST));
    fields.iter().take(20).map(field).collect::<Vec<_>>().join(", ")
}
