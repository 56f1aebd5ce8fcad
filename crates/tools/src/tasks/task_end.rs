//! The end of a task, as the session records it.

use longhaul_keeper::{Result, Tasks};
use longhaul_protocol::{TaskId, TaskStatus};

use super::state::keeper_state;
use crate::Redact;
use crate::output::OutputReader;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    /// Lost if its end is unknown; the message says why.
    pub status: TaskStatus,
    pub exit_code: Option<i32>,
    /// Of a lost task, the time up to its last output.
    pub duration_ms: u64,
    pub message: Option<String>,
    /// It was killed, and neither the model nor the user asked for that.
    pub unasked: bool,
    /// Bytes that it printed.
    pub printed: u64,
    /// Its output as plain text without secrets, truncated to 1 MiB. `None` if it printed nothing.
    pub output: Option<Vec<u8>>,
    /// The last lines, at most 20 and 2 KiB.
    pub tail: String,
}

/// How a task ended and what it printed; `None` while it runs. An error may pass. Blocks: it reads files and may kill
/// what a dead keeper left.
pub fn task_end(tasks: &Tasks, id: TaskId, redact: &Redact) -> Result<Option<FinishedTask>> {
    let state = keeper_state(tasks, id)?;
    if !state.has_ended() {
        return Ok(None);
    }
    let mut ended = FinishedTask {
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
        // The end is recorded even if the output can't be read.
        Err(error) if ended.message.is_none() => {
            ended.message = Some(format!("its output can't be read: {error}"));
        }
        Err(_) => {}
    }
    Ok(Some(ended))
}
