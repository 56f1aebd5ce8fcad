//! When a context is made smaller, and how: decided from the records and the room that there is. No clock, no disk, no network.
//!
//! Cheapest first: nothing; old tool output as stubs; a summary, or less by rule. What is decided here is carried out by
//! `compacting`.

use std::sync::Arc;

use longhaul_context::{
    CompactionThresholds, ContextBudget, ContextOutline, TokenCalibration, compaction_threshold,
    estimate_items, estimate_text,
};
use longhaul_protocol::{CallId, InputId, Item, JoinMode, Seq, SessionRecord};

use crate::session::decide::Policy;
use crate::session::state::{Again, State, Waiting};
use crate::{ContextSettings, Summary};

/// So many failures in a row open the breaker.
const BREAKER: u32 = 3;
/// It is tried again after such a part of what is usable has come.
const BREAKER_SHARE: u64 = 20;
/// What was asked in an open turn, and answered, stays as far as it takes no more than such a part of what is usable.
const REQUESTS_SHARE: u64 = 4;
/// Stubs are made only where they gain such a part of the window.
const STUB_SHARE: u64 = 10;
/// What comes in together takes at most so many tenths of what is usable, with what stays anyway.
const JOINING_TENTHS: u64 = 8;
/// What a model has room for whose window is not known: anything.
const UNKNOWN_ROOM: ContextBudget = ContextBudget { window: 1 << 40, answer: 0, fixed: 0 };
/// Without a finished step between them there are at most so many compactions.
const MOST_IN_A_ROW: u32 = 2;

/// What is known of the compactions of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compaction {
    /// One began, for this reason, and has no end on record.
    pub open: Option<String>,
    /// Somebody asked for one.
    pub asked: Option<Asked>,
    /// How many there were.
    pub count: u64,
    /// How many there were since the last answer.
    pub since_answer: u32,
    /// How many answers there were since the last one.
    pub answers_since: u64,
    /// How often it failed, in a row.
    pub failures: u32,
    /// How large the context was when it last did.
    pub failed_at: Option<u64>,
    /// It failed since the last answer, or in this turn.
    pub tried: bool,
    /// The same, and the next request did not fit.
    pub is_hopeless: bool,
    /// The last record that one covers.
    pub covered_through: Seq,
    /// The one that is open is being read, and the record of its epoch is gone.
    pub has_lost_its_epoch: bool,
}

/// Somebody wants the context to be made smaller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// What the summary should dwell on.
    pub focus: Option<String>,
}

/// Why a context is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It is large, and a turn is about to begin.
    BeforeTurn,
    /// It is large, and the model is about to be asked in the middle of a turn.
    WithinTurn,
    /// It is rather large, and nobody waits for anything.
    Idle,
    /// The model said that it is too large.
    Overflow,
    /// Somebody asked for it.
    Asked,
}

impl Trigger {
    /// The word for it, in records and events.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BeforeTurn => "before_turn",
            Self::WithinTurn => "within_turn",
            Self::Idle => "idle",
            Self::Overflow => "overflow",
            Self::Asked => "asked",
        }
    }
}

/// At which moment it is looked whether a context should be made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing is to be done.
    Rest,
    /// A turn is about to begin.
    BeforeTurn,
    /// The model is about to be asked in a turn.
    WithinTurn,
}

/// What is done about the size of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relief {
    /// Nothing: there is room.
    Nothing,
    /// Old tool output is replaced by stubs.
    Stub(Vec<CallId>),
    /// It is made smaller.
    Compact(Trigger),
    /// It can't be made to fit; this is the arithmetic.
    Hopeless(String),
}

/// What the model has room for, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The model that will be asked.
    pub model: String,
    /// What it has room for, if that is known.
    pub room: Option<ContextBudget>,
    /// From where on the context is made smaller.
    pub checks: CompactionThresholds,
    /// Whether a model writes summaries; else what is old is dropped by rule.
    pub has_summaries: bool,
    /// Nobody has had to do with the session for a while.
    pub is_idle: bool,
}

/// Of a prompt that was refused, the next one is at most so many tenths.
const REFUSED_TENTHS: u64 = 9;

