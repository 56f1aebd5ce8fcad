//! One attempt at a model call, from its record to its end. What follows from it is decided in `concluding`.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `attempt_started` | that it was tried | closed as interrupted, the same request again |
//! | a `block` of text | the block, which does not count yet | closed, nothing kept, the same request again |
//! | a `block` that is a call | the call | closed with all complete blocks kept; the call is run, once |
//! | `attempt_ended` | the answer | its calls are run, or the turn ends |
//!
//! Never: text twice in the context, a call that is run twice, half a block.

use std::time::Duration;

use longhaul_model::{Class, Failure, RateLimits, Stop, Tokens};
use longhaul_protocol::{
    AttemptId, AttemptStarted, Block, Checkpoint, EventKind, SessionRecord, StepStarted, TurnStarted,
};
use tokio::time::Instant;

use crate::turn::outcome::ended_with;
use crate::turn::request::Call;
use crate::worker::wait::{Attended, Heed};
use crate::worker::{Step, Stopped, Worker};
use longhaul_model::{Blocks, Progress};
use longhaul_redact::StreamRedactor;

/// Unfinished text is saved after so much of it, or so much time.
const CHECKPOINT_BYTES: usize = 2 << 10;
const CHECKPOINT_TIME: Duration = Duration::from_secs(1);
/// What an attempt is closed with that a crash left open.
const INTERRUPTED: &str = "interrupted";
const CANCELLED: &str = "cancelled";
const OUT_OF_TIME: &str = "the time of the turn was over";
const NOT_SAVED: &str = "what came could not be saved";

/// How an attempt came to its end.
pub(crate) enum Ended {
    Complete {
        stop: Stop,
    },
    Failed(Failure),
    /// Nobody wants the rest of it.
    Stopped(&'static str),
}

/// What came of an attempt.
pub(crate) struct Heard {
    pub(crate) ended: Ended,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) limits: Option<RateLimits>,
}

/// Text that is shown and not yet on disk.
#[derive(Default)]
struct Unsaved {
    text: String,
    since: Option<Instant>,
}

impl Unsaved {
    fn push(&mut self, delta: &str) {
        self.text.push_str(delta);
        self.since.get_or_insert_with(Instant::now);
    }

    fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + CHECKPOINT_TIME)
    }
}

/// What of an answer is shown. What may be the beginning of a secret is held back until it is clear that it is none.
struct Shown {
    text: StreamRedactor,
    reasoning: StreamRedactor,
    unsaved: Unsaved,
}

impl Shown {
    fn new(worker: &Worker) -> Self {
        let redactor = &worker.runtime.redactor;
        Self { text: redactor.stream(), reasoning: redactor.stream(), unsaved: Unsaved::default() }
    }
}

