//! Records how an attempt ended, and what follows: the step is done, the model is called again, another model is
//! called, or the turn ends. All of that is one append together with `attempt_ended`.

use std::sync::Arc;

use longhaul_context::ContextBreakdown;
use longhaul_memory::ReservedCall as _;
use longhaul_model::{FailureClass, ModelFailure, StopKind, StopReason, WindowSource};
use longhaul_protocol::{AttemptEnded, AttemptId, Item, Note, PromptParts, SessionRecord, Usage, Warning};

use crate::session::apply::{GIVEN_ONCE, ROLE_ORDER};
use crate::session::state;
use crate::spend::Reservation;
use crate::turn::answer_length::record_truncated_answer;
use crate::turn::attempt::{AttemptEnd, AttemptOutcome};
use crate::turn::request::ModelCall;
use crate::turn::retry::retry_or_fall_back;
use crate::turn::size_limits::{correct_limits, is_next_request_smaller, limits_warning};
use crate::worker::{Worker, WorkerResult};

/// Characters of the model's refusal to quote in the error.
const MAX_REFUSAL_CHARS: usize = 300;
/// The note to a model whose answer was only reasoning, twice.
const ANSWER_NOW_NOTE: &str = "You have thought and said nothing. Answer now, or call a tool.";

/// `attempt_ended`, and the records that follow it in the same append.
pub(super) struct AttemptClose<'a> {
    pub(super) call: &'a ModelCall,
    pub(super) ended: AttemptEnded,
    /// The tool of the call that had begun when the answer ended.
    pub(super) unfinished_call: Option<String>,
    pub(super) after: Vec<SessionRecord>,
}

impl AttemptClose<'_> {
    pub(super) fn keep(&mut self, blocks: usize) {
        self.ended.kept = u32::try_from(blocks).unwrap_or(u32::MAX);
    }

    pub(super) fn warn(&mut self, code: &str, text: impl Into<String>) {
        self.after.push(warning(code, text));
    }

    pub(super) fn into_records(self) -> Vec<SessionRecord> {
        [vec![SessionRecord::AttemptEnded(self.ended)], self.after].concat()
    }
}

/// Closes the attempt: which of its blocks count, its cost, and what follows.
pub(super) async fn record_outcome(
    worker: &mut Worker,
    call: &ModelCall,
    reservation: Reservation,
    outcome: AttemptOutcome,
) -> WorkerResult<()> {
    let AttemptOutcome { end, tokens, rate_limits, unfinished_call } = outcome;
    let rate_limits = match &end {
        AttemptEnd::Failed(failure) if !failure.limits.is_empty() => Some(failure.limits.clone()),
        _ => rate_limits,
    };
    let mut after = Vec::new();
    if tokens.is_some() || rate_limits.is_some() {
        let counted = tokens.unwrap_or_default().usage(reservation.permit(), &call.capabilities);
        let (estimated, limits) = (Some(call.estimated), rate_limits.unwrap_or_default());
        let (model, window) = (Some(call.model.name().to_owned()), worker.models().window());
        let parts = Some(prompt_parts(worker, call));
        let usage = Usage { estimated, window, parts, limits, model, ..counted };
        after.push(SessionRecord::Usage(usage));
    }
    drop(reservation);
    after.extend(model_warnings(worker, call));
    let input = tokens.and_then(|tokens| tokens.input);
    after.extend(input.and_then(|counted| truncated_prompt_warning(worker, call, counted)));
    let mut close =
        AttemptClose { call, ended: attempt_ended(call.attempt, 0, None), unfinished_call, after };
    match end {
        AttemptEnd::Stopped(reason) => {
            let records = [stopped_attempt(worker, reason), close.after].concat();
            worker.commit(records, vec![]).await
        }
        AttemptEnd::Failed(failure) => record_failure(worker, close, failure).await,
        AttemptEnd::Complete(StopReason { kind, word, .. }) => {
            close.ended.stop = Some(word);
            match kind {
                StopKind::Refused => record_refusal(worker, close).await,
                StopKind::Length => record_truncated_answer(worker, close).await,
                StopKind::Finished => record_complete_answer(worker, close).await,
            }
        }
    }
}

/// The parts of the prompt that was sent: the state has nothing of its answer yet.
fn prompt_parts(worker: &Worker, call: &ModelCall) -> PromptParts {
    let (state, toolset) = (worker.state(), worker.toolset());
    let ContextBreakdown { memory, summary, pins, turns, tool_output, .. } =
        ContextBreakdown::of_items(&state.items, state.preface_len);
    let tools = if call.capabilities.tools { toolset.tools_tokens() } else { 0 };
    PromptParts { system: toolset.system_tokens(), tools, memory, summary, pins, turns, tool_output }
}

