//! Lets a model write the summary of a context. One call is enough if its first answer is valid. Otherwise there are
//! retries, a smaller request, and the session's own model as the fallback.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use longhaul_context::{
    AnswerForm, ParsedSummary, StructuredAsk, StructuredLimits, SummaryMaterial, WrittenSummary,
    build_summary_prompt, estimate, parse_summary,
};
use longhaul_memory::ReservedCall as _;
use longhaul_model::{
    Capabilities, FailureClass, Model, ModelFailure, Purpose, RefusedSize, Request, RetryDecision,
    RetryState, StopKind, WholeAnswer, complete,
};
use longhaul_protocol::{
    AttemptId, Cause, InboxRecord, Item, JoinMode, OrderKind, Role, SessionRecord, Usage, Warning,
};

use crate::compaction::plan::CompactionTrigger;
use crate::session::state::Turn;
use crate::spend::{
    AtSoftLimit, CallBound, LimitReached, NewCall, ReserveOutcome, SoftLimits, Urgency, WantedCall,
};
use crate::turn::fallback::max_answer_tokens;
use crate::turn::retry::retry_event;
use crate::worker::wait::{WaitOutcome, Wakeup};
use crate::worker::{Worker, WorkerResult};

/// The request may take this many tenths of the model's room, because its size is only estimated.
const REQUEST_TENTHS: u64 = 9;
/// A model gets two attempts at a valid summary, and three smaller requests if it finds them too long.
const SUMMARY_LIMITS: StructuredLimits =
    StructuredLimits { unusable_answers: 2, cut_answers: 0, halvings: 3, min_budget: 0 };
/// A text with fewer words is not a summary.
const MIN_SUMMARY_WORDS: usize = 8;

pub(super) enum SummaryOutcome {
    Written(Box<WrittenSummary>),
    Failed(String),
    /// Summaries are turned off.
    NotWanted,
    /// The turn should end, or an idle session got an input.
    Stopped,
    Suspended,
}

/// Summarises everything after the preface, together with the previous summary.
pub(super) async fn summarise(
    worker: &mut Worker,
    trigger: CompactionTrigger,
    focus: Option<&str>,
    usages: &mut Vec<Usage>,
    after: &mut Vec<SessionRecord>,
) -> WorkerResult<SummaryOutcome> {
    let mut models = summary_models(worker, after).into_iter();
    let mut last = "no model is available".to_owned();
    while let Some(model) = models.next() {
        match summarise_with(worker, model.clone(), trigger, focus, usages).await? {
            SummaryOutcome::Failed(reason) => last = reason,
            outcome => return Ok(outcome),
        }
        if models.len() > 0 {
            after.extend(summary_model_warning(worker, &format!("{} failed: {last}", model.name())));
        }
    }
    Ok(SummaryOutcome::Failed(last))
}

/// The configured model for summaries, then the session's own model as its fallback.
fn summary_models(worker: &Worker, after: &mut Vec<SessionRecord>) -> Vec<Arc<dyn Model>> {
    let own = match worker.state().turn {
        Some(_) if !worker.has_new_model_choice() => worker.models().model(),
        _ => worker.model_chain().primary(),
    };
    match worker.runtime().summary_model() {
        None => vec![own],
        Some(Ok(model)) if model.name() == own.name() => vec![own],
        Some(Ok(model)) => vec![model, own],
        Some(Err(error)) => {
            after.extend(summary_model_warning(worker, &error.to_string()));
            vec![own]
        }
    }
}

fn summary_model_warning(worker: &Worker, reason: &str) -> Option<SessionRecord> {
    let code = "summary_model";
    let text = format!("can't use context.summary_model: {reason}; using the session's model");
    (!worker.state().given_warnings.contains(code)).then(|| SessionRecord::Warning(Warning::new(code, text)))
}

/// A summary call. Failures change it from try to try.
struct SummaryCall {
    model: Arc<dyn Model>,
    capabilities: Capabilities,
    /// The form of the answer, and the maximum size of the request in estimated tokens.
    ask: StructuredAsk,
    /// The maximum length of the answer, in tokens.
    max_answer: u64,
}

