//! What a keeper and a runtime tell each other, in files and on the socket.
//!
//! Everything is JSON with a `format`. Formats only grow: unknown fields are passed over, so that a newer runtime adopts
//! an older keeper, and a format that is too new is an error that says so. `fixtures/` pins each form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use longhaul_protocol::{At, SessionId, TaskId, TaskStatus, json_path};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Bounds, Error, Result};

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The variable by which everything that a command has left behind can be recognised.
pub const MARK: &str = "LONGHAUL_TASK";

/// What should run: `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// [`FORMAT`].
    pub format: u32,
    /// The task.
    pub task_id: TaskId,
    /// The command, for `bash -c`.
    pub command: String,
    /// Where it runs.
    #[serde(with = "json_path::path")]
    pub work_dir: PathBuf,
    /// Its whole environment, to which the keeper adds only [`MARK`].
    pub environment: BTreeMap<String, String>,
    /// How many bytes of output are kept: the first half, and the last.
    pub output_cap: u64,
    /// After this many seconds it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_s: Option<u64>,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is for, in the words of whoever started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it runs: `local`. Reserved for commands that run elsewhere.
    pub target: String,
    /// The file with the token that the keeper's socket asks for, by the task's folder: `../../run/token`.
    pub token_file: String,
    /// What the command may reach; without them, whatever its user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

/// How a command ended: `status.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`FORMAT`].
    pub format: u32,
    /// Completed, failed, killed or timed out.
    pub status: TaskStatus,
    /// Its exit code; 128 and the signal's number where a signal ended it; none if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// When it began.
    pub started_at: At,
    /// When it ended.
    pub ended_at: At,
    /// How long it ran, by a clock that nobody sets.
    pub duration_ms: u64,
    /// How many bytes it printed.
    pub printed: u64,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// It was killed because its keeper was told to end by a signal, and nobody had asked for that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unasked: bool,
}

impl Status {
    /// Why the command never started, if it didn't.
    pub fn never_started(&self) -> Option<&str> {
        let failed = self.status == TaskStatus::Failed && self.exit_code.is_none();
        failed.then(|| self.message.as_deref().unwrap_or("the keeper could not say why"))
    }
}

/// The command's process: `pid`. It says that the command was started; that it still runs is never decided by the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessFile {
    pub(crate) format: u32,
    #[serde(flatten)]
    pub(crate) command: Process,
    /// The first process of its PID namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) init: Option<Process>,
    /// The process that keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keeper: Option<Process>,
    /// Where both numbers mean something: see [`KeeperFile`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
}

/// The process that keeps a task: `lock`, from when it has the lock. Earlier keepers left it empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeeperFile {
    pub(crate) format: u32,
    pub(crate) keeper: Process,
    /// The boot and the namespace within which a number stands for a process. Elsewhere it stands for another one.
    pub(crate) system: String,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// When it started, in the system's ticks since boot, which tells it from a later process with its number.
    pub(crate) start_time: u64,
}

/// What a keeper tells the runtime that started it, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartReport {
    pub(crate) format: u32,
    /// Why the command did not start; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// The first line on a keeper's socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) token: String,
}

/// Every further line to a keeper. What it doesn't know it passes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Say how things are; from then on the closing of the connection is the news that the command has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) watch: bool,
    /// Say when there is more output, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) follow: bool,
    /// End the command, and say when that is done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) kill: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A line from a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    State {
        format: u32,
        state: TaskStatus,
        printed: u64,
        pid: i32,
    },
    /// There is more output.
    Printed {
        printed: u64,
    },
    /// The command has ended: because of the request, or by itself before that.
    Killed {
        killed: bool,
    },
    /// The connection is closed, for this reason.
    Refused {
        refused: String,
    },
}

/// One line, with its end.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = encode(value);
    bytes.push(b'\n');
    bytes
}

/// The JSON of any of these.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value)
        .expect("these types have string keys and no fallible parts: every path has a form")
}

/// Reads a file of a task. Anything but a form that is known is an error that names the file.
pub(crate) fn decode<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged =
        |error: serde_json::Error| Error::Damaged { file: file.to_owned(), reason: error.to_string() };
    let Version { format } = serde_json::from_slice(bytes).map_err(damaged)?;
    if format > FORMAT {
        return Err(Error::Newer { file: file.to_owned(), format, known: FORMAT });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

/// The time now.
pub(crate) fn now() -> At {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
