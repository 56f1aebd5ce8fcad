//! Records the result of a tool call. Secrets are redacted, and a long output is truncated to its head and tail. The
//! whole output is kept as a blob, which `read_file` of `output:<call id>` reads.

use longhaul_context::max_bytes_for;
use longhaul_journal::Blob;
use longhaul_protocol::{BlobRef, CallId, CommandReport, Image, SessionId, SessionRecord, ToolFinished};
use longhaul_tools::{OutputLimit, ToolOutcome, truncate_output};

use crate::session::tasks::TaskState;
use crate::subagents::questions::question_records;
use crate::turn::request::effective_window;
use crate::worker::{Worker, WorkerResult};

/// One result takes at most this fraction of the context window: one part in so many.
const MAX_OUTPUT_SHARE: usize = 20;
/// Bytes of an output to keep as a blob.
const MAX_WHOLE_OUTPUT_BYTES: usize = 16 << 20;

/// Records the result of a call.
pub(super) async fn record_result(
    worker: &mut Worker,
    id: CallId,
    mut finished: ToolOutcome,
) -> WorkerResult<()> {
    // A command that continues as a task is recorded in the same append, because a crash in between would lose the
    // task.
    let started =
        finished.task.take().map(|task| SessionRecord::TaskStarted(worker.runtime().with_node(task)));
    // The monitor may have recorded the end of a subagent before.
    let is_running = |id| worker.state().tasks.get(id).is_some_and(TaskState::is_running);
    let ended = finished.ended.take().filter(|ended| is_running(ended.task_id));
    let settled = ended.iter().flat_map(|ended| settled_questions(worker, ended.session));
    let settled: Vec<SessionRecord> = settled.collect();
    let Some((result, blobs)) = compose_result(worker, id, finished) else { return Ok(()) };
    let ended = settled.into_iter().chain(ended.map(SessionRecord::TaskEnded));
    let records = started.into_iter().chain(ended).chain([SessionRecord::ToolFinished(result)]).collect();
    worker.commit(records, blobs).await
}

/// Takes back the questions of a subagent that has ended.
fn settled_questions(worker: &Worker, child: Option<SessionId>) -> Vec<SessionRecord> {
    child.map_or_else(Vec::new, |child| question_records(worker.state(), child, "", None))
}

/// The record of a result, with the blobs that it refers to. `None` if there is no such call.
pub(super) fn compose_result(
    worker: &Worker,
    id: CallId,
    finished: ToolOutcome,
) -> Option<(ToolFinished, Vec<Blob>)> {
    let call = worker.state().call(id)?;
    let ToolOutcome {
        content,
        is_error,
        images,
        whole,
        seen,
        skill,
        todo,
        news,
        diff,
        mut lines,
        mut report,
        ..
    } = finished;
    let redactor = &worker.runtime().redactor;
    let mut content = redactor.redact(&content).into_owned();
    let mut whole = whole.map(|whole| redactor.redact_bytes(whole));
    let diff = diff.map(|diff| redactor.redact(&diff).into_owned());
    if whole.is_none()
        && let Some(truncated) = truncate_output(&content, output_cap(effective_window(worker)), id)
    {
        lines = lines.or(Some(content.lines().count() as u64));
        content.truncate(content.floor_char_boundary(MAX_WHOLE_OUTPUT_BYTES));
        whole = Some(std::mem::replace(&mut content, truncated).into_bytes());
    }
    if let Some(turn) = &worker.state().turn {
        content = turn.repeats.with_repeat_warning(&call.name, &call.arguments, content);
    }
    if !report.is_empty() {
        // Without secrets, and with the warning.
        report.message = CommandReport::parse(&content).and_then(|(told, _)| told.message);
    }
    let pictures = images.iter().map(|picture| Image { data: BlobRef::to(&picture.bytes, &picture.media) });
    let result = ToolFinished {
        is_error,
        images: pictures.collect(),
        whole: whole.as_deref().map(|whole| BlobRef::to(whole, "text/plain")),
        seen,
        skill,
        todo,
        news,
        diff,
        lines,
        report,
        ..ToolFinished::new(id, &call.name, content)
    };
    let blobs = images.into_iter().map(|picture| picture.bytes).chain(whole).map(Blob::new).collect();
    Some((result, blobs))
}

/// The size limit of one result: the default, or a share of a small context window.
pub(super) fn output_cap(window: Option<u64>) -> OutputLimit {
    let default = OutputLimit::default();
    let share = window.map_or(usize::MAX, |tokens| max_bytes_for(tokens) / MAX_OUTPUT_SHARE);
    let bytes = share.min(default.bytes);
    OutputLimit { bytes, ..default }
}

#[cfg(test)]
#[path = "tool_result_tests.rs"]
mod tests;