impl SummaryCall {
    fn new(worker: &Worker, model: Arc<dyn Model>, capabilities: Capabilities) -> Self {
        let settings = &worker.runtime().config.settings.model;
        let (name, space) = (model.name(), &worker.policy().context);
        let is_own = name == space.model;
        let window = capabilities.window.map(|window| window.tokens);
        let room = space.room.filter(|room| is_own && window.is_none_or(|window| room.window <= window));
        let (usable, max_answer) = match room {
            Some(room) => (Some(room.usable()), room.answer),
            None => {
                let answer = max_answer_tokens(settings.max_output_tokens, &capabilities, window);
                (window.map(|window| window.saturating_sub(answer)), answer)
            }
        };
        let calibration = worker.state().calibration(name);
        let max_request =
            usable.map_or(u64::MAX, |usable| calibration.largest_within(usable) / 10 * REQUEST_TENTHS);
        let has_tools = capabilities.tools && !(is_own && worker.models().refuses_tools());
        let form = if has_tools { AnswerForm::ToolCall } else { AnswerForm::Text };
        Self { model, capabilities, ask: StructuredAsk::new(form, max_request, SUMMARY_LIMITS), max_answer }
    }

    fn request(&self, worker: &Worker, focus: Option<&str>) -> Request {
        let state = worker.state();
        let items = &state.items[state.preface_len..];
        let material = SummaryMaterial { previous: state.summary.as_ref(), items, focus };
        let prompt = build_summary_prompt(&material, self.ask.form, self.ask.budget);
        let summaries_before = usize::try_from(state.compaction.count).unwrap_or(usize::MAX);
        Request {
            system: prompt.system.into(),
            tools: prompt.tools.into(),
            items: vec![Arc::new(Item::Text { role: Role::User, text: prompt.text })],
            max_output: Some(self.max_answer),
            purpose: Purpose::Summary { summaries_before },
            ..Request::default()
        }
    }

    /// The summary in an answer, or why there is none. `None` if the model should be called again, for plain text.
    ///
    /// A model that fails to call the tool, writes prose instead or is truncated may still be able to write the
    /// summary as text. If it writes prose again, that is the summary: small models can't do better.
    fn read_answer(&mut self, answer: &WholeAnswer) -> Option<Result<WrittenSummary, String>> {
        let read = parse_summary(&answer.items);
        let is_whole = answer.stop != StopKind::Length && matches!(read, Ok(ParsedSummary::InForm(_)));
        if !is_whole && self.ask.reject_answer(String::new(), false).is_ok() {
            self.ask.switch_to_text();
            return None;
        }
        let name = self.model.name();
        Some(match read {
            Ok(ParsedSummary::Prose(written)) if is_too_brief(&written.summary.notes) => {
                Err(format!("{name} wrote only a few words, not a summary"))
            }
            Ok(ParsedSummary::InForm(written) | ParsedSummary::Prose(written)) => Ok(written),
            Err(reason) => Err(format!("{name} wrote no summary: {reason}")),
        })
    }

    /// Changes the request after a failure, if another one may succeed: plain text for a model without tools, a
    /// smaller request if it was too long. `prompt` is the estimated size of the failed request.
    async fn adapt(&mut self, worker: &Worker, failure: &ModelFailure, prompt: u64) -> bool {
        match failure.class {
            FailureClass::NoTools => return self.ask.switch_to_text(),
            FailureClass::TooLong => {
                let before = self.ask.budget;
                if !self.ask.halve_budget() {
                    return false;
                }
                let size = RefusedSize { prompt, answer: self.max_answer };
                if self.model.correct_limits(failure, size).await.is_some() {
                    let capabilities = self.model.capabilities().await;
                    let corrected = Self::new(worker, self.model.clone(), capabilities);
                    self.ask.budget = corrected.ask.budget.min(before);
                    (self.capabilities, self.max_answer) = (corrected.capabilities, corrected.max_answer);
                }
            }
            _ => return false,
        }
        true
    }
}

