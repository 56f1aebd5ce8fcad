//! Making the context of a session smaller.
//!
//! What is to be done is decided in `compaction`, what stays and what goes is planned in `longhaul_context`; here it is carried out.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `compact_start`, while the summary is written | that it began | `compact_failed`, interrupted; the context is as it was, and it is tried again if it is still needed |
//! | `epoch_started`, the two `system_message`s and `compact_done`: one append | the new epoch, with everything that outlives the old one | the turn goes on in it, or the session rests |
//! | `compact_failed` | that it failed, and how large the context was | the turn goes on as it would have |
//! | `epoch_started` and `stubbed`: one append | the same context with stubs | the same |
//!
//! Never: half an epoch, an input or a result that neither the old nor the new context has, a pair of events that stays open, work that
//! begins because the context was made smaller.

mod draft;
pub(crate) mod plan;
mod summarise;

use std::sync::Arc;

use draft::{Draft, Ground, Proof};
use longhaul_context::Written;
use longhaul_journal::Blob;
use longhaul_protocol::{
    CallId, CompactFailed, CompactStart, EpochReason, EpochStarted, Seq, SessionRecord, Stubbed,
};
use summarise::Summarised;

use crate::compaction::plan::{CompactionChoice, CompactionTrigger, ContextLimits, SizeCheck};
use crate::replay::load;
use crate::runtime::Inner;
use crate::runtime::slot::Shared;
use crate::session::decide::Policy;
use crate::session::state::State;
use crate::turn::request::room_for_answer;
use crate::worker::toolset::Equipment;
use crate::worker::{Step, Stopped, Worker, concerns_only_this};
use crate::{Error, Result};

/// What a compaction that a crash left open is closed with.
const INTERRUPTED: &str = "interrupted";
const CANCELLED: &str = "cancelled";
const SUSPENDED: &str = "suspended";
const OUT_OF_TIME: &str = "the time of the turn was over";
const NOT_SAVED: &str = "what happened could not be saved";
/// What ends one that nobody waits for, because somebody came.
const GAVE_WAY: &str = "an input came, and goes first";

impl Worker {
    /// Makes the context smaller. Whatever comes of it is on record when this returns.
    pub(crate) async fn compact(&mut self, trigger: CompactionTrigger) -> Step<()> {
        self.read_again().await;
        self.renew_equipment();
        let covered = self.state.head;
        let focus = self.state.compaction.requested.as_ref().and_then(|asked| asked.focus.clone());
        let start = CompactStart { reason: trigger.word().to_owned(), focus: focus.clone() };
        self.commit(vec![SessionRecord::CompactStart(start)], vec![]).await?;

        let (mut after, mut usages) = (Vec::new(), Vec::new());
        let summarised = if self.policy.context.has_summaries {
            self.summarise(trigger, focus.as_deref(), &mut usages, &mut after).await?
        } else {
            Summarised::NotWanted
        };
        after.extend(usages.into_iter().map(SessionRecord::Usage));
        let was_needed = is_needed(&self.state, &self.policy.context, trigger);
        let memory = self.remembered().await;
        let memory = memory.as_deref();
        let planned = match summarised {
            Summarised::Written(written) => self.ground(trigger, covered, memory).by_model(*written),
            Summarised::Failed(reason) => Err(reason),
            Summarised::NotWanted => Err(String::new()),
            Summarised::Stopped => {
                return self.compact_failed(stopped(self.why_stopped(trigger)), after).await;
            }
            Summarised::Suspended => {
                self.compact_failed(stopped(SUSPENDED), after).await?;
                return Err(Stopped::Suspended);
            }
        };
        // What must fit is made to by rule; what would only be better smaller stays as it is.
        let by_rule = was_needed || !self.policy.context.has_summaries;
        let planned = match planned {
            Err(reason) if by_rule => {
                let said = |why| if reason.is_empty() { why } else { format!("{reason}; {why}") };
                self.ground(trigger, covered, memory).by_rule().map_err(said)
            }
            planned => planned,
        };
        let reason = match planned {
            Ok(draft) => match self.switch(draft, after.clone()).await {
                // What can't be recorded did not happen.
                Err(Stopped::Failed(error)) if concerns_only_this(&error) => error.to_string(),
                switched => return switched,
            },
            Err(reason) => reason,
        };
        let tokens = Some(plan::next_prompt_tokens(&self.state, &self.policy.context));
        self.compact_failed(CompactFailed { reason, tokens, was_needed }, after).await
    }

