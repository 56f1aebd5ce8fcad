//! When and how a context is compacted, decided from the state and the model's limits. No clock, no disk, no network.
//!
//! The cheapest option that helps: nothing; stubs for old tool output; a summary, or dropping by rule.
//! `compaction::compact` carries it out.

use std::sync::Arc;

use longhaul_context::{
    CompactionThresholds, ContextBudget, ContextOutline, TokenCalibration, compaction_threshold,
    estimate_items, estimate_text,
};
use longhaul_protocol::{CallId, InputId, Item, JoinMode, PendingInput, Seq, SessionRecord};

use crate::config::{ContextSettings, Summary};
use crate::session::decide::Policy;
use crate::session::state::{State, TurnRequest};

/// Failures in a row that open the circuit breaker.
const BREAKER_FAILURES: u32 = 3;
/// The breaker closes again after the context has grown by 1/20 of the usable tokens.
const BREAKER_GROWTH_DIVISOR: u64 = 20;
/// Answered requests of an open turn are kept within 1/4 of the usable tokens.
const REQUESTS_DIVISOR: u64 = 4;
/// Stubs must free at least 1/10 of the window.
const STUB_GAIN_DIVISOR: u64 = 10;
/// Inputs that enter together may fill 8/10 of the usable tokens, counting everything that stays.
const MAX_INPUT_TENTHS: u64 = 8;
/// The budget of a model whose window is unknown: practically unlimited.
const UNKNOWN_ROOM: ContextBudget = ContextBudget { window: 1 << 40, answer: 0, fixed: 0 };
/// The most compactions without a finished step between them.
const MAX_COMPACTIONS_IN_A_ROW: u32 = 2;
/// With so many quiet turns in the context, the next turn drops them. Each drop begins an epoch and costs the provider's cache from the
/// first of them on, so it isn't done for every one.
const MAX_QUIET_TURNS: usize = 8;

/// The compactions of a session so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The reason of a compaction that began and has no recorded end.
    pub open_reason: Option<String>,
    /// A compaction that the user requested.
    pub requested: Option<CompactionRequest>,
    /// Compactions so far.
    pub count: u64,
    /// Compactions since the last answer.
    pub count_since_answer: u32,
    /// Answers since the last compaction.
    pub answers_since_last: u64,
    /// Failures in a row.
    pub failures: u32,
    /// The size of the context at the last failure, in tokens.
    pub failed_at: Option<u64>,
    /// A compaction failed since the last answer, or in this turn.
    pub failed_since_answer: bool,
    /// Like `failed_since_answer`, and the next request did not fit.
    pub cannot_fit: bool,
    /// The last record that a compaction covers.
    pub covered_through: Seq,
    /// The open compaction is being replayed, but the record of its epoch is gone.
    pub lost_epoch_record: bool,
}

/// The user's request for a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionRequest {
    /// What the summary should focus on.
    pub focus: Option<String>,
}

/// Why a context is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// It is over the threshold, and a turn is about to begin.
    BeforeTurn,
    /// It is over the threshold, in the middle of a turn.
    WithinTurn,
    /// It is over the lower threshold of idle sessions.
    Idle,
    /// The model refused the prompt as too long.
    Overflow,
    /// The user requested it.
    Requested,
}

impl CompactionTrigger {
    /// The word for it, in records and events.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BeforeTurn => "before_turn",
            Self::WithinTurn => "within_turn",
            Self::Idle => "idle",
            Self::Overflow => "overflow",
            Self::Requested => "asked",
        }
    }
}

/// The moment at which the size of a context is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeCheck {
    /// No turn is open or due.
    AtRest,
    /// A turn is about to begin.
    BeforeTurn,
    /// The model is about to be called in an open turn.
    WithinTurn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompactionChoice {
    Nothing,
    /// Drop the heartbeats that found nothing to do.
    DropQuietTurns,
    /// Replace the old output of these calls by stubs.
    Stub(Vec<CallId>),
    Compact(CompactionTrigger),
    /// No compaction makes it fit. Holds the calculation as a text.
    Impossible(String),
}

/// The limits of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextLimits {
    /// The model of the next call.
    pub model: String,
    /// Its token budget, if the window is known.
    pub room: Option<ContextBudget>,
    /// The thresholds for compacting.
    pub checks: CompactionThresholds,
    /// Whether a model writes summaries. Otherwise old exchanges are dropped by rule.
    pub has_summaries: bool,
    /// Whether the session is idle.
    pub is_idle: bool,
}

