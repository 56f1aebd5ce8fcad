//! One attempt at a model call: from `attempt_started`, while the answer streams in, to its end. `outcome` records what follows.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `attempt_started` | that it was tried | closed as interrupted, the same request again |
//! | a `block` of text | the block, which does not count yet | closed, nothing kept, the same request again |
//! | a `block` that is a call | the call | closed with all complete blocks kept; the call is run, once |
//! | `attempt_ended` | the answer | its calls are run, or the turn ends |
//!
//! Never: text twice in the context, a call that runs twice, half a block.

use std::pin::pin;
use std::time::Duration;

use longhaul_memory::ReservedCall as _;
use longhaul_model::{
    BlockAssembler, BlockProgress, CallPermit, FailureClass, ModelFailure, RateLimits, StopReason,
    TokenCounts,
};
use longhaul_protocol::{
    AttemptEnded, AttemptId, AttemptStarted, Block, Checkpoint, EventKind, Note, SessionRecord, StepStarted,
    TurnStarted,
};
use longhaul_redact::StreamRedactor;
use tokio::time::Instant;

use crate::prompt::environment::SessionSetup;
use crate::session::decide::{Action, decide};
use crate::session::permission::{mode_note, plan_questions};
use crate::turn::budget::{reserve_call, soft_limit_warning};
use crate::turn::end::withdraw_question;
use crate::turn::outcome::{attempt_ended, open_items, record_outcome, stopped_attempt};
use crate::turn::request::{ModelCall, prepare_model_call, select_model};
use crate::worker::server_tools::server_tools_note;
use crate::worker::tasks::record_finished_tasks;
use crate::worker::wait::{WaitOutcome, WakeOn};
use crate::worker::{Worker, WorkerResult, WorkerStop};

/// Streamed text is saved in a checkpoint after this many bytes, or after this time.
const CHECKPOINT_BYTES: usize = 2 << 10;
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Characters of the name of a discarded call to tell the model.
const MAX_TOOL_NAME_CHARS: usize = 64;
const CANCELLED: &str = "cancelled";
const OUT_OF_TIME: &str = "the turn ran out of time";
const NOT_SAVED: &str = "the answer could not be saved";

/// The answer to a question about a plan when the conversation goes on without one.
const NEXT_TURN: &str = "withdrawn: the next turn began";

/// How an attempt ended.
pub(super) enum AttemptEnd {
    Complete(StopReason),
    Failed(ModelFailure),
    /// The turn had to end before the answer did. Holds the reason.
    Stopped(&'static str),
}

/// How an attempt ended, and what the provider reported about its cost.
pub(super) struct AttemptOutcome {
    pub(super) end: AttemptEnd,
    pub(super) tokens: Option<TokenCounts>,
    pub(super) rate_limits: Option<RateLimits>,
    /// The tool of the call that had begun when the answer ended.
    pub(super) unfinished_call: Option<String>,
}

/// The streamed text that watchers have seen, and the part of it that is not on disk yet.
///
/// Text that may be the beginning of a secret is held back until it is clear that it is not one.
struct StreamedText {
    text: StreamRedactor,
    reasoning: StreamRedactor,
    unsaved: String,
    unsaved_since: Option<Instant>,
}

impl StreamedText {
    fn new(worker: &Worker) -> Self {
        let redactor = &worker.runtime().redactor;
        let (text, reasoning) = (redactor.stream(), redactor.stream());
        Self { text, reasoning, unsaved: String::new(), unsaved_since: None }
    }

    fn show_text(&mut self, worker: &Worker, text: String) {
        if !text.is_empty() {
            self.unsaved.push_str(&text);
            self.unsaved_since.get_or_insert_with(Instant::now);
            worker.show(EventKind::TextDelta { text });
        }
    }

    /// Shows the text that was held back.
    fn show_rest(&mut self, worker: &Worker) {
        let (text, reasoning) = (self.text.finish(), self.reasoning.finish());
        self.show_text(worker, text);
        show_reasoning(worker, reasoning);
    }

    fn checkpoint_due(&self) -> Option<Instant> {
        self.unsaved_since.map(|since| since + CHECKPOINT_INTERVAL)
    }