impl Worker {
    /// Asks the model once, after beginning the turn and the step if they have not begun.
    pub(crate) async fn call_model(&mut self, turn: Option<u64>, step: Option<u64>) -> Step<()> {
        let attempt = AttemptId::generate();
        let mut facts = self.beginning(turn, step).await?;
        let model = self.asking.model().name().to_owned();
        facts.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model }));
        self.commit(facts, vec![]).await?;
        let call = self.call(attempt).await?;
        let mut blocks = Blocks::default();
        let ended = if self.policy.must_end_turn() || self.state.is_cancelled() {
            Ended::Stopped(self.stopped_by())
        } else {
            self.hear(&call, &mut blocks).await?
        };
        let ended = match ended {
            Ended::Failed(failure) => {
                let message = self.runtime.redactor.redact(&failure.message).into_owned();
                Ended::Failed(Failure { message, ..failure })
            }
            ended => ended,
        };
        self.conclude(&call, Heard { ended, tokens: blocks.tokens, limits: blocks.limits }).await
    }

    /// Begins a turn that asks nobody.
    pub(crate) async fn begin_turn(&mut self, turn: u64) -> Step<()> {
        let facts = self.beginning(Some(turn), Some(1)).await?;
        self.commit(facts, vec![]).await
    }

    /// What begins, and what the model is told with it.
    async fn beginning(&mut self, turn: Option<u64>, step: Option<u64>) -> Step<Vec<SessionRecord>> {
        let changed = self.choose(turn, step);
        if step.is_some() {
            self.look_at_tasks().await?;
        }
        let mut facts = Vec::new();
        if let Some(turn) = turn {
            facts.push(SessionRecord::TurnStarted(TurnStarted { turn }));
            let warnings = self.equipment.warnings.iter();
            let new = warnings.filter(|warning| !self.state.given_warnings.contains(&warning.code));
            facts.extend(new.cloned().map(SessionRecord::Warning));
        }
        facts.extend(changed);
        if step.is_some() {
            facts.extend(self.state.tasks.announcements());
        }
        let later = if step.is_some() {
            crate::compaction::plan::deferred_inputs(&self.state, &self.policy.context)
        } else {
            vec![]
        };
        facts.extend(step.map(|step| SessionRecord::StepStarted(StepStarted { step, later })));
        Ok(facts)
    }

    /// Asks, and listens until the answer is over.
    async fn hear(&mut self, call: &Call, blocks: &mut Blocks) -> Step<Ended> {
        let attempt = call.attempt;
        let mut asking = call.model.ask(call.request.clone());
        let mut answer = match self.attend(&mut asking, Heed::Cancel, None).await? {
            Attended::Done(Ok(answer)) => answer,
            Attended::Done(Err(failure)) => return Ok(Ended::Failed(failure)),
            Attended::Called => return Ok(Ended::Stopped(self.stopped_by())),
            Attended::Suspended | Attended::Due => return Err(Stopped::Suspended),
        };
        let mut shown = Shown::new(self);
        let ended = loop {
            if self.policy.must_end_turn() {
                break Ended::Stopped(self.stopped_by());
            }
            let mut next = answer.next();
            let attended = loop {
                match self.attend(&mut next, Heed::Cancel, shown.unsaved.due()).await? {
                    Attended::Due => self.checkpoint(attempt, &mut shown.unsaved).await?,
                    attended => break attended,
                }
            };
            match attended {
                Attended::Done(Ok(part)) => match blocks.push(part) {
                    Progress::End(stop) => break Ended::Complete { stop },
                    Progress::Odd(reason) => break Ended::Failed(Failure::new(Class::Broken, reason)),
                    Progress::TooLarge(reason) => {
                        break Ended::Failed(Failure::new(Class::TooLarge, reason));
                    }
                    progress => self.progress(attempt, progress, &mut shown).await?,
                },
                Attended::Done(Err(failure)) => break Ended::Failed(failure),
                Attended::Called => break Ended::Stopped(self.stopped_by()),
                Attended::Suspended | Attended::Due => {
                    self.checkpoint(attempt, &mut shown.unsaved).await?;
                    return Err(Stopped::Suspended);
                }
            }
        };
        // Of an answer that broke off, what may be the beginning of a secret is never shown.
        if matches!(ended, Ended::Complete { .. }) {
            self.show_rest(&mut shown);
        }
        self.checkpoint(attempt, &mut shown.unsaved).await?;
        Ok(ended)
    }

    fn stopped_by(&self) -> &'static str {
        match (self.state.is_cancelled(), self.policy.is_out_of_time) {
            (true, _) => CANCELLED,
            (false, true) => OUT_OF_TIME,
            (false, false) => NOT_SAVED,
        }
    }

    /// Shows and records what came.
    async fn progress(&mut self, attempt: AttemptId, progress: Progress, shown: &mut Shown) -> Step<()> {
        match progress {
            Progress::Text(delta) => {
                let text = shown.text.push(&delta);
                self.show_text(text, shown);
                if shown.unsaved.text.len() >= CHECKPOINT_BYTES {
                    self.checkpoint(attempt, &mut shown.unsaved).await?;
                }
            }
            Progress::Reasoning(delta) => {
                let text = shown.reasoning.push(&delta);
                self.show_reasoning(text);
            }
            Progress::Block(item) => {
                self.show_rest(shown);
                shown.unsaved = Unsaved::default();
                let index = self.open_blocks();
                self.commit(vec![SessionRecord::Block(Block { attempt, index, item })], vec![]).await?;
            }
            Progress::Nothing | Progress::End(_) | Progress::Odd(_) | Progress::TooLarge(_) => {}
        }
        Ok(())
    }

    /// What was held back, because a secret might have begun there.
    fn show_rest(&self, shown: &mut Shown) {
        let (text, reasoning) = (shown.text.finish(), shown.reasoning.finish());
        self.show_text(text, shown);
        self.show_reasoning(reasoning);
    }

    fn show_text(&self, text: String, shown: &mut Shown) {
        if !text.is_empty() {
            shown.unsaved.push(&text);
            self.show(EventKind::TextDelta { text });
        }
    }

    fn show_reasoning(&self, text: String) {
        if !text.is_empty() {
            self.show(EventKind::ReasoningDelta { text });
        }
    }

    /// Closes an attempt that a crash left open.
    pub(crate) async fn close_attempt(&mut self, kept: usize) -> Step<()> {
        let Some(attempt) = self.state.turn.as_ref().and_then(|turn| turn.attempt.as_ref()) else {
            return Ok(());
        };
        let facts = match self.state.is_cancelled() && kept > 0 {
            true => self.stopped_attempt(INTERRUPTED),
            false => vec![ended_with(attempt.id, kept, None, Some(INTERRUPTED.to_owned()))],
        };
        self.commit(facts, vec![]).await
    }

    async fn checkpoint(&mut self, attempt: AttemptId, unsaved: &mut Unsaved) -> Step<()> {
        let text = std::mem::take(unsaved).text;
        if text.is_empty() {
            return Ok(());
        }
        self.commit(vec![SessionRecord::Checkpoint(Checkpoint { attempt, text })], vec![]).await
    }

    fn open_blocks(&self) -> u32 {
        let attempt = self.state.turn.as_ref().and_then(|turn| turn.attempt.as_ref());
        attempt.map_or(0, |attempt| u32::try_from(attempt.blocks.len()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
