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
mod summarising;

use std::sync::Arc;

use draft::{Ground, Proof};
use longhaul_context::Written;
use longhaul_journal::Blob;
use longhaul_protocol::{
    CallId, CompactFailed, CompactStart, EpochReason, EpochStarted, SessionRecord, Stubbed, Usage,
};
use summarising::Summarised;

use crate::asking::room_for_answer;
use crate::compaction::{Moment, Relief, Space, Trigger};
use crate::equipment::Equipment;
use crate::runtime::Inner;
use crate::shared::Shared;
use crate::state::State;
use crate::worker::{Step, Stopped, Worker, concerns_only_this};
use crate::{Error, Result};

/// What a compaction that a crash left open is closed with.
const INTERRUPTED: &str = "interrupted";
const CANCELLED: &str = "cancelled";
const SUSPENDED: &str = "suspended";
/// What ends one that nobody waits for, because somebody came.
const GAVE_WAY: &str = "an input came, and goes first";

impl Worker {
    /// Makes the context smaller. Whatever comes of it is on record when this returns.
    pub(crate) async fn compact(&mut self, trigger: Trigger) -> Step<()> {
        self.renew_equipment();
        let covered = self.state.head;
        let focus = self.state.compaction.asked.as_ref().and_then(|asked| asked.focus.clone());
        let start = CompactStart { reason: trigger.word().to_owned(), focus: focus.clone() };
        self.commit(vec![SessionRecord::CompactStart(start)], vec![]).await?;

        let is_needed = is_needed(&self.state, &self.policy.space, trigger);
        let (mut after, mut usages) = (Vec::new(), Vec::new());
        let written = if self.policy.space.has_summaries {
            self.summarise(trigger, focus.as_deref(), &mut usages, &mut after).await?
        } else {
            Summarised::NotWanted
        };
        after.extend(usages.into_iter().map(SessionRecord::Usage));
        let reason = match written {
            Summarised::Written(written) => {
                match self.draft(trigger, covered, is_needed).by_model(*written) {
                    Ok(draft) => return self.switch(draft, after).await,
                    Err(reason) => reason,
                }
            }
            Summarised::Failed(reason) => reason,
            Summarised::NotWanted => String::new(),
            Summarised::Stopped => {
                let reason = if trigger == Trigger::Idle { GAVE_WAY } else { CANCELLED };
                return self.compact_failed(reason, None, false, after).await;
            }
            Summarised::Suspended => {
                self.compact_failed(SUSPENDED, None, false, after).await?;
                return Err(Stopped::Suspended);
            }
        };
        if is_needed || !self.policy.space.has_summaries {
            match self.draft(trigger, covered, is_needed).by_rule() {
                Ok(draft) => return self.switch(draft, after).await,
                Err(why) if reason.is_empty() => {
                    return self.compact_failed(&why, Some(self.size()), is_needed, after).await;
                }
                Err(why) => {
                    let reason = format!("{reason}; {why}");
                    return self.compact_failed(&reason, Some(self.size()), is_needed, after).await;
                }
            }
        }
        self.compact_failed(&reason, Some(self.size()), is_needed, after).await
    }

    fn size(&self) -> u64 {
        self.state.next_prompt(&self.policy.space)
    }