impl Space {
    /// What this model has room for. `fixed` is what system prompt and tools take before anything is learnt.
    pub fn new(
        state: &State,
        model: &str,
        window: Option<u64>,
        answer: u64,
        fixed: u64,
        settings: &ContextSettings,
    ) -> Self {
        let counting = state.counting.get(model);
        // Whoever has set another size since a prompt was cut has done what was asked for.
        let cut = counting
            .and_then(|counting| counting.cuts)
            .filter(|cut| !window.zip(cut.window).is_some_and(|(now, then)| now != then && now > cut.at));
        let refused = counting.and_then(|counting| counting.refused_at);
        let seen = cut.map(|cut| cut.at).into_iter().chain(refused.map(|at| at / 10 * REFUSED_TENTHS));
        let window = window.into_iter().chain(seen.map(|prompt| prompt.saturating_add(answer))).min();
        let room =
            window.map(|window| ContextBudget { window, answer, fixed: state.corrected(model, fixed) });
        let usable = room.map_or(0, |room| room.usable());
        // A share of an unknown window is no threshold; a number of tokens is one.
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
}

impl Space {
    /// So many tokens of what was asked in an open turn stay, whatever else goes.
    pub(crate) fn requests(&self) -> u64 {
        self.room.map_or(u64::MAX, |room| room.usable() / REQUESTS_SHARE)
    }
}

impl Default for Space {
    /// Nobody knows yet what there is room for.
    fn default() -> Self {
        let (model, room, checks) = (String::new(), None, CompactionThresholds::default());
        Self { model, room, checks, has_summaries: true, is_idle: false }
    }
}

impl State {
    /// How many tokens the next request has.
    pub fn next_prompt(&self, space: &Space) -> u64 {
        let fixed = match space.room {
            Some(room) => room.fixed,
            None => return self.occupancy(&space.model).0.saturating_add(self.incoming(space)),
        };
        self.occupancy_with(&space.model, fixed).0.saturating_add(self.incoming(space))
    }

    /// How many tokens come in with the next step: what waits, and what is told of tasks.
    pub(crate) fn incoming(&self, space: &Space) -> u64 {
        // What is asked once more is asked as it was.
        if self.turn.as_ref().is_some_and(|turn| turn.steps > 0 && !turn.answered) {
            return 0;
        }
        let (joining, _) = self.joining(space);
        let said: u64 = joining.iter().map(|input| of_input(input)).sum();
        let goes_on = self.interrupted.as_ref().filter(|_| self.again == Some(Again::Continue));
        let said = said + goes_on.map_or(0, |text| estimate_text(text));
        let told = self.tasks.tell().into_iter().map(|fact| match fact {
            SessionRecord::Notification(told) => estimate_text(&told.text),
            SessionRecord::Note(note) => estimate_text(&note.text),
            _ => 0,
        });
        self.corrected(&space.model, said + told.sum::<u64>())
    }

    /// The inputs that the next step takes in, and those that there is no room for together with them. Of a new turn the first is
    /// always taken in; into one that is open nothing is that it would have to end for.
    fn joining(&self, space: &Space) -> (Vec<&Waiting>, Vec<InputId>) {
        let joins = |input: &&Waiting| self.turn.is_none() || input.mode == JoinMode::Join;
        let inputs = self.waiting.iter().filter(|input| joins(input) && !input.cancelled);
        let Some(room) = space.room else { return (inputs.collect(), vec![]) };
        let (asked, _) = self.asked(space);
        let most = (room.usable() / 10 * JOINING_TENTHS).saturating_sub(room.fixed).saturating_sub(asked);
        let (mut joining, mut later, mut sum) = (Vec::new(), Vec::new(), 0);
        for input in inputs {
            sum += of_input(input);
            let is_first = self.turn.is_none() && joining.is_empty();
            if later.is_empty() && (is_first || self.corrected(&space.model, sum) <= most) {
                joining.push(input);
            } else {
                later.push(input.id);
            }
        }
        (joining, later)
    }

    /// The inputs that would join the next step, and that there is no room for.
    pub(crate) fn too_many(&self, space: &Space) -> Vec<InputId> {
        self.joining(space).1
    }