/// A server that truncates prompts limits the context if it reads at least 12/10 of the system prompt and the tools.
const MIN_CUT_TENTHS: u64 = 12;
/// After a refused prompt, the next one has at most 9/10 of its size.
const REFUSED_TENTHS: u64 = 9;

impl ContextLimits {
    /// The limits of this model. `fixed` is the uncalibrated estimate of system prompt and tools.
    pub fn new(
        state: &State,
        model: &str,
        window: Option<u64>,
        answer: u64,
        fixed: u64,
        settings: &ContextSettings,
    ) -> Self {
        let counting = state.token_counts.get(model);
        // The limit from a truncated prompt is void once the user has set a larger window.
        let cut = counting.and_then(|counting| counting.truncated_prompt).filter(|cut| {
            !window.zip(cut.window).is_some_and(|(now, then)| now != then && now > cut.tokens_read)
        });
        // One that leaves no room beside the system prompt and the tools is no limit to work with, and may be a wrong count: the
        // request is sent, and the user has been warned.
        let fixed = state.calibrated(model, fixed);
        let cut = cut.filter(|cut| cut.tokens_read >= (fixed / 10).saturating_mul(MIN_CUT_TENTHS));
        let refused = counting.and_then(|counting| counting.refused_at);
        let seen =
            cut.map(|cut| cut.tokens_read).into_iter().chain(refused.map(|at| at / 10 * REFUSED_TENTHS));
        let window = window.into_iter().chain(seen.map(|prompt| prompt.saturating_add(answer))).min();
        let room = window.map(|window| ContextBudget { window, answer, fixed });
        let usable = room.map_or(0, |room| room.usable());
        // A share of an unknown window gives no threshold. A number of tokens does.
        let at = |share: f64, tokens| {
            compaction_threshold(if room.is_some() { share } else { 0.0 }, tokens, usable)
        };
        let checks = CompactionThresholds {
            before_turn: at(settings.compact_at, settings.compact_at_tokens),
            within_turn: at(settings.compact_now_at, settings.compact_now_at_tokens),
            idle: at(settings.compact_idle_at, settings.compact_idle_at_tokens),
        };
        let has_summaries = settings.summary == Summary::Model;
        Self { model: model.to_owned(), room, checks, has_summaries, is_idle: false }
    }

    /// The most tokens that answered requests of an open turn may keep.
    pub(crate) fn max_request_tokens(&self) -> u64 {
        self.room.map_or(u64::MAX, |room| room.usable() / REQUESTS_DIVISOR)
    }
}

impl Default for ContextLimits {
    /// The limits before anything is known about the model.
    fn default() -> Self {
        let (model, room, checks) = (String::new(), None, CompactionThresholds::default());
        Self { model, room, checks, has_summaries: true, is_idle: false }
    }
}

/// Tokens of the next request.
pub fn next_prompt_tokens(state: &State, space: &ContextLimits) -> u64 {
    let fixed = match space.room {
        Some(room) => room.fixed,
        None => return state.context_tokens(&space.model).0.saturating_add(incoming_tokens(state, space)),
    };
    state.context_tokens_with(&space.model, fixed).0.saturating_add(incoming_tokens(state, space))
}

/// The tokens that the next step adds: pending inputs and notifications of tasks.
pub(crate) fn incoming_tokens(state: &State, space: &ContextLimits) -> u64 {
    // A repeated request adds nothing.
    if state.turn.as_ref().is_some_and(|turn| turn.steps > 0 && !turn.answered) {
        return 0;
    }
    let (joining, _) = split_pending_inputs(state, space);
    let inputs: u64 = joining.iter().map(|input| input_tokens(input)).sum();
    let goes_on =
        state.interrupted_answer.as_ref().filter(|_| state.turn_request == Some(TurnRequest::Continue));
    let added: u64 = state.added_context.iter().map(|added| estimate_text(&added.text)).sum();
    let inputs = inputs + added + goes_on.map_or(0, |text| estimate_text(text));
    let told = state.tasks.announcements().into_iter().map(|fact| match fact {
        SessionRecord::Notification(told) => estimate_text(&told.text),
        SessionRecord::Note(note) => estimate_text(&note.text),
        _ => 0,
    });
    state.calibrated(&space.model, inputs + told.sum::<u64>())
}

