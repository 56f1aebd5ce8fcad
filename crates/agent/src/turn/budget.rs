//! The budget of a turn: whether the next model call fits the limits, the question before a soft limit is passed, and the
//! reservation of the call. The ledger itself is in `spend`.

use std::pin::pin;

use longhaul_context::estimate_text;
use longhaul_model::Capabilities;
use longhaul_protocol::{
    Answer, AttemptId, Cause, Question, QuestionId, QuestionKind, SessionRecord, Warning,
};

use crate::compaction::plan::next_prompt_tokens;
use crate::session::decide::BudgetCheck;
use crate::spend::{
    AtSoftLimit, CallBound, LimitKind, NewCall, Reservation, ReserveOutcome, ScopedTurn, SoftLimits, Urgency,
    Verdict, WantedCall,
};
use crate::turn::end::withdraw_question;
use crate::turn::request::{fixed_tokens, load_capabilities};
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult};

/// The answer to a question about soft limits that is decided elsewhere.
const DECIDED: &str = "withdrawn: another session has the answer, or the limit is gone";

/// Judges the next model call of the open turn, or of the one that is about to begin, so that `decide` can end the turn
/// or ask before anything is spent.
pub(crate) async fn check_budget(worker: &mut Worker) -> WorkerResult<()> {
    if let Some(check) = worker.take_refused_call() {
        worker.set_budget(check);
        return Ok(());
    }
    let runtime = worker.runtime().clone();
    let scope = runtime.spend.scope(worker.id(), Some(next_turn(worker)), worker.state().parent());
    if !runtime.spend.is_limited(&scope) {
        return Ok(());
    }
    let starts_chain = worker.state().turn.is_none() || worker.has_new_model_choice();
    let model = if starts_chain { worker.model_chain().primary() } else { worker.models().model() };
    let Some(capabilities) = load_capabilities(worker, &model).await? else { return Ok(()) };
    let bound = next_call_bound(worker, &capabilities);
    let wanted = wanted_call(worker, bound, next_turn(worker));
    let verdict = {
        let mut judging = pin!(runtime.spend.judge(&wanted));
        worker.wait_for(&mut judging, WakeOn::Cancel, None).await?.into_done()?
    };
    worker.set_budget(match verdict {
        // The turn ends anyway.
        None => BudgetCheck::Fits,
        Some(verdict) => match verdict? {
            Verdict::Fits { .. } | Verdict::Wait => BudgetCheck::Fits,
            Verdict::Reached(reached) => BudgetCheck::Reached(reached),
            Verdict::Ask(soft) => BudgetCheck::Ask(soft),
        },
    });
    Ok(())
}

/// The open turn, or the next one.
fn next_turn(worker: &Worker) -> ScopedTurn {
    let state = worker.state();
    match &state.turn {
        Some(turn) => turn.scoped(),
        None => ScopedTurn {
            number: state.turn_count.saturating_add(1),
            max_cost_nano: state.next_turn_max_cost_nano(),
        },
    }
}

/// The most that the next call of a turn can use.
fn next_call_bound(worker: &Worker, capabilities: &Capabilities) -> CallBound {
    let (state, context) = (worker.state(), &worker.policy().context);
    let mut input = next_prompt_tokens(state, context);
    if context.room.is_none() {
        input = input.saturating_add(fixed_tokens(worker, capabilities));
    }
    let settings = &worker.runtime().config.settings.model;
    let answer = worker.models().answer_tokens(settings, capabilities);
    CallBound::new(input, answer, capabilities.prices.as_ref())
}

fn wanted_call(worker: &Worker, bound: CallBound, turn: ScopedTurn) -> WantedCall {
    WantedCall {
        scope: worker.runtime().spend.scope(worker.id(), Some(turn), worker.state().parent()),
        bound,
        urgency: Urgency::Foreground {
            at_soft: if worker.is_attended() { AtSoftLimit::Ask } else { AtSoftLimit::Warn },
        },
        consents: worker.state().turn.as_ref().map(|turn| turn.budget_consents.clone()).unwrap_or_default(),
    }
}

