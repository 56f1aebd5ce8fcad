//! `read_file` of `output:<call id>`: the whole output of a call whose result is truncated in the context.
//!
//! The state knows the outputs in the context. Outputs that a compaction removed are searched in the journal: a
//! call's id contains its time, and its result is recorded soon after that.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_journal::{Journal, Result, records};
use longhaul_protocol::{At, BlobRef, CallId, Record, SessionRecord, StreamName};
use longhaul_tools::{PreparedCall, RunCall, ToolInvocation, ToolOutcome};
use serde::Deserialize;

use crate::history::by_time::first_since;

const PATH_PREFIX: &str = "output:";
/// Lines to read if the call sets no limit.
const DEFAULT_LINES: usize = 1_000;
/// How many records after a call are searched for its output.
const MAX_SEARCHED_RECORDS: u64 = 20_000;
/// The largest difference between the clock of a call's id and the clock of its record.
const CLOCK_SKEW_MS: i64 = 60_000;

/// What `read_file` takes.
#[derive(Deserialize)]
pub(crate) struct ReadArguments {
    pub(crate) path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

fn parse_arguments(arguments: &str) -> Option<(ReadArguments, String)> {
    let arguments: ReadArguments = serde_json::from_str(arguments).ok()?;
    let id = arguments.path.strip_prefix(PATH_PREFIX)?.to_owned();
    Some((arguments, id))
}

/// Whether a call of `read_file` reads an output.
pub(super) fn is_output(arguments: &str) -> bool {
    parse_arguments(arguments).is_some()
}

/// Runs a call that reads an output. `None` for any other call.
pub(super) fn read_output(
    tool: &str,
    call: &ToolInvocation,
    outputs: &HashMap<CallId, BlobRef>,
    journal: &Arc<dyn Journal>,
) -> Option<RunCall> {
    let (arguments, id) = (tool == "read_file").then(|| parse_arguments(&call.arguments))??;
    let call_id: Option<CallId> = id.parse().ok();
    let known = call_id.and_then(|id| outputs.get(&id)).cloned();
    let (journal, stream) = (journal.clone(), StreamName::session(call.session));
    let prepared = PreparedCall::new(move |_stop| async move {
        let found = match (known, call_id) {
            (Some(known), _) => Ok(Some(known)),
            (None, Some(call)) => find_output(&*journal, &stream, call).await,
            (None, None) => Ok(None),
        };
        let read = match found {
            Ok(Some(blob)) => journal.blob(blob.hash).await,
            Ok(None) => {
                return ToolOutcome::error(format!(
                    "there is no whole output of a call {id:?}: only those that were cut have one, and the cut says which"
                ));
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) => ToolOutcome::ok(select_lines(&String::from_utf8_lossy(&bytes), &arguments)),
            Err(error) => ToolOutcome::error(format!("the output can't be read: {error}")),
        }
    });
    Some(prepared.run)
}

/// Searches the journal for the output of a call.
pub(crate) async fn find_output(
    journal: &dyn Journal,
    stream: &StreamName,
    call: CallId,
) -> Result<Option<BlobRef>> {
    let head = journal.head(stream).await?.seq;
    let since = At(call.made_at().0.saturating_sub(CLOCK_SKEW_MS));
    let first = first_since(journal, stream, head, since).await?;
    let last = head.min(first.saturating_add(MAX_SEARCHED_RECORDS));
    let mut search = OutputSearch { call, goes_on: false, output: None };
    let mut cursor = records(journal, stream, first).through(last);
    while !search.is_settled()
        && let Some(record) = cursor.next_undamaged().await?
    {
        search.see(&record);
    }
    Ok(search.output)
}

/// The output of a call, according to the records seen so far.
struct OutputSearch {
    call: CallId,
    /// The command continued as a task. The end of the task has the whole output.
    goes_on: bool,
    output: Option<BlobRef>,
}

impl OutputSearch {
    fn see(&mut self, record: &Record) {
        // Most records are of other kinds and do not have to be decoded.
        if !matches!(record.kind.as_str(), "task_started" | "tool_finished" | "task_ended") {
            return;
        }
        match SessionRecord::decode(record) {
            Ok(SessionRecord::TaskStarted(task)) if task.task_id.call() == self.call => self.goes_on = true,
            Ok(SessionRecord::ToolFinished(finished)) if finished.call == self.call => {
                self.output = finished.whole;
            }
            Ok(SessionRecord::TaskEnded(ended)) if ended.task_id.call() == self.call => {
                self.goes_on = false;
                self.output = ended.output.or(self.output.take());
            }
            _ => {}
        }
    }

    fn is_settled(&self) -> bool {
        self.output.is_some() && !self.goes_on
    }
}

/// The lines that the call asks for, with a hint how to read the rest.
pub(crate) fn select_lines(text: &str, arguments: &ReadArguments) -> String {
    let from = arguments.offset.unwrap_or(1).max(1);
    let limit = arguments.limit.unwrap_or(DEFAULT_LINES).max(1);
    let total = text.lines().count();
    if from > total {
        return format!("[there is no line {from}: it has {total} lines]");
    }
    let shown: Vec<&str> = text.lines().skip(from - 1).take(limit).collect();
    let through = from - 1 + shown.len();
    let mut part = shown.join("\n");
    if through < total {
        part += &format!("\n[lines {from} to {through} of {total}; go on with offset {}]", through + 1);
    }
    part
}

#[cfg(test)]
#[path = "full_output_tests.rs"]
mod tests;
