use serde::{Deserialize, Serialize};

use super::Todo;
use crate::{BlobRef, CallId, ChildSession, CommandReport, Hash, Image, TaskNews};

/// The side effect of a tool, which decides how to recover a call that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Read-only: run it again.
    Read,
    /// Idempotent: run it again.
    Idempotent,
    /// A file write: compare the file with the hashes in the record.
    CheckedWrite,
    /// A command: ask its keeper.
    Command,
    /// The runtime can't find out whether it happened, so it tells the model that.
    Unknown,
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    pub call: CallId,
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    pub effect: Effect,
    /// The file that it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<FileWrite>,
    /// All files that it changes, if it may change several or remove one. They are changed in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<FileChange>,
    /// The tasks folder that contains the command's own folder. If it is gone, the runtime can't find out whether the
    /// command ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
    /// The subagent that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildSession>>,
    /// It is a command that is known to change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_nothing: bool,
    /// The id under which it goes on at a server, from its [`ToolTask`].
    #[serde(skip)]
    pub remote_task: Option<String>,
}

/// A call that goes on at a server, as a task by whose id it can be found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTask {
    pub call: CallId,
    /// The id that the server gave it.
    pub task: String,
}

/// The hashes of a file before and after a write. They tell whether a write happened that a crash interrupted.
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

/// The hashes of a file before and after a change that may also create or remove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its canonical path.
    pub path: String,
    /// The hash of its bytes before; absent if there was no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The hash of its bytes after; absent if the change removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
}

/// The content of a file that the model has seen. The model may write the file only while this is its current
/// content.
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
    pub call: CallId,
    pub name: String,
    pub is_error: bool,
    /// The result that the model reads.
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The whole output, if `content` is truncated to its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobRef>,
    /// The file content that the model has seen through this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<FileSeen>,
    /// The new todo list, if the call changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Vec<Todo>>,
    /// The progress of a task that the model has seen through this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<TaskNews>,
    /// The change that the call made to files, as a unified diff for people. The model does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Lines of the whole output, if `content` has only its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The skill whose file the call has shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillShown>,
    /// How the command or the task is doing. The head of `content` says the same.
    #[serde(flatten)]
    pub report: CommandReport,
}

/// A file of a skill that the model has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillShown {
    pub name: String,
    /// The canonical path of the skill's folder.
    pub folder: String,
    /// The hash of the whole folder from which the file was taken.
    pub hash: Hash,
    /// The file, relative to the folder. Absent for SKILL.md, which makes the skill active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A skill whose SKILL.md the model has read. It stays in the context through compactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSkill {
    pub name: String,
    /// The canonical path of its folder.
    pub folder: String,
    /// The hash of its folder when the model read it.
    pub hash: Hash,
    /// The call that showed it.
    pub call: CallId,
}

impl ToolFinished {
    /// The result of a successful call that is only text.
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
            diff: None,
            lines: None,
            skill: None,
            report: CommandReport::default(),
        }
    }
}