/// Lets one model write the summary, with retries.
async fn summarise_with(
    worker: &mut Worker,
    model: Arc<dyn Model>,
    trigger: CompactionTrigger,
    focus: Option<&str>,
    usages: &mut Vec<Usage>,
) -> WorkerResult<SummaryOutcome> {
    let capabilities = {
        let mut capabilities = model.capabilities();
        match wait_without_taking_inbox(worker, &mut capabilities, trigger, |_| false).await? {
            WaitOutcome::Done(capabilities) => capabilities,
            WaitOutcome::Interrupted | WaitOutcome::Deadline => return Ok(SummaryOutcome::Stopped),
            WaitOutcome::Suspended => return Ok(SummaryOutcome::Suspended),
        }
    };
    let mut call = SummaryCall::new(worker, model, capabilities);
    let config = &worker.runtime().config;
    let mut tries = RetryState::new(config.retry_mode.policy(&config.settings.retry).for_background());
    loop {
        let mut request = call.request(worker, focus);
        let prompt = estimate(&request.system, &request.tools, &request.items);
        let reservation = {
            let mut reserving = Box::pin(reserve_summary(worker, &call, prompt, trigger));
            match wait_without_taking_inbox(worker, &mut reserving, trigger, |_| false).await? {
                WaitOutcome::Done(reserved) => match reserved? {
                    ReserveOutcome::Granted(reservation) => reservation,
                    ReserveOutcome::Reached(LimitReached { text, .. })
                    | ReserveOutcome::Ask(SoftLimits { text, .. }) => {
                        return Ok(SummaryOutcome::Failed(text));
                    }
                },
                WaitOutcome::Interrupted | WaitOutcome::Deadline => return Ok(SummaryOutcome::Stopped),
                WaitOutcome::Suspended => return Ok(SummaryOutcome::Suspended),
            }
        };
        request.max_output = Some(reservation.max_answer());
        let heard = {
            let (model, facts) = (&*call.model, &call.capabilities);
            let mut hearing = Box::pin(complete(model, request, facts, reservation.permit()));
            match wait_without_taking_inbox(worker, &mut hearing, trigger, |_| false).await? {
                WaitOutcome::Done(heard) => heard,
                WaitOutcome::Interrupted | WaitOutcome::Deadline => return Ok(SummaryOutcome::Stopped),
                WaitOutcome::Suspended => return Ok(SummaryOutcome::Suspended),
            }
        };
        drop(reservation);
        let usage = heard.usage;
        if usage.input.is_some() || usage.output.is_some() || !usage.limits.is_empty() {
            usages.push(usage);
        }
        let failure = match heard.answer {
            Ok(answer) => match call.read_answer(&answer) {
                Some(Ok(written)) => return Ok(SummaryOutcome::Written(Box::new(written))),
                Some(Err(reason)) => return Ok(SummaryOutcome::Failed(reason)),
                None => continue,
            },
            Err(failure) => failure,
        };
        if call.adapt(worker, &failure, prompt).await {
            continue;
        }
        let redactor = worker.runtime().redactor.clone();
        let mut wait = match tries.failed(&failure, fastrand::f64()) {
            RetryDecision::Wait(wait) => wait,
            RetryDecision::GiveUp(spent) => {
                return Ok(SummaryOutcome::Failed(redactor.redact(&spent.to_string()).into_owned()));
            }
        };
        wait.reason = redactor.redact(&wait.reason).into_owned();
        let delay = wait.delay;
        // Counted before the wait is shown. A user who sees the wait and orders a retry means this wait.
        let before = count_retry_orders(&worker.peek_inbox().await);
        worker.show(retry_event(wait));
        let mut sleep = pin!(tokio::time::sleep(delay));
        let is_retry_ordered = |waiting: &[InboxRecord]| count_retry_orders(waiting) > before;
        match wait_without_taking_inbox(worker, &mut sleep, trigger, is_retry_ordered).await? {
            WaitOutcome::Done(()) | WaitOutcome::Deadline => {}
            WaitOutcome::Interrupted => return Ok(SummaryOutcome::Stopped),
            WaitOutcome::Suspended => return Ok(SummaryOutcome::Suspended),
        }
    }
}