    fn take_unsaved(&mut self) -> String {
        self.unsaved_since = None;
        std::mem::take(&mut self.unsaved)
    }
}

fn show_reasoning(worker: &Worker, text: String) {
    if !text.is_empty() {
        worker.show(EventKind::ReasoningDelta { text });
    }
}

/// Calls the model once, after beginning the turn and the step if these numbers are given.
pub(crate) async fn make_model_call(
    worker: &mut Worker,
    turn: Option<u64>,
    step: Option<u64>,
) -> WorkerResult<()> {
    let attempt = AttemptId::generate();
    let mut records = opening_records(worker, turn, step).await?;
    // If the call may not be made now, the turn ends or asks first.
    let Some(reservation) = reserve_call(worker, attempt, &records).await? else { return Ok(()) };
    // Meanwhile the input that it was to answer may have been taken back.
    if decide(worker.state(), worker.policy()) != (Action::CallModel { turn, step }) {
        return Ok(());
    }
    records.extend(soft_limit_warning(worker, &reservation));
    let model = worker.models().model().name().to_owned();
    records.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model }));
    worker.commit(records, vec![]).await?;
    let call = prepare_model_call(worker, &reservation).await?;
    let mut blocks = BlockAssembler::default();
    let mut is_alone = pin!(worker.confirm_alone());
    worker.wait_for(&mut is_alone, WakeOn::Cancel, None).await?.into_done()?;
    let end = if worker.should_end_turn() {
        AttemptEnd::Stopped(stop_reason(worker))
    } else {
        stream_answer(worker, &call, reservation.permit(), &mut blocks).await?
    };
    let end = match end {
        AttemptEnd::Failed(failure) => {
            let message = worker.runtime().redactor.redact(&failure.message).into_owned();
            AttemptEnd::Failed(ModelFailure { message, ..failure })
        }
        end => end,
    };
    let unfinished_call =
        blocks.unfinished_call().map(|name| name.chars().take(MAX_TOOL_NAME_CHARS).collect());
    let outcome = AttemptOutcome { end, tokens: blocks.tokens, rate_limits: blocks.limits, unfinished_call };
    record_outcome(worker, &call, reservation, outcome).await
}

/// Begins a turn without a model call: it ends at once, as cancelled or with a limit.
pub(crate) async fn begin_turn(worker: &mut Worker, turn: u64) -> WorkerResult<()> {
    let records = opening_records(worker, Some(turn), Some(1)).await?;
    worker.commit(records, vec![]).await
}

/// The records that begin a turn and a step, and the announcements to the model.
async fn opening_records(
    worker: &mut Worker,
    turn: Option<u64>,
    step: Option<u64>,
) -> WorkerResult<Vec<SessionRecord>> {
    let model_changed = select_model(worker, turn, step);
    if step.is_some() {
        record_finished_tasks(worker).await?;
    }
    let state = worker.state();
    let mut records = Vec::new();
    if let Some(turn) = turn {
        records.extend(plan_questions(state).map(|question| withdraw_question(question.id, NEXT_TURN)));
        records.push(SessionRecord::TurnStarted(TurnStarted { turn, cause: Some(state.next_turn_cause()) }));
        let warnings = worker.toolset().warnings().iter();
        let new = warnings.filter(|warning| !state.given_warnings.contains(&warning.code));
        records.extend(new.cloned().map(SessionRecord::Warning));
    }
    records.extend(model_changed);
    if turn.is_some() {
        records.extend(environment_note(worker).map(SessionRecord::Note));
    }
    if step.is_some() {
        records.extend(server_tools_note(worker).map(SessionRecord::Note));
    }
    if let Some(step) = step {
        records.extend(state.tasks.announcements());
        records.extend(mode_note(state, worker.permission_mode()).map(SessionRecord::Note));
        let later = crate::compaction::plan::deferred_inputs(state, &worker.policy().context);
        records.push(SessionRecord::StepStarted(StepStarted { step, later }));
    }
    Ok(records)
}

/// The note about what has changed in the session's surroundings since the model was last told.
fn environment_note(worker: &Worker) -> Option<Note> {
    let told = worker.state().told_environment.as_deref()?;
    let (model, sandbox) = (worker.models().model(), worker.runtime().config.settings.sandbox.in_words());
    let work_dir = worker.toolset().work_dir();
    SessionSetup { work_dir, sandbox: &sandbox, model: model.name() }.change_note(told)
}

