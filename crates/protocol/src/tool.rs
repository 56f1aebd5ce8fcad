use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool's definition, as the model gets it. An epoch keeps the list of them as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// The names of the recall tools. Their calls show the contents of other records.
pub const RECALL: &str = "recall";
pub const RECALL_READ: &str = "recall_read";
/// Makes, lists and removes schedules.
pub const SCHEDULE: &str = "schedule";
pub const MEMORY_NOTE: &str = "memory_note";

/// Tools of earlier versions, and the tools that do their work now.
const RENAMED_TOOLS: [(&str, &str); 6] = [
    ("task_list", "task_output"),
    ("task_wait", "task_output"),
    ("history_search", RECALL),
    ("memory_search", RECALL),
    ("history_read", RECALL_READ),
    ("memory_read", RECALL_READ),
];

/// The name that a tool has now. Records of earlier versions have the old one.
pub fn current_tool_name(name: &str) -> &str {
    renamed_tool(name).unwrap_or(name)
}

/// The name that a renamed tool has now; `None` for any other.
pub fn renamed_tool(name: &str) -> Option<&'static str> {
    RENAMED_TOOLS.into_iter().find(|(old, _)| *old == name).map(|(_, now)| now)
}

/// The names that a tool had before.
pub fn former_tool_names(name: &str) -> impl Iterator<Item = &'static str> {
    RENAMED_TOOLS.into_iter().filter(move |(_, now)| *now == name).map(|(old, _)| old)
}

/// Whether a tool's calls only show or repeat what other records contain. The search index leaves such calls out, so
/// all processes of a home must agree on this.
pub fn is_recall_tool(name: &str) -> bool {
    [RECALL, RECALL_READ, MEMORY_NOTE].contains(&current_tool_name(name))
}