    /// The context as the planning of a compaction sees it.
    pub(crate) fn outline<'a>(
        &'a self,
        calibration: &'a TokenCalibration,
        requests: u64,
    ) -> ContextOutline<'a> {
        // A turn that is to be run again is not over.
        let again = self.again.map(|_| self.asked_in);
        let open_turn = self.turn.as_ref().map(|turn| turn.answers).or(again);
        ContextOutline {
            items: &self.items,
            places: &self.places,
            preface: self.preface,
            open_turn,
            requests,
            calibration,
        }
    }

    /// What is to be done about the size of the context.
    pub(crate) fn relief(&self, policy: &Policy, moment: Moment) -> Relief {
        let space = &policy.space;
        let has_history = self.items.len() > self.preface;
        if self.compaction.asked.is_some() {
            return Relief::Compact(Trigger::Asked);
        }
        // M12: a refusal counts until the context is another one.
        let refused = self.turn.as_ref().filter(|turn| turn.refusal.is_some());
        let overflows = refused.map_or(0, |turn| turn.too_long);
        let room = space.room.unwrap_or(UNKNOWN_ROOM);
        let need = self.next_prompt(space);
        if space.room.is_some() && moment != Moment::Rest && (overflows > 0 || need > room.usable()) {
            return self.must_shrink(space, room, need, moment, overflows);
        }
        let (check, trigger) = match moment {
            Moment::Rest if space.is_idle && space.has_summaries => (space.checks.idle, Trigger::Idle),
            Moment::Rest => return Relief::Nothing,
            // The first request of a turn is checked like every other, too.
            Moment::BeforeTurn => (space.checks.before_first_request(), Trigger::BeforeTurn),
            Moment::WithinTurn => (space.checks.within_turn, Trigger::WithinTurn),
        };
        let Some(check) = check.filter(|check| need >= *check) else { return Relief::Nothing };
        if !has_history || self.compaction.answers_since == 0 || self.compaction.tried {
            return Relief::Nothing;
        }
        // An answer that goes on must not lose its first half; and what stays anyway can't be made smaller.
        let (asked, _) = self.asked(space);
        let stays = room.fixed.saturating_add(asked).saturating_add(self.incoming(space));
        let goes_on = self.turn.as_ref().is_some_and(|turn| turn.goes_on);
        if goes_on || stays >= room.usable() / 10 * 6 {
            return Relief::Nothing;
        }
        let is_open = self.compaction.failures >= BREAKER
            && self.compaction.failed_at.is_some_and(|at| need < at + room.usable() / BREAKER_SHARE);
        match self.stubs(space, room) {
            Some((calls, gains)) if need.saturating_sub(gains) < check => Relief::Stub(calls),
            _ if is_open => Relief::Nothing,
            _ => Relief::Compact(trigger),
        }
    }

    /// The next request does not fit, or the model said so.
    fn must_shrink(
        &self,
        space: &Space,
        room: ContextBudget,
        need: u64,
        moment: Moment,
        overflows: u32,
    ) -> Relief {
        let usable = room.usable();
        let (asked, can_shrink) = self.asked(space);
        // It was made smaller because of the first, and that did not help.
        if overflows > 1 || (overflows > 0 && !can_shrink) {
            let said = self.turn.as_ref().and_then(|turn| turn.refusal.clone());
            return Relief::Hopeless(said.unwrap_or_else(|| does_not_fit(need, room)));
        }
        let stubs = self.stubs(space, room).filter(|(_, gains)| need.saturating_sub(*gains) <= usable);
        if let (0, Some((calls, _))) = (overflows, stubs) {
            return Relief::Stub(calls);
        }
        let is_spent = self.compaction.answers_since == 0 && self.compaction.since_answer >= MOST_IN_A_ROW;
        let least = room.fixed.saturating_add(asked).saturating_add(self.incoming(space));
        if room.fixed >= usable {
            return Relief::Hopeless(does_not_fit(need, room));
        }
        if least > usable {
            return Relief::Hopeless(is_too_long(least, room));
        }
        if self.compaction.is_hopeless || is_spent || !can_shrink {
            return Relief::Hopeless(does_not_fit(need, room));
        }
        Relief::Compact(match (overflows, moment) {
            (1.., _) => Trigger::Overflow,
            (0, Moment::BeforeTurn) => Trigger::BeforeTurn,
            (0, _) => Trigger::WithinTurn,
        })
    }

    /// What is asked in the open turn, in tokens: that stays, whatever goes. And whether there is anything else.
    fn asked(&self, space: &Space) -> (u64, bool) {
        let calibration = self.calibration(&space.model);
        let asked = self.outline(&calibration, 0).open_requests(space.requests());
        let items: Vec<Arc<Item>> = asked.iter().map(|index| self.items[*index].clone()).collect();
        let has_more = self.items.len() > self.preface + asked.len();
        (self.corrected(&space.model, estimate_items(&items)), has_more)
    }

    /// Old tool output whose removal gains enough to be worth it.
    fn stubs(&self, space: &Space, room: ContextBudget) -> Option<(Vec<CallId>, u64)> {
        let calibration = self.calibration(&space.model);
        let stubs = self.outline(&calibration, 0).plan_stubs();
        let is_worth_it = !stubs.calls.is_empty() && stubs.gains >= room.window / STUB_SHARE;
        is_worth_it.then_some((stubs.calls, stubs.gains))
    }
}

/// How many tokens an input has, before anything is learnt.
fn of_input(input: &Waiting) -> u64 {
    let pictures = input.images.iter().cloned().map(Item::Image).map(Arc::new);
    estimate_text(&input.text) + estimate_items(&pictures.collect::<Vec<_>>())
}

/// The arithmetic of a message that is too long by itself.
fn is_too_long(least: u64, room: ContextBudget) -> String {
    format!(
        "what is asked is longer than the model has room for: with system prompt and tools ({} tokens) it takes about {least}, \
         and {} are usable (a context of {} less {} for the answer); ask in parts, put it into a file and have that read, or \
         choose a model with a larger context",
        room.fixed,
        room.usable(),
        room.window,
        room.answer
    )
}

/// The arithmetic of a request that does not fit.
fn does_not_fit(need: u64, room: ContextBudget) -> String {
    format!(
        "the context can't be made to fit: the next request has about {need} tokens, of them {} for system prompt and tools, \
         and {} are usable (a context of {} less {} for the answer); give the model a larger context on its server or in \
         model.context_window, choose another model, or start a new session",
        room.fixed,
        room.usable(),
        room.window,
        room.answer
    )
}