    /// Folds the records once more: what somebody has erased meanwhile must not be written again. Where they can't be read any more, what
    /// is known here is all that there is.
    async fn read_again(&mut self) {
        let read = load(&*self.runtime.journal, &self.shared.key, self.id).await;
        if let Some(state) = read.ok().filter(|state| state.head == self.state.head) {
            self.state = state;
        }
    }

    /// Why nobody wants a compaction any more.
    fn why_stopped(&self, trigger: CompactionTrigger) -> &'static str {
        match trigger {
            CompactionTrigger::Idle => GAVE_WAY,
            _ if self.policy.is_out_of_time => OUT_OF_TIME,
            _ if self.policy.forced_end.is_some() => NOT_SAVED,
            _ => CANCELLED,
        }
    }

    /// What a new epoch starts from.
    fn ground<'a>(&'a self, trigger: CompactionTrigger, covered: Seq, memory: Option<&'a str>) -> Ground<'a> {
        let (state, space) = (&self.state, &self.policy.context);
        let (system, tools) = match &state.epoch {
            // A turn goes on with what it began with.
            Some(epoch) if state.turn.is_some() => (epoch.system.clone(), epoch.tools.clone()),
            _ => (self.equipment.system.reference.clone(), self.equipment.tools.content.reference.clone()),
        };
        let keep = self.runtime.config.settings.context.keep_tokens;
        let proof = Proof::of(trigger, is_needed(state, space, trigger));
        Ground { state, space, system, tools, covered, keep, proof, memory }
    }

    /// The new epoch, whole.
    async fn switch(&mut self, draft: Draft, after: Vec<SessionRecord>) -> Step<()> {
        let blobs = self.beginnings(&draft.epoch);
        let mut facts = draft.into_facts();
        facts.extend(after);
        self.commit(facts, blobs).await?;
        self.shared.was_idle(&Ok(true));
        Ok(())
    }

    /// The blobs of an epoch's beginning that may not be there yet.
    fn beginnings(&self, epoch: &EpochStarted) -> Vec<Blob> {
        let contents =
            [(&epoch.system, &self.equipment.system), (&epoch.tools, &self.equipment.tools.content)];
        let ours = contents.into_iter().filter(|(reference, content)| **reference == content.reference);
        ours.map(|(_, content)| content.blob()).collect()
    }

    async fn compact_failed(&mut self, failed: CompactFailed, after: Vec<SessionRecord>) -> Step<()> {
        let told = match failed.tokens {
            Some(_) => Err(Error::NotCompacted { reason: failed.reason.clone() }),
            None => Ok(false),
        };
        let mut facts = vec![SessionRecord::CompactFailed(failed)];
        facts.extend(after);
        self.commit(facts, vec![]).await?;
        self.shared.was_idle(&told);
        Ok(())
    }

    /// Closes a compaction that a crash left open.
    pub(crate) async fn close_compaction(&mut self) -> Step<()> {
        self.compact_failed(stopped(INTERRUPTED), vec![]).await
    }

    /// Replaces old tool output by stubs: a new epoch, without a model call.
    pub(crate) async fn stub(&mut self, calls: Vec<CallId>) -> Step<()> {
        self.renew_equipment();
        let (mut facts, mut blobs) = self.new_epoch(EpochReason::Stubbed);
        if self.state.turn.is_some()
            && let (Some(SessionRecord::EpochStarted(started)), Some(epoch)) =
                (facts.last_mut(), &self.state.epoch)
        {
            // A turn goes on with what it began with.
            (started.system, started.tools) = (epoch.system.clone(), epoch.tools.clone());
            blobs = vec![];
        }
        facts.push(SessionRecord::Stubbed(Stubbed { calls }));
        self.commit(facts, blobs).await?;
        self.shared.was_idle(&Ok(true));
        Ok(())
    }

    /// Outside of a turn a new epoch begins with what a new turn would begin with.
    fn renew_equipment(&mut self) {
        if self.state.turn.is_none() {
            self.equipment = Equipment::new(&self.runtime, &self.state);
            let space = self.policy.context.clone();
            let limits = self.policy.limits;
            self.policy = Policy { context: space, limits, ..self.equipment.policy(&self.runtime) };
            self.look_at_the_ends();
        }
    }
}