fn open_attempt(worker: &Worker) -> Option<&state::Attempt> {
    worker.state().turn.as_ref()?.attempt.as_ref()
}

/// The complete blocks of the open attempt.
pub(super) fn open_items(worker: &Worker) -> &[Arc<Item>] {
    open_attempt(worker).map_or(&[], |attempt| &attempt.blocks[..])
}

/// The records that close the open attempt of a turn that ends now. If the user interrupted it, its unfinished text
/// is kept.
pub(super) fn stopped_attempt(worker: &Worker, reason: &str) -> Vec<SessionRecord> {
    let Some(attempt) = open_attempt(worker) else { return vec![] };
    let block = attempt.interrupted_block().filter(|_| worker.state().is_cancelled());
    let kept = match block {
        Some(_) => attempt.blocks_kept_on_cancel(),
        None => attempt.blocks_kept_on_stop(),
    };
    let ended = SessionRecord::AttemptEnded(attempt_ended(attempt.id, kept, Some(reason)));
    block.map(SessionRecord::Block).into_iter().chain([ended]).collect()
}

/// Warnings about the model that the user gets only once in a session.
fn model_warnings(worker: &Worker, call: &ModelCall) -> Vec<SessionRecord> {
    let [no_tools, window_assumed, cost_unknown, ..] = GIVEN_ONCE;
    let is_new = |code: &str| !worker.state().given_warnings.contains(code);
    let mut warnings = Vec::new();
    let name = call.model.name();
    if !call.capabilities.tools && !worker.toolset().schemas().is_empty() && is_new(no_tools) {
        warnings.push(warning(no_tools, format!("{name} can't call tools; continuing without them")));
    }
    let has_cost_limit = worker.runtime().spend.limits().has_cost_limit();
    if has_cost_limit && call.capabilities.prices.is_none() && is_new(cost_unknown) {
        let text =
            format!("no price is known for {name}, so cost limits don't apply; add prices in providers.toml");
        warnings.push(warning(cost_unknown, text));
    }
    let assumed = call.capabilities.window.filter(|window| window.source == WindowSource::HostedDefault);
    if let Some(window) = assumed.filter(|_| is_new(window_assumed)) {
        let text = format!(
            "the context size of {name} is unknown, assuming {} tokens; set model.context_window",
            window.tokens
        );
        warnings.push(warning(window_assumed, text));
    }
    warnings
}

/// Warns about a server that silently truncates long prompts: it counted far fewer tokens than were sent.
fn truncated_prompt_warning(worker: &Worker, call: &ModelCall, counted: u64) -> Option<SessionRecord> {
    let counting = worker.state().token_counts.get(call.model.name())?;
    counting.calibration.is_truncated_by_server(call.estimated, counted).then(|| {
        let sent = counting.calibration.correct(call.estimated);
        let text = format!(
            "{} read only {counted} of about {sent} tokens: the server silently truncates long prompts; \
             the context is kept within that size, unless the system prompt and tools need it",
            call.model.name()
        );
        warning("prompt_cut", text)
    })
}

/// Records an answer that ended normally. If it is empty, the model is called once more.
async fn record_complete_answer(worker: &mut Worker, mut close: AttemptClose<'_>) -> WorkerResult<()> {
    let items = open_items(worker);
    if items.iter().any(|item| has_content(item)) {
        close.keep(items.len());
    } else if items.iter().any(|item| matches!(**item, Item::Reasoning { .. })) {
        return record_silent_answer(worker, close).await;
    } else if worker.models_mut().count_empty_answer() == 1 {
        close.ended.error = Some("an empty answer".to_owned());
    } else {
        let name = close.call.model.name();
        close.warn("empty_answer", format!("{name} gave an empty answer twice"));
    }
    worker.commit(close.into_records(), vec![]).await
}

/// Records an answer that was only reasoning. The model is called once more, then gets a note to answer. After that
/// the turn gives up.
async fn record_silent_answer(worker: &mut Worker, mut close: AttemptClose<'_>) -> WorkerResult<()> {
    let silent_answers = worker.models_mut().count_silent_answer();
    if silent_answers > 2 {
        let name = close.call.model.name();
        let message = format!("{name} only reasons and never answers; choose another model");
        return discard_and_retry(worker, close, ModelFailure::new(FailureClass::Empty, message)).await;
    }
    close.ended.error = Some("reasoning without an answer".to_owned());
    if silent_answers == 2 {
        close.after.push(SessionRecord::Note(Note::new(ANSWER_NOW_NOTE)));
    }
    worker.commit(close.into_records(), vec![]).await
}