    fn draft(&self, trigger: Trigger, covered: u64, is_needed: bool) -> Ground<'_> {
        let (system, tools) = match &self.state.epoch {
            // A turn goes on with what it began with.
            Some(epoch) if self.state.turn.is_some() => (epoch.system.clone(), epoch.tools.clone()),
            _ => (self.equipment.system.reference.clone(), self.equipment.tools.content.reference.clone()),
        };
        let keep = self.runtime.config.settings.context.keep_tokens;
        let proof = Proof::of(trigger, is_needed);
        Ground { state: &self.state, space: &self.policy.space, system, tools, covered, keep, proof }
    }

    /// The new epoch, whole.
    async fn switch(&mut self, draft: draft::Draft, after: Vec<SessionRecord>) -> Step<()> {
        let blobs = self.beginnings(&draft.epoch);
        let mut facts = draft.into_facts();
        facts.extend(after.iter().cloned());
        match self.commit(facts, blobs).await {
            Ok(()) => {}
            // What can't be recorded did not happen.
            Err(Stopped::Failed(error)) if concerns_only_this(&error) => {
                let (reason, size) = (error.to_string(), self.size());
                return self.compact_failed(&reason, Some(size), true, after).await;
            }
            Err(stopped) => return Err(stopped),
        }
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

    async fn compact_failed(
        &mut self,
        reason: &str,
        tokens: Option<u64>,
        was_needed: bool,
        after: Vec<SessionRecord>,
    ) -> Step<()> {
        let failed = CompactFailed { reason: reason.to_owned(), tokens, was_needed };
        let mut facts = vec![SessionRecord::CompactFailed(failed)];
        facts.extend(after);
        self.commit(facts, vec![]).await?;
        let why = match tokens {
            Some(_) => Err(Error::NotCompacted { reason: reason.to_owned() }),
            None => Ok(false),
        };
        self.shared.was_idle(&why);
        Ok(())
    }

    /// Closes a compaction that a crash left open.
    pub(crate) async fn close_compaction(&mut self) -> Step<()> {
        self.compact_failed(INTERRUPTED, None, false, vec![]).await
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
            let space = self.policy.space.clone();
            let limits = self.policy.limits;
            self.policy = crate::decide::Policy { space, limits, ..self.equipment.policy(&self.runtime) };
            self.look_at_the_ends();
        }
    }
}

/// The append that makes a context smaller, as the worker would make it: around what a model wrote, or by rule. The error says why
/// there is none. Pure, for tests and for programs that carry out decisions themselves.
pub fn plan_compaction(
    state: &State,
    space: &Space,
    trigger: Trigger,
    written: Option<Written>,
    keep: u64,
) -> std::result::Result<Vec<SessionRecord>, String> {
    let epoch = state.epoch.as_ref().ok_or("there is no epoch")?;
    // The record with which it began is none of those that it covers.
    let covered = state.head - u64::from(state.compaction.open.is_some());
    let proof = Proof::of(trigger, is_needed(state, space, trigger));
    let (system, tools) = (epoch.system.clone(), epoch.tools.clone());
    let ground = Ground { state, space, system, tools, covered, keep, proof };
    let draft = match written {
        Some(written) => ground.by_model(written),
        None => ground.by_rule(),
    };
    draft.map(draft::Draft::into_facts)
}

/// Whether the next request would not go through as things are.
fn is_needed(state: &State, space: &Space, trigger: Trigger) -> bool {
    let is_too_large = space.room.is_some_and(|room| state.next_prompt(space) > room.usable());
    match trigger {
        Trigger::Overflow => true,
        Trigger::BeforeTurn | Trigger::WithinTurn => is_too_large,
        Trigger::Asked => is_too_large && state.turn.is_some(),
        Trigger::Idle => false,
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
    let is_ours = shared.id.get().is_some_and(|id| runtime.activity.has_seen(*id));
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
    let beginning = state
        .epoch
        .as_ref()
        .map_or(0, |epoch| epoch.system.bytes + if facts.tools { epoch.tools.bytes } else { 0 });
    let fixed = longhaul_context::estimate_bytes(beginning);
    let space = Space::new(state, model.name(), window, answer, fixed, &settings.context);
    let policy = crate::decide::Policy {
        space: Space { is_idle: true, ..space },
        ..Equipment::new(runtime, state).policy(runtime)
    };
    match state.relief(&policy, Moment::Rest) {
        Relief::Nothing | Relief::Hopeless(_) => Ok(false),
        Relief::Stub(_) | Relief::Compact(_) => shared.ask_as_idle(runtime).await,
    }
}

/// What a call for a summary cost.
fn usage_of(attempt: longhaul_protocol::AttemptId) -> Usage {
    Usage {
        attempt,
        purpose: Some("summary".to_owned()),
        input: None,
        output: None,
        cached: None,
        cost: None,
        estimated: None,
        window: None,
        limits: std::collections::BTreeMap::new(),
    }
}
