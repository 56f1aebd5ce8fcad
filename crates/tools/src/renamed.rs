//! Calls of tools that have another name now.
//!
//! A call may be open, or approved, while the program is upgraded, and a model may repeat a name that it reads in its
//! context. Such a call runs as a call of the tool that does the work now.

use longhaul_protocol::renamed_tool;
use serde_json::{Map, Value, json};

/// Seconds that `task_wait` waited if its call did not say.
const FORMER_WAIT_SECONDS: u64 = 60;

/// The name and the arguments of a call for the tool that does its work now. `None` if its tool was not renamed.
///
/// Arguments that don't fit the former tool stay as they are: the tool's error says what is wrong.
pub fn renamed_call(name: &str, arguments: &str) -> Option<(&'static str, String)> {
    let now = renamed_tool(name)?;
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let fields: Option<Map<String, Value>> = serde_json::from_str(text).ok();
    let arguments = fields.map_or_else(|| arguments.to_owned(), |fields| translate(name, fields).to_string());
    Some((now, arguments))
}

fn translate(name: &str, mut fields: Map<String, Value>) -> Value {
    let mut set = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
    match name {
        "history_search" => set("scope", json!("session")),
        "memory_search" => set("scope", json!("memory")),
        "task_wait" => {
            let seconds = fields.remove("seconds").filter(|seconds| !seconds.is_null());
            fields.insert("wait".to_owned(), seconds.unwrap_or_else(|| json!(FORMER_WAIT_SECONDS)));
        }
        "memory_read" => {
            if let Some(page) = fields.remove("page") {
                fields.insert("ref".to_owned(), page);
            }
        }
        "history_read" => {
            let (from, to) = (fields.remove("from"), fields.remove("to"));
            let to = to.filter(|to| !to.is_null()).map(|to| format!("-{to}")).unwrap_or_default();
            if let Some(from) = from {
                fields.insert("ref".to_owned(), json!(format!("#{from}{to}")));
            }
        }
        _ => {}
    }
    Value::Object(fields)
}

#[cfg(test)]
#[path = "renamed_tests.rs"]
mod tests;
