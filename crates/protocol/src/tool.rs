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
pub const HISTORY_SEARCH: &str = "history_search";
pub const HISTORY_READ: &str = "history_read";
pub const MEMORY_SEARCH: &str = "memory_search";
pub const MEMORY_READ: &str = "memory_read";
pub const MEMORY_NOTE: &str = "memory_note";

/// Whether a tool's calls only show or repeat what other records contain. The search index leaves such calls out, so
/// all processes of a home must agree on this.
pub fn is_recall_tool(name: &str) -> bool {
    [HISTORY_SEARCH, HISTORY_READ, MEMORY_SEARCH, MEMORY_READ, MEMORY_NOTE].contains(&name)
}