/// Sends the request and receives the answer until it ends. Records each complete block as it arrives.
async fn stream_answer(
    worker: &mut Worker,
    call: &ModelCall,
    permit: &CallPermit,
    blocks: &mut BlockAssembler,
) -> WorkerResult<AttemptEnd> {
    let attempt = call.attempt;
    let mut sending = pin!(permit.send(&*call.model, call.request.clone()));
    let mut answer = match worker.wait_for(&mut sending, WakeOn::Cancel, None).await? {
        WaitOutcome::Done(Ok(answer)) => answer,
        WaitOutcome::Done(Err(failure)) => return Ok(AttemptEnd::Failed(failure)),
        WaitOutcome::Interrupted => return Ok(AttemptEnd::Stopped(stop_reason(worker))),
        WaitOutcome::Suspended | WaitOutcome::Deadline => return Err(WorkerStop::Suspended),
    };
    let mut streamed = StreamedText::new(worker);
    let end = loop {
        let mut next = pin!(answer.next());
        let received = loop {
            match worker.wait_for(&mut next, WakeOn::Cancel, streamed.checkpoint_due()).await? {
                WaitOutcome::Deadline => save_checkpoint(worker, attempt, &mut streamed).await?,
                received => break received,
            }
        };
        match received {
            WaitOutcome::Done(Ok(part)) => match blocks.push(part) {
                BlockProgress::End(stop) => break AttemptEnd::Complete(stop),
                BlockProgress::Odd(reason) => {
                    break AttemptEnd::Failed(ModelFailure::new(FailureClass::Broken, reason));
                }
                BlockProgress::TooLarge(reason) => {
                    break AttemptEnd::Failed(ModelFailure::new(FailureClass::TooLarge, reason));
                }
                progress => record_progress(worker, attempt, progress, &mut streamed).await?,
            },
            WaitOutcome::Done(Err(failure)) => break AttemptEnd::Failed(failure),
            WaitOutcome::Interrupted => break AttemptEnd::Stopped(stop_reason(worker)),
            WaitOutcome::Suspended | WaitOutcome::Deadline => {
                save_checkpoint(worker, attempt, &mut streamed).await?;
                return Err(WorkerStop::Suspended);
            }
        }
    };
    // An incomplete answer may end within a secret, so the text that was held back is never shown.
    if matches!(end, AttemptEnd::Complete(_)) {
        streamed.show_rest(worker);
    }
    save_checkpoint(worker, attempt, &mut streamed).await?;
    Ok(end)
}

/// Why the turn has to end.
fn stop_reason(worker: &Worker) -> &'static str {
    match (worker.state().is_cancelled(), worker.policy().is_out_of_time) {
        (true, _) => CANCELLED,
        (false, true) => OUT_OF_TIME,
        (false, false) => NOT_SAVED,
    }
}

/// Shows streamed text and records complete blocks.
async fn record_progress(
    worker: &mut Worker,
    attempt: AttemptId,
    progress: BlockProgress,
    streamed: &mut StreamedText,
) -> WorkerResult<()> {
    match progress {
        BlockProgress::Text(delta) => {
            let text = streamed.text.push(&delta);
            streamed.show_text(worker, text);
            if streamed.unsaved.len() >= CHECKPOINT_BYTES {
                save_checkpoint(worker, attempt, streamed).await?;
            }
        }
        BlockProgress::Reasoning(delta) => show_reasoning(worker, streamed.reasoning.push(&delta)),
        BlockProgress::Block(item) => {
            streamed.show_rest(worker);
            streamed.take_unsaved();
            let index = u32::try_from(open_items(worker).len()).unwrap_or(u32::MAX);
            worker.commit(vec![SessionRecord::Block(Block { attempt, index, item })], vec![]).await?;
        }
        BlockProgress::Nothing
        | BlockProgress::End(_)
        | BlockProgress::Odd(_)
        | BlockProgress::TooLarge(_) => {}
    }
    Ok(())
}

/// Saves the text of an unfinished block, so that a crash does not lose it.
async fn save_checkpoint(
    worker: &mut Worker,
    attempt: AttemptId,
    streamed: &mut StreamedText,
) -> WorkerResult<()> {
    let text = streamed.take_unsaved();
    if text.is_empty() {
        return Ok(());
    }
    worker.commit(vec![SessionRecord::Checkpoint(Checkpoint { attempt, text })], vec![]).await
}

/// Closes an attempt that a crash left open, and keeps this many of its blocks.
pub(crate) async fn close_open_attempt(worker: &mut Worker, kept: usize) -> WorkerResult<()> {
    let Some(attempt) = worker.state().turn.as_ref().and_then(|turn| turn.attempt.as_ref()) else {
        return Ok(());
    };
    let records = match worker.state().is_cancelled() && kept > 0 {
        true => stopped_attempt(worker, AttemptEnded::INTERRUPTED),
        false => {
            let error = Some(AttemptEnded::INTERRUPTED);
            vec![SessionRecord::AttemptEnded(attempt_ended(attempt.id, kept, error))]
        }
    };
    worker.commit(records, vec![]).await
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
