//! The formats that a keeper and a runtime share, in files and on the socket.
//!
//! Everything is JSON with a `format`. Formats only grow: unknown fields are ignored, so that a newer runtime can
//! adopt an older keeper. A format that is too new is an error. `fixtures/` pins each form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use longhaul_protocol::{At, SessionId, TaskId, TaskStatus, json_path};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Bounds, Error, Result};

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The environment variable that marks all processes of a task.
pub const MARK: &str = "LONGHAUL_TASK";

/// What to run: `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// [`FORMAT`].
    pub format: u32,
    pub task_id: TaskId,
    /// The command, which runs as `bash -c`.
    pub command: String,
    #[serde(with = "json_path::path")]
    pub work_dir: PathBuf,
    /// Its whole environment; the keeper adds only [`MARK`].
    pub environment: BTreeMap<String, String>,
    /// Bytes of output to keep: one half from the beginning, one from the end.
    pub output_cap: u64,
    /// The timeout in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_s: Option<u64>,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The machine: `local`. Reserved for commands that run elsewhere.
    pub target: String,
    /// The file with the token for the keeper's socket, relative to the task's folder: `../../run/token`.
    pub token_file: String,
    /// What the command may access; `None` for no sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Carry its standard input and output over the socket to the client that asks for it ([`crate::Task::relay`]), and
    /// end it when that client is gone. Only its standard error is kept as output.
    #[serde(default, skip_serializing_if = "is_false")]
    pub relay: bool,
}

/// How a command ended: `status.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`FORMAT`].
    pub format: u32,
    /// Completed, failed, killed or timed out.
    pub status: TaskStatus,
    /// Its exit code, or 128 plus the number of the signal that ended it. Absent if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub started_at: At,
    pub ended_at: At,
    /// By the monotonic clock.
    pub duration_ms: u64,
    /// Bytes that it printed.
    pub printed: u64,
    /// A remark about its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// It was killed because its keeper got a signal that no runtime had sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unasked: bool,
}

impl Status {
    /// Why the command never started, if it didn't.
    pub fn never_started(&self) -> Option<&str> {
        let failed = self.status == TaskStatus::Failed && self.exit_code.is_none();
        failed.then(|| self.message.as_deref().unwrap_or("unknown reason"))
    }
}

/// The command's process: `pid`. The file proves that the command was started. The pid alone never decides whether it
/// still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessFile {
    pub(crate) format: u32,
    #[serde(flatten)]
    pub(crate) command: Process,
    /// The init of its PID namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) init: Option<Process>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keeper: Option<Process>,
    /// The boot and the PID namespace within which the pids are valid, as in [`KeeperFile`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
}

/// The keeper's process, in the file `lock` while the keeper holds the lock. Earlier versions left the file empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeeperFile {
    pub(crate) format: u32,
    pub(crate) keeper: Process,
    /// The boot and the PID namespace within which a pid is valid.
    pub(crate) system: String,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// In ticks since boot. It distinguishes the process from a later one with the same pid.
    pub(crate) start_time: u64,
}

/// What a keeper reports once to the runtime that started it.
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

/// Every further line to a keeper. Unknown fields are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Send the state now, and close the connection when the command has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) watch: bool,
    /// Also send a message when there is more output.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) follow: bool,
    /// Kill the command, and confirm that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) kill: bool,
    /// Become the owner of a relayed command. After the answer, the connection carries its input and output.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) relay: bool,
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
    Printed {
        printed: u64,
    },
    /// The command has ended, because of the request or before it.
    Killed {
        killed: bool,
    },
    /// The keeper closes the connection for this reason.
    Refused {
        refused: String,
    },
    /// What follows on this connection is the output of the command.
    Relayed {
        relayed: bool,
    },
}

/// One line, with its end.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = encode(value);
    bytes.push(b'\n');
    bytes
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value)
        .expect("serde_json never fails on structs with string keys, and every path has a JSON form")
}

/// Decodes a file of a task. An error names the file.
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

pub(crate) fn now() -> At {
    SystemTime::now().into()
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