/// Splits the pending inputs into those that enter with the next step and those that do not fit. A new turn always
/// takes its first input. An open turn takes none that would force it to end.
fn split_pending_inputs<'a>(
    state: &'a State,
    space: &ContextLimits,
) -> (Vec<&'a PendingInput>, Vec<InputId>) {
    let joins = |input: &&PendingInput| state.turn.is_none() || input.mode == JoinMode::Join;
    let inputs = state.pending_inputs.iter().filter(|input| joins(input) && !input.cancelled);
    let Some(room) = space.room else { return (inputs.collect(), vec![]) };
    let (asked, _) = request_tokens(state, space);
    let most = (room.usable() / 10 * MAX_INPUT_TENTHS).saturating_sub(room.fixed).saturating_sub(asked);
    let (mut joining, mut later, mut sum) = (Vec::new(), Vec::new(), 0);
    for input in inputs {
        sum += input_tokens(input);
        let is_first = state.turn.is_none() && joining.is_empty();
        if later.is_empty() && (is_first || state.calibrated(&space.model, sum) <= most) {
            joining.push(input);
        } else {
            later.push(input.id);
        }
    }
    (joining, later)
}

/// The inputs that do not fit into the next step and wait for a later turn.
pub(crate) fn deferred_inputs(state: &State, space: &ContextLimits) -> Vec<InputId> {
    split_pending_inputs(state, space).1
}

pub(crate) fn context_outline<'a>(
    state: &'a State,
    calibration: &'a TokenCalibration,
    requests: u64,
) -> ContextOutline<'a> {
    // A turn that will be retried is not over.
    let again = state.turn_request.map(|_| state.request_turn);
    let open_turn = state.turn.as_ref().map(|turn| turn.request_turn).or(again);
    ContextOutline {
        items: &state.items,
        places: &state.places,
        preface: state.preface_len,
        open_turn,
        requests,
        calibration,
    }
}

/// Chooses what to do about the size of the context. Quiet turns go first: that needs no model call, and no summary mentions them.
pub(crate) fn choose_compaction(state: &State, policy: &Policy, moment: SizeCheck) -> CompactionChoice {
    let choice = choose_by_size(state, policy, moment);
    let are_many = state.quiet_turns.len() >= MAX_QUIET_TURNS && moment == SizeCheck::BeforeTurn;
    let is_due = are_many || choice != CompactionChoice::Nothing;
    if is_due && !state.quiet_turns.is_empty() { CompactionChoice::DropQuietTurns } else { choice }
}

fn choose_by_size(state: &State, policy: &Policy, moment: SizeCheck) -> CompactionChoice {
    let space = &policy.context;
    let has_history = state.items.len() > state.preface_len;
    if state.compaction.requested.is_some() {
        return CompactionChoice::Compact(CompactionTrigger::Requested);
    }
    // M12: a refusal counts until the context changes.
    let refused = state.turn.as_ref().filter(|turn| turn.refusal.is_some());
    let overflows = refused.map_or(0, |turn| turn.overflow_count);
    let room = space.room.unwrap_or(UNKNOWN_ROOM);
    let need = next_prompt_tokens(state, space);
    if space.room.is_some() && moment != SizeCheck::AtRest && (overflows > 0 || need > room.usable()) {
        return choose_forced_compaction(state, space, room, need, moment, overflows);
    }
    let (check, trigger) = match moment {
        SizeCheck::AtRest if space.is_idle && space.has_summaries => {
            (space.checks.idle, CompactionTrigger::Idle)
        }
        SizeCheck::AtRest => return CompactionChoice::Nothing,
        // The first request of a turn must meet both thresholds.
        SizeCheck::BeforeTurn => (space.checks.before_first_request(), CompactionTrigger::BeforeTurn),
        SizeCheck::WithinTurn => (space.checks.within_turn, CompactionTrigger::WithinTurn),
    };
    let Some(check) = check.filter(|check| need >= *check) else { return CompactionChoice::Nothing };
    if !has_history || state.compaction.answers_since_last == 0 || state.compaction.failed_since_answer {
        return CompactionChoice::Nothing;
    }
    // A truncated answer must not lose its first half, and content that stays anyway can't be compacted.
    let (asked, _) = request_tokens(state, space);
    let stays = room.fixed.saturating_add(asked).saturating_add(incoming_tokens(state, space));
    let goes_on = state.turn.as_ref().is_some_and(|turn| turn.continues_next_step);
    if goes_on || stays >= room.usable() / 10 * 6 {
        return CompactionChoice::Nothing;
    }
    let is_open = state.compaction.failures >= BREAKER_FAILURES
        && state.compaction.failed_at.is_some_and(|at| need < at + room.usable() / BREAKER_GROWTH_DIVISOR);
    match worthwhile_stubs(state, space, room) {
        Some((calls, gains)) if need.saturating_sub(gains) < check => CompactionChoice::Stub(calls),
        _ if is_open => CompactionChoice::Nothing,
        _ => CompactionChoice::Compact(trigger),
    }
}