/// Records that the model refused to answer, with its own words.
async fn record_refusal(worker: &mut Worker, close: AttemptClose<'_>) -> WorkerResult<()> {
    let text = open_attempt(worker).map(state::Attempt::text).unwrap_or_default();
    let quote: String = text.trim().chars().take(MAX_REFUSAL_CHARS).collect();
    let quote = if quote.is_empty() { String::new() } else { format!(": {quote}") };
    let message = format!(
        "{} declined to answer ({}){quote}; rephrase the request, or choose another model",
        close.call.model.name(),
        close.ended.stop.as_deref().unwrap_or_default()
    );
    discard_and_retry(worker, close, ModelFailure::new(FailureClass::Refused, message)).await
}

/// Records a failed attempt. If it has a complete call, the step ends there. If a different request may succeed, that
/// is sent next. Otherwise the same request is retried.
async fn record_failure(
    worker: &mut Worker,
    mut close: AttemptClose<'_>,
    failure: ModelFailure,
) -> WorkerResult<()> {
    let call = close.call;
    let kept = match failure.class {
        FailureClass::TooLarge => 0,
        _ => open_attempt(worker).map_or(0, state::Attempt::blocks_kept_on_failure),
    };
    if kept > 0 {
        close.keep(kept);
        close.warn("answer_cut", format!("{failure}; keeping the part that is complete"));
        if let Some(name) = close.unfinished_call.take() {
            let note = format!(
                "Your answer broke off in a call of `{name}`: that call was discarded and did not run. Make it again if it is \
                 still needed."
            );
            close.after.push(SessionRecord::Note(Note::new(&note)));
        }
        close.ended.error = Some(failure.message);
        return worker.commit(close.into_records(), vec![]).await;
    }
    let settings = &worker.runtime().config.settings.model;
    let is_longer =
        call.request.max_output > Some(worker.models().base_answer_tokens(settings, &call.capabilities));
    let state = worker.state();
    let prompt = crate::compaction::plan::next_prompt_tokens(state, &worker.policy().context);
    let corrected = correct_limits(worker, call, &failure, prompt).await;
    close.after.extend(corrected.map(|corrected| limits_warning(call, corrected)));
    let is_smaller = corrected.is_some() && is_next_request_smaller(worker, call, prompt).await?;
    let is_different = is_smaller
        || match failure.class {
            // The same prompt is never sent again: `decide` compacts the context first.
            FailureClass::TooLong => {
                close.ended.too_long = Some(prompt);
                true
            }
            FailureClass::RoleOrder if worker.models_mut().may_reorder() => {
                if !worker.state().given_warnings.contains(ROLE_ORDER) {
                    close.warn(ROLE_ORDER, &failure.message);
                }
                true
            }
            FailureClass::NoTools if !call.request.tools.is_empty() => {
                worker.models_mut().disable_tools();
                true
            }
            FailureClass::Invalid if is_longer => {
                worker.models_mut().disable_longer_answers();
                true
            }
            _ => false,
        };
    if !is_different {
        return discard_and_retry(worker, close, failure).await;
    }
    close.ended.error = Some(failure.message);
    worker.commit(close.into_records(), vec![]).await
}

/// Discards the attempt, and retries, falls back or ends the turn.
async fn discard_and_retry(
    worker: &mut Worker,
    mut close: AttemptClose<'_>,
    failure: ModelFailure,
) -> WorkerResult<()> {
    close.ended.error = Some(failure.message.clone());
    retry_or_fall_back(worker, &failure, close.into_records()).await
}

/// Whether an item is a call or text that is not blank.
pub(super) fn has_content(item: &Item) -> bool {
    match item {
        Item::Text { text, .. } => !text.trim().is_empty(),
        Item::ToolCall { .. } => true,
        _ => false,
    }
}

fn warning(code: &str, text: impl Into<String>) -> SessionRecord {
    SessionRecord::Warning(Warning::new(code, text))
}

pub(super) fn attempt_ended(attempt: AttemptId, kept: usize, error: Option<&str>) -> AttemptEnded {
    let (kept, error) = (u32::try_from(kept).unwrap_or(u32::MAX), error.map(str::to_owned));
    AttemptEnded { attempt, kept, stop: None, error, goes_on: false, too_long: None }
}
