use serde::{Deserialize, Serialize};

use super::Todo;
use crate::{BlobRef, CallId, Hash, Image, TaskNews};

/// What a tool may do to the world, which decides what happens to a call that a crash left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only looks: run it again.
    Read,
    /// Running it twice is like running it once: run it again.
    Idempotent,
    /// It writes a file: compare the file with the hashes in the record.
    CheckedWrite,
    /// It is a command: its keeper knows.
    Command,
    /// Nobody can tell whether it happened: say so.
    Unknown,
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// What it may do.
    pub effect: Effect,
    /// The file that it writes, if it writes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<FileWrite>,
    /// The folder of tasks that its command is kept in. Where that one is not found again, nobody can tell whether it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
}

/// A file as it is before a write and as it will be after it. With these a write that a crash interrupted can be told
/// from one that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    /// Its canonical path.
    pub path: String,
    /// The hash of its bytes before; absent if there was no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The hash of its bytes after.
    pub after: Hash,
}

/// What the model knows of a file: it may write it only as long as this is how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSeen {
    /// Its canonical path.
    pub path: String,
    /// The hash of its bytes.
    pub hash: Hash,
}

/// A tool ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// What the model reads.
    pub content: String,
    /// Images for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The whole output, where `content` is only its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobRef>,
    /// What the model knows of a file through this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<FileSeen>,
    /// The todo list from here on, if the call changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Vec<Todo>>,
    /// What the model knows of a task through this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<TaskNews>,
}

impl ToolFinished {
    /// A call that worked and left nothing but words.
    pub fn new(call: CallId, name: &str, content: impl Into<String>) -> Self {
        let (name, content) = (name.to_owned(), content.into());
        Self {
            call,
            name,
            is_error: false,
            content,
            images: vec![],
            whole: None,
            seen: None,
            todo: None,
            news: None,
        }
    }
}
