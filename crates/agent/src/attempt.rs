//! Asking the model: one attempt, from its record to its end.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `attempt_started` | that it was tried | closed as interrupted, the same request again |
//! | a `block` of text | the block, which does not count yet | closed, nothing kept, the same request again |
//! | a `block` that is a call | the call | closed with all complete blocks kept; the call is run, once |
//! | `attempt_ended` | the answer | its calls are run, or the turn ends |
//!
//! Never: text twice in the context, a call that is run twice, half a block.

use std::sync::Arc;
use std::time::Duration;

use longhaul_context::normalise;
use longhaul_model::{Error as ModelError, Request};
use longhaul_protocol::{
    AttemptEnded, AttemptId, AttemptStarted, Block, Checkpoint, EventKind, SessionRecord, StepStarted,
    ToolSchema, TurnStarted, Usage, Warning,
};
use tokio::time::Instant;

use crate::blocks::{Blocks, Progress};
use crate::decide::Ending;
use crate::worker::{Attended, Heed, Step, Stopped, Worker};
use crate::{Error, state};

/// Unfinished text is saved after so much of it, or so much time.
const CHECKPOINT_BYTES: usize = 2 << 10;
const CHECKPOINT_TIME: Duration = Duration::from_secs(1);
/// What an attempt is closed with that a crash left open.
const INTERRUPTED: &str = "interrupted";
const CANCELLED: &str = "cancelled";
const NOT_SAVED: &str = "what came could not be saved";