/// Why the open turn, or the one that is about to begin, calls a model.
pub(super) fn turn_cause(worker: &Worker) -> Cause {
    let state = worker.state();
    state.turn.as_ref().map_or_else(|| state.next_turn_cause(), |turn| turn.cause)
}

/// Reserves a call of the selected model. `None` if it may not be made now: then the turn ends or asks first.
pub(super) async fn reserve_call(
    worker: &mut Worker,
    attempt: AttemptId,
    opening: &[SessionRecord],
) -> WorkerResult<Option<Reservation>> {
    let model = worker.models().model();
    let Some(capabilities) = load_capabilities(worker, &model).await? else { return Ok(None) };
    let notes: u64 = opening.iter().map(note_tokens).sum();
    let bound = next_call_bound(worker, &capabilities);
    let bound =
        CallBound::new(bound.input.saturating_add(notes), bound.max_output, capabilities.prices.as_ref());
    let call = NewCall {
        attempt,
        cause: turn_cause(worker),
        model: model.name().to_owned(),
        prices: capabilities.prices,
        wanted: wanted_call(worker, bound, next_turn(worker)),
    };
    let runtime = worker.runtime().clone();
    runtime.spend.remember_call(worker.id(), bound);
    let mut reserving = pin!(runtime.spend.reserve(call));
    let Some(outcome) = worker.wait_for(&mut reserving, WakeOn::Cancel, None).await?.into_done()? else {
        return Ok(None);
    };
    match outcome? {
        ReserveOutcome::Granted(reservation) => return Ok(Some(reservation)),
        ReserveOutcome::Reached(reached) => worker.refuse_call(BudgetCheck::Reached(reached)),
        ReserveOutcome::Ask(soft) => worker.refuse_call(BudgetCheck::Ask(soft)),
    }
    Ok(None)
}

fn note_tokens(record: &SessionRecord) -> u64 {
    match record {
        SessionRecord::Note(note) => estimate_text(&note.text),
        _ => 0,
    }
}

/// Asks the user whether the turn may pass soft limits.
pub(crate) async fn ask_about_budget(worker: &mut Worker, soft: SoftLimits) -> WorkerResult<()> {
    let choices = [Answer::Yes, Answer::No].map(|answer| answer.word().to_owned()).to_vec();
    let question = Question::new(QuestionId::generate(), QuestionKind::Budget, soft.text);
    let question = Question { choices, reasons: soft.names, ..question };
    worker.commit(vec![SessionRecord::Question(question)], vec![]).await
}

/// Waits for the answer to a question. Sessions that reach a soft limit together all ask, and one answer counts for all: the
/// question of each other session is withdrawn, and the ledger then says how its turn goes on.
pub(crate) async fn await_answer(worker: &mut Worker, question: QuestionId) -> WorkerResult<()> {
    let asked = worker.state().question(question).filter(|asked| asked.kind == QuestionKind::Budget);
    let (soft_limits, runtime) = (asked.map(|asked| asked.reasons.clone()), worker.runtime().clone());
    let mut decided = pin!(async {
        match soft_limits {
            Some(names) => runtime.spend.wait_until_decided(&names).await,
            None => std::future::pending().await,
        }
    });
    let waited = worker.wait_for(&mut decided, WakeOn::Answer(question), None).await?;
    match waited.into_done()? {
        Some(()) => worker.commit(vec![withdraw_question(question, DECIDED)], vec![]).await,
        None => Ok(()),
    }
}

/// The warning that a call passes soft limits, in a session that no one attends.
pub(super) fn soft_limit_warning(worker: &Worker, reservation: &Reservation) -> Option<SessionRecord> {
    let consents = worker.state().turn.as_ref().map(|turn| turn.budget_consents.as_slice());
    let is_agreed = |name: &&String| consents.is_some_and(|consents| consents.contains(name));
    let new = reservation.past_soft.iter().filter(|name| !is_agreed(name));
    let names: Vec<String> = new.filter_map(|name| Some(LimitKind::of_soft_name(name)?.setting())).collect();
    let soft = worker.runtime().config.settings.limits.soft;
    (!names.is_empty()).then(|| {
        let text = format!("passing {:.0}% of {}", soft * 100.0, names.join(", "));
        SessionRecord::Warning(Warning::new("soft_limit", text))
    })
}
