use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as the model is told of it. The list of them is kept as a blob of the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}