/// Chooses what to do if the next request does not fit or the model refused it.
fn choose_forced_compaction(
    state: &State,
    space: &ContextLimits,
    room: ContextBudget,
    need: u64,
    moment: SizeCheck,
    overflows: u32,
) -> CompactionChoice {
    let usable = room.usable();
    let (asked, can_shrink) = request_tokens(state, space);
    // The first refusal led to a compaction, which did not help.
    if overflows > 1 || (overflows > 0 && !can_shrink) {
        let refusal = state.turn.as_ref().and_then(|turn| turn.refusal.clone());
        return CompactionChoice::Impossible(refusal.unwrap_or_else(|| does_not_fit_error(need, room)));
    }
    let stubs =
        worthwhile_stubs(state, space, room).filter(|(_, gains)| need.saturating_sub(*gains) <= usable);
    if let (0, Some((calls, _))) = (overflows, stubs) {
        return CompactionChoice::Stub(calls);
    }
    let is_spent = state.compaction.answers_since_last == 0
        && state.compaction.count_since_answer >= MAX_COMPACTIONS_IN_A_ROW;
    let least = room.fixed.saturating_add(asked).saturating_add(incoming_tokens(state, space));
    if room.fixed >= usable {
        return CompactionChoice::Impossible(does_not_fit_error(need, room));
    }
    if least > usable {
        return CompactionChoice::Impossible(request_too_long_error(least, room));
    }
    if state.compaction.cannot_fit || is_spent || !can_shrink {
        return CompactionChoice::Impossible(does_not_fit_error(need, room));
    }
    CompactionChoice::Compact(match (overflows, moment) {
        (1.., _) => CompactionTrigger::Overflow,
        (0, SizeCheck::BeforeTurn) => CompactionTrigger::BeforeTurn,
        (0, _) => CompactionTrigger::WithinTurn,
    })
}

/// The tokens of the open turn's requests, which always stay, and whether the context contains anything else.
fn request_tokens(state: &State, space: &ContextLimits) -> (u64, bool) {
    let calibration = state.calibration(&space.model);
    let asked = context_outline(state, &calibration, 0).open_requests(space.max_request_tokens());
    let items: Vec<Arc<Item>> = asked.iter().map(|index| state.items[*index].clone()).collect();
    let has_more = state.items.len() > state.preface_len + asked.len();
    (state.calibrated(&space.model, estimate_items(&items)), has_more)
}

/// Calls whose old output is worth replacing by stubs, and the tokens gained.
fn worthwhile_stubs(state: &State, space: &ContextLimits, room: ContextBudget) -> Option<(Vec<CallId>, u64)> {
    let calibration = state.calibration(&space.model);
    // E5: the text of a skill in use stays.
    let skills: Vec<CallId> = state.active_skills.iter().map(|skill| skill.call).collect();
    let stubs = context_outline(state, &calibration, 0).plan_stubs(&skills);
    let is_worth_it = !stubs.calls.is_empty() && stubs.gains >= room.window / STUB_GAIN_DIVISOR;
    is_worth_it.then_some((stubs.calls, stubs.gains))
}

/// Uncalibrated estimate of an input.
fn input_tokens(input: &PendingInput) -> u64 {
    let pictures = input.images.iter().cloned().map(Item::Image).map(Arc::new);
    let sent = input.client.iter().flat_map(|client| client.instructions.iter().chain(&client.history));
    let sent: u64 = sent.map(|text| estimate_text(text)).sum();
    estimate_text(&input.text) + estimate_items(&pictures.collect::<Vec<_>>()) + sent
}

fn request_too_long_error(least: u64, room: ContextBudget) -> String {
    format!(
        "the message is too long for the model: with the system prompt and tools ({} tokens) it takes about {least} tokens, \
         and {} are available (a context of {} less {} for the answer); split it, put it in a file for the agent to read, or \
         choose a model with a larger context",
        room.fixed,
        room.usable(),
        room.window,
        room.answer
    )
}

fn does_not_fit_error(need: u64, room: ContextBudget) -> String {
    format!(
        "the context does not fit: the next request has about {need} tokens, {} of them for the system prompt and tools, \
         and {} are available (a context of {} less {} for the answer); raise the context size on the server or in \
         model.context_window, choose another model, or start a new session",
        room.fixed,
        room.usable(),
        room.window,
        room.answer
    )
}