/// Reserves a call for a summary.
fn reserve_summary(
    worker: &Worker,
    call: &SummaryCall,
    prompt: u64,
    trigger: CompactionTrigger,
) -> impl Future<Output = longhaul_journal::Result<ReserveOutcome>> + use<> {
    let (runtime, session, state) = (worker.runtime().clone(), worker.id(), worker.state());
    let turn = state.turn.as_ref();
    let input = state.calibration(call.model.name()).correct(prompt);
    let bound = CallBound::new(input, call.max_answer, call.capabilities.prices.as_ref());
    let new = NewCall {
        attempt: AttemptId::generate(),
        cause: Cause::Compaction,
        model: call.model.name().to_owned(),
        prices: call.capabilities.prices,
        wanted: WantedCall {
            scope: runtime.spend.scope(session, turn.map(Turn::scoped), state.parent()),
            bound,
            urgency: match trigger {
                CompactionTrigger::Idle => runtime.spend.background(session, bound),
                _ => Urgency::Foreground { at_soft: AtSoftLimit::LeaveToNextCall },
            },
            consents: turn.map(|turn| turn.budget_consents.clone()).unwrap_or_default(),
        },
    };
    async move { runtime.spend.reserve(new).await }
}

/// Waits for work to finish and renews the lease, but takes nothing from the inbox. New inputs are taken after the
/// compaction.
///
/// Returns interrupted if the turn should end, or if an idle session got an input. Returns `Deadline` if `is_due`
/// says so about the inbox.
async fn wait_without_taking_inbox<T>(
    worker: &mut Worker,
    work: &mut (impl Future<Output = T> + Unpin),
    trigger: CompactionTrigger,
    is_due: impl Fn(&[InboxRecord]) -> bool,
) -> WorkerResult<WaitOutcome<T>> {
    loop {
        let deadline = worker.update_deadline();
        let waiting = worker.peek_inbox().await;
        if worker.policy().must_end_turn() || should_stop(worker, trigger, &waiting) {
            return Ok(WaitOutcome::Interrupted);
        }
        if is_due(&waiting) {
            return Ok(WaitOutcome::Deadline);
        }
        match worker.next_wakeup(work, deadline).await? {
            Wakeup::Done(done) => return Ok(WaitOutcome::Done(done)),
            Wakeup::Suspended => return Ok(WaitOutcome::Suspended),
            Wakeup::Notified | Wakeup::Heartbeat | Wakeup::Timer => {}
        }
    }
}

/// Whether the compaction should stop: for a cancel, for an interrupting input, or for anything in the inbox of an
/// idle session.
fn should_stop(worker: &Worker, trigger: CompactionTrigger, waiting: &[InboxRecord]) -> bool {
    if trigger == CompactionTrigger::Idle && (!waiting.is_empty() || !worker.slot().is_idle_work_requested())
    {
        return true;
    }
    waiting.iter().any(|record| match record {
        InboxRecord::Order(order) => order.kind == OrderKind::Cancel,
        InboxRecord::Input(input) => {
            input.mode == JoinMode::Interrupt && worker.state().may_interrupt(&input.sender)
        }
        InboxRecord::Unknown { .. } => false,
    })
}

/// Whether prose is too short to be a summary, such as a refusal or a greeting.
fn is_too_brief(prose: &str) -> bool {
    prose.split_whitespace().count() < MIN_SUMMARY_WORDS
}

/// M6: how many orders to retry now are in the inbox.
fn count_retry_orders(waiting: &[InboxRecord]) -> usize {
    let is_retry =
        |record: &&InboxRecord| matches!(record, InboxRecord::Order(order) if order.kind == OrderKind::Retry);
    waiting.iter().filter(is_retry).count()
}