/// How an attempt came to its end.
enum Ended {
    Complete {
        stop: String,
    },
    Failed(ModelError),
    /// Nobody wants the rest of it.
    Stopped(&'static str),
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

impl Worker {
    /// Asks the model once, after beginning the turn and the step if they have not begun.
    pub(crate) async fn call_model(&mut self, turn: Option<u64>, step: Option<u64>) -> Step<()> {
        let attempt = AttemptId::generate();
        let model = self.runtime.model.name().to_owned();
        let mut facts = Vec::new();
        facts.extend(turn.map(|turn| SessionRecord::TurnStarted(TurnStarted { turn })));
        facts.extend(step.map(|step| SessionRecord::StepStarted(StepStarted { step })));
        facts.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model }));
        self.commit(facts, vec![]).await?;
        let mut blocks = Blocks::default();
        let ended = match self.policy.must_end {
            Some(_) => Ended::Stopped(NOT_SAVED),
            None => self.hear(attempt, &mut blocks).await?,
        };
        self.end_attempt(attempt, ended, &blocks).await
    }

    /// Asks, and listens until the answer is over.
    async fn hear(&mut self, attempt: AttemptId, blocks: &mut Blocks) -> Step<Ended> {
        let request = self.request().await?;
        let model = self.runtime.model.clone();
        let mut asking = model.ask(request);
        let mut answer = match self.attend(&mut asking, Heed::Cancel, None).await? {
            Attended::Done(Ok(answer)) => answer,
            Attended::Done(Err(error)) => return Ok(Ended::Failed(error)),
            Attended::Called => return Ok(Ended::Stopped(self.stopped_by())),
            Attended::Suspended | Attended::Due => return Err(Stopped::Suspended),
        };
        let mut unsaved = Unsaved::default();
        let ended = loop {
            if self.policy.must_end.is_some() {
                break Ended::Stopped(NOT_SAVED);
            }
            let mut next = answer.next();
            let attended = loop {
                match self.attend(&mut next, Heed::Cancel, unsaved.due()).await? {
                    Attended::Due => self.checkpoint(attempt, &mut unsaved).await?,
                    attended => break attended,
                }
            };
            match attended {
                Attended::Done(Ok(part)) => match blocks.push(part) {
                    Progress::End(stop) => break Ended::Complete { stop },
                    Progress::Odd(reason) => {
                        break Ended::Failed(ModelError::Broken { reason: reason.to_owned() });
                    }
                    progress => self.progress(attempt, progress, &mut unsaved).await?,
                },
                Attended::Done(Err(error)) => break Ended::Failed(error),
                Attended::Called => break Ended::Stopped(self.stopped_by()),
                Attended::Suspended | Attended::Due => {
                    self.checkpoint(attempt, &mut unsaved).await?;
                    return Err(Stopped::Suspended);
                }
            }
        };
        self.checkpoint(attempt, &mut unsaved).await?;
        Ok(ended)
    }

    fn stopped_by(&self) -> &'static str {
        if self.state.cancelled() { CANCELLED } else { NOT_SAVED }
    }

    /// Shows and records what came.
    async fn progress(&mut self, attempt: AttemptId, progress: Progress, unsaved: &mut Unsaved) -> Step<()> {
        match progress {
            Progress::Text(delta) => {
                unsaved.push(&delta);
                self.show(EventKind::TextDelta { text: delta });
                if unsaved.text.len() >= CHECKPOINT_BYTES {
                    self.checkpoint(attempt, unsaved).await?;
                }
            }
            Progress::Reasoning(delta) => self.show(EventKind::ReasoningDelta { text: delta }),
            Progress::Block(item) => {
                *unsaved = Unsaved::default();
                let index = self.open_blocks();
                self.commit(vec![SessionRecord::Block(Block { attempt, index, item })], vec![]).await?;
            }
            Progress::Nothing | Progress::End(_) | Progress::Odd(_) => {}
        }
        Ok(())
    }

    /// Closes the attempt: what counts of it, what it cost, and the turn's end where it failed for good.
    async fn end_attempt(&mut self, attempt: AttemptId, ended: Ended, blocks: &Blocks) -> Step<()> {
        let open = self.state.turn.as_ref().and_then(|turn| turn.attempt.as_ref());
        let (kept, stop, error) = match &ended {
            Ended::Complete { stop } => (open.map_or(0, |open| open.blocks.len()), Some(stop.clone()), None),
            Ended::Failed(error) => {
                (open.map_or(0, state::Attempt::kept_when_broken), None, Some(error.to_string()))
            }
            Ended::Stopped(why) => {
                (open.map_or(0, state::Attempt::kept_when_cancelled), None, Some((*why).to_owned()))
            }
        };
        let failed = match (&ended, kept) {
            (Ended::Failed(error), 0) => Some(error.to_string()),
            _ => None,
        };
        let mut facts = vec![ended_with(attempt, kept, stop, error)];
        facts.extend(blocks.tokens.map(|tokens| {
            let (input, output, cached) = (tokens.input, tokens.output, tokens.cached);
            SessionRecord::Usage(Usage { attempt, input, output, cached, cost: None })
        }));
        // What was complete is run; that there was more, or should have been, is not passed over.
        if let (Ended::Failed(error), 1..) = (&ended, kept) {
            let (code, text) = ("answer_cut".to_owned(), format!("{error}; what was complete of it counts"));
            facts.push(SessionRecord::Warning(Warning { code, text }));
        }
        match failed {
            // In one append: an attempt that failed for good is never on disk without the end of its turn.
            Some(error) => self.end_turn(facts, Ending::failed(error)).await,
            None => self.commit(facts, vec![]).await,
        }
    }

    /// Closes an attempt that a crash left open.
    pub(crate) async fn close_attempt(&mut self, kept: usize) -> Step<()> {
        let Some(attempt) = self.state.turn.as_ref().and_then(|turn| turn.attempt.as_ref()) else {
            return Ok(());
        };
        let ended = ended_with(attempt.id, kept, None, Some(INTERRUPTED.to_owned()));
        self.commit(vec![ended], vec![]).await
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

    /// What the model is asked: the epoch's beginning, then everything since.
    async fn request(&self) -> Step<Request> {
        let Some(epoch) = &self.state.epoch else {
            let (key, reason) = (self.shared.key.clone(), "it has no epoch".to_owned());
            return Err(Stopped::Failed(Error::Worker { key, reason }));
        };
        let items = normalise(&self.state.items);
        let ours = self.policy.system == epoch.system.hash && self.policy.tools == epoch.tools.hash;
        if ours {
            let (system, tools) = (self.equipment.system.text.clone(), self.equipment.tools.schemas.clone());
            return Ok(Request { system, tools, items });
        }
        // A turn that an older version began goes on with what it began with.
        let journal = &self.runtime.journal;
        let system = journal.blob(epoch.system.hash).await?;
        let tools = journal.blob(epoch.tools.hash).await?;
        let reason = |error: serde_json::Error| Error::Worker {
            key: self.shared.key.clone(),
            reason: format!("the tools of its epoch can't be read: {error}"),
        };
        let tools: Vec<ToolSchema> =
            serde_json::from_slice(&tools).map_err(reason).map_err(Stopped::Failed)?;
        Ok(Request { system: Arc::from(String::from_utf8_lossy(&system)), tools: tools.into(), items })
    }
}

fn ended_with(attempt: AttemptId, kept: usize, stop: Option<String>, error: Option<String>) -> SessionRecord {
    let kept = u32::try_from(kept).unwrap_or(u32::MAX);
    SessionRecord::AttemptEnded(AttemptEnded { attempt, kept, stop, error })
}