/// The append that makes a context smaller, as the worker would make it: around what a model wrote, or by rule. The error says why
/// there is none. Pure, for tests and for programs that carry out decisions themselves.
pub fn plan_compaction(
    state: &State,
    space: &ContextLimits,
    trigger: CompactionTrigger,
    written: Option<Written>,
    keep: u64,
) -> std::result::Result<Vec<SessionRecord>, String> {
    let epoch = state.epoch.as_ref().ok_or("there is no epoch")?;
    // The record with which it began is none of those that it covers.
    let covered = state.head - u64::from(state.compaction.open_reason.is_some());
    let proof = Proof::of(trigger, is_needed(state, space, trigger));
    let (system, tools) = (epoch.system.clone(), epoch.tools.clone());
    let ground = Ground { state, space, system, tools, covered, keep, proof, memory: None };
    let draft = match written {
        Some(written) => ground.by_model(written),
        None => ground.by_rule(),
    };
    draft.map(Draft::into_facts)
}

/// Whether the next request would not go through as things are.
fn is_needed(state: &State, space: &ContextLimits, trigger: CompactionTrigger) -> bool {
    let is_too_large = space.room.is_some_and(|room| plan::next_prompt_tokens(state, space) > room.usable());
    match trigger {
        CompactionTrigger::Overflow => true,
        CompactionTrigger::BeforeTurn | CompactionTrigger::WithinTurn => is_too_large,
        CompactionTrigger::Requested => is_too_large && state.turn.is_some(),
        CompactionTrigger::Idle => false,
    }
}

/// The job of the idle worker: makes the context of an idle session smaller, if it is due, so that the next reply need not wait.
/// Returns when that is done, or was not due: whether something was done.
pub(crate) async fn compact_if_idle(
    runtime: &Arc<Inner>,
    shared: &Arc<Shared>,
    state: &State,
) -> Result<bool> {
    // To do it, its worker takes it, and goes on with whatever waits in its inbox: only who looks after all sessions may do that to one that
    // nobody here has opened.
    let is_ours = shared.id.get().is_some_and(|id| runtime.activity.was_used_here(*id));
    if !is_ours && !runtime.is_hosting() {
        return Ok(false);
    }
    let model = runtime.lineup().0[0].clone();
    // What another model has room for is nobody's business here.
    if state.model.as_deref() != Some(model.name()) || state.turn.is_some() {
        return Ok(false);
    }
    let (facts, settings) = (model.facts().await, &runtime.config.settings);
    let window = facts.window.map(|window| window.tokens).or(settings.model.context_window);
    let answer = room_for_answer(settings.model.max_output_tokens, &facts, window);
    let equipment = Equipment::new(runtime, state);
    let fixed = equipment.fixed(&facts);
    let space = ContextLimits::new(state, model.name(), window, answer, fixed, &settings.context);
    let policy = Policy { context: ContextLimits { is_idle: true, ..space }, ..equipment.policy(runtime) };
    match plan::choose_compaction(state, &policy, SizeCheck::AtRest) {
        CompactionChoice::Nothing | CompactionChoice::Impossible(_) => Ok(false),
        CompactionChoice::Stub(_) | CompactionChoice::Compact(_) => shared.ask_as_idle(runtime).await,
    }
}

/// A compaction that somebody or something stopped: it does not count as a failure.
fn stopped(reason: &str) -> CompactFailed {
    CompactFailed { reason: reason.to_owned(), tokens: None, was_needed: false }
}
