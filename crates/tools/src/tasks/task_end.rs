//! What is to be recorded when a task is over.

use longhaul_keeper::{Result, Tasks};
use longhaul_protocol::{TaskId, TaskStatus};

use super::state::keeper_state;
use crate::Redact;
use crate::output::OutputReader;

/// The end of a task, as it is recorded and told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended. Where nobody knows, it is lost, and the message says why.
    pub status: TaskStatus,
    /// The exit code, if the command came to one.
    pub exit_code: Option<i32>,
    /// How long it ran; of a lost one, up to the last that it printed.
    pub duration_ms: u64,
    /// What else there is to say.
    pub message: Option<String>,
    /// It was killed, and nobody had asked for that.
    pub unasked: bool,
    /// How many bytes it printed.
    pub printed: u64,
    /// What it printed, as plain text without secrets: at most 1 MiB, head and tail of more. Absent if that was nothing.
    pub output: Option<Vec<u8>>,
    /// The last of it, at most 20 lines and 2 KiB.
    pub tail: String,
}

/// How a task ended and what it printed; `None` while it runs. An error is trouble that may pass. Reads files and may end what a
/// dead keeper left, so it blocks.
pub fn task_end(tasks: &Tasks, id: TaskId, redact: &Redact) -> Result<Option<Ended>> {
    let state = keeper_state(tasks, id)?;
    if !state.has_ended() {
        return Ok(None);
    }
    let mut ended = Ended {
        status: state.status,
        exit_code: state.exit_code,
        duration_ms: state.duration_ms.unwrap_or(0),
        message: state.message,
        unasked: state.unasked,
        printed: 0,
        output: None,
        tail: String::new(),
    };
    let read = tasks.output(id).and_then(|output| {
        let printed = OutputReader::new(&output, redact);
        let end = output.printed()?;
        Ok((printed.read_all(end)?.kept(), printed.read_tail(end)?, end, output.printed_at()?))
    });
    match read {
        Ok((whole, tail, end, printed_at)) => {
            if let (None, Some(last), Some(first)) = (state.duration_ms, printed_at, tasks.started_at(id)?) {
                ended.duration_ms = u64::try_from(last.0 - first.0).unwrap_or(0);
            }
            ended.output = (!whole.is_empty()).then(|| whole.into_bytes());
            (ended.tail, ended.printed) = (tail, end);
        }
        // That it ended is known; that its output can't be read is no reason to wait with that.
        Err(error) if ended.message.is_none() => {
            ended.message = Some(format!("its output can't be read: {error}"));
        }
        Err(_) => {}
    }
    Ok(Some(ended))
}
