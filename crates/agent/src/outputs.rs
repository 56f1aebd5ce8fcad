//! `read_file` of `output:<call id>`: the whole of an output of which the model got only head and tail.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_protocol::{BlobRef, CallId};
use longhaul_tools::{Call, Finished, Prepared, Run};
use serde::Deserialize;

/// What begins the path of an output.
const MARK: &str = "output:";
/// How many lines are read if nobody says.
const USUAL_LINES: usize = 1_000;

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
    let blob = id.parse().ok().and_then(|id: CallId| outputs.get(&id)).cloned();
    let journal = journal.clone();
    let prepared = Prepared::new(move |_stop| async move {
        let Some(blob) = blob else {
            return Finished::error(format!(
                "there is no whole output of a call {id:?}: only those that were cut have one, and the cut says which"
            ));
        };
        match journal.blob(blob.hash).await {
            Ok(bytes) => Finished::ok(lines(&String::from_utf8_lossy(&bytes), &asked)),
            Err(error) => Finished::error(format!("the output can't be read: {error}")),
        }
    });
    Some(prepared.run)
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
#[path = "outputs_tests.rs"]
mod tests;
