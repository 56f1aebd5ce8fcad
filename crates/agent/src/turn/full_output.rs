//! `read_file` of `output:<call id>`: the whole of an output of which the model got only head and tail.
//!
//! The state knows the outputs that the context shows. Those that a compaction took out of it are looked for in the journal:
//! an id says when its call was made, and the result stands soon after that.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_journal::{Journal, Result, records};
use longhaul_protocol::{At, BlobRef, CallId, Record, SessionRecord, StreamName};
use longhaul_tools::{Call, Finished, Prepared, Run};
use serde::Deserialize;

use crate::history::by_time::first_since;

/// What begins the path of an output.
const MARK: &str = "output:";
/// How many lines are read if nobody says.
const USUAL_LINES: usize = 1_000;
/// In so many records after a call its output is looked for.
const MOST_RECORDS: u64 = 20_000;
/// Ids and records get their times from different clocks, or from one that was set.
const SLACK_MS: i64 = 60_000;

#[derive(Deserialize)]
struct Asked {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

fn parse(arguments: &str) -> Option<(Asked, String)> {
    let asked: Asked = serde_json::from_str(arguments).ok()?;
    let id = asked.path.strip_prefix(MARK)?.to_owned();
    Some((asked, id))
}

/// Whether a call of `read_file` is for an output.
pub(crate) fn is_output(arguments: &str) -> bool {
    parse(arguments).is_some()
}

/// Reads an output, if that is what the call is for.
pub(crate) fn read(
    tool: &str,
    call: &Call,
    outputs: &HashMap<CallId, BlobRef>,
    journal: &Arc<dyn Journal>,
) -> Option<Run> {
    let (asked, id) = (tool == "read_file").then(|| parse(&call.arguments))??;
    let call_id: Option<CallId> = id.parse().ok();
    let known = call_id.and_then(|id| outputs.get(&id)).cloned();
    let (journal, stream) = (journal.clone(), StreamName::session(call.session));
    let prepared = Prepared::new(move |_stop| async move {
        let found = match (known, call_id) {
            (Some(known), _) => Ok(Some(known)),
            (None, Some(call)) => find(&*journal, &stream, call).await,
            (None, None) => Ok(None),
        };
        let read = match found {
            Ok(Some(blob)) => journal.blob(blob.hash).await,
            Ok(None) => {
                return Finished::error(format!(
                    "there is no whole output of a call {id:?}: only those that were cut have one, and the cut says which"
                ));
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) => Finished::ok(lines(&String::from_utf8_lossy(&bytes), &asked)),
            Err(error) => Finished::error(format!("the output can't be read: {error}")),
        }
    });
    Some(prepared.run)
}

/// The output of a call that the context does not show any more.
async fn find(journal: &dyn Journal, stream: &StreamName, call: CallId) -> Result<Option<BlobRef>> {
    let head = journal.head(stream).await?.seq;
    let since = At(call.made_at().0.saturating_sub(SLACK_MS));
    let first = first_since(journal, stream, head, since).await?;
    let end = head.min(first.saturating_add(MOST_RECORDS));
    let mut cursor = records(journal, stream, first).through(end);
    let mut looked_for = LookedFor { call, goes_on: false, output: None };
    while !looked_for.is_settled()
        && let Some(record) = cursor.next_undamaged().await?
    {
        looked_for.see(&record);
    }
    Ok(looked_for.output)
}

/// An output, as far as the records that were seen tell.
struct LookedFor {
    call: CallId,
    /// The command went on as a task, whose end has the whole of what it printed.
    goes_on: bool,
    output: Option<BlobRef>,
}

impl LookedFor {
    fn see(&mut self, record: &Record) {
        // Most records are none of these, and need not be decoded.
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

fn lines(text: &str, asked: &Asked) -> String {
    let from = asked.offset.unwrap_or(1).max(1);
    let limit = asked.limit.unwrap_or(USUAL_LINES).max(1);
    let all = text.lines().count();
    if from > all {
        return format!("[there is no line {from}: it has {all} lines]");
    }
    let shown: Vec<&str> = text.lines().skip(from - 1).take(limit).collect();
    let through = from - 1 + shown.len();
    let mut part = shown.join("\n");
    if through < all {
        part += &format!("\n[lines {from} to {through} of {all}; go on with offset {}]", through + 1);
    }
    part
}

#[cfg(test)]
#[path = "full_output_tests.rs"]
mod tests;
