//! The fold from records and live events to updates.
//!
//! `session/load` gives it all records from the first one on, and then it goes on with what happens. So the past looks the same as it did
//! when it happened, except for text that was discarded since: an editor can't take text back, so a remark after it says that it does
//! not count, and the next load leaves it out.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use longhaul_protocol::{
    CallId, Event, EventKind, Item, PermissionMode, Record, Role, Seq, SessionId, SessionRecord,
};
use longhaul_transcript::{
    Block, BlockContent, BlockState, Call, CompactionOutcome, StoredTranscript, TurnEnd, Update, Verbosity,
    notice_text,
};

use super::streamed_text::StreamedText;
use super::tool_call::{finished_call, plan_of, started_call};
use crate::wire::params::ClientFeatures;
use crate::wire::update::{MessageChunk, SessionUpdate, ToolStatus};

/// Shown after the text of an answer that broke off.
const DISCARDED: &str = "\n\n*[This answer broke off and does not count; the model is asked again.]*\n\n";

/// What follows from a record or an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Folded {
    Update(SessionUpdate),
    /// The model gets an input in this turn.
    Input {
        seq: Seq,
        turn: Option<u64>,
        text: String,
    },
    ModeChanged(PermissionMode),
    ModelChanged(String),
    TurnEnded {
        turn: Option<u64>,
        end: Box<TurnEnd>,
    },
}

/// Folds one session.
pub(crate) struct UpdateFold {
    transcript: StoredTranscript,
    session: SessionId,
    work_dir: PathBuf,
    features: ClientFeatures,
    /// The record that began the attempt whose text is streamed now.
    attempt: Seq,
    message: StreamedText,
    thought: StreamedText,
    /// Calls of the model that have not started.
    waiting_calls: HashMap<CallId, Call>,
    /// Calls that the editor knows and that have not ended.
    shown_calls: HashSet<CallId>,
    /// US dollars, as far as prices are known.
    cost: Option<f64>,
}

impl UpdateFold {
    pub(crate) fn new(session: SessionId, work_dir: PathBuf, features: ClientFeatures) -> Self {
        Self {
            transcript: StoredTranscript::new(),
            session,
            work_dir,
            features,
            attempt: 0,
            message: StreamedText::default(),
            thought: StreamedText::default(),
            waiting_calls: HashMap::new(),
            shown_calls: HashSet::new(),
            cost: None,
        }
    }

    /// What all turns have cost in US dollars, as far as prices are known.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// The id of the message that this record begins.
    pub(crate) fn message_id(&self, seq: Seq) -> String {
        format!("{}/{seq}", self.session)
    }

    /// A call that waits for a permission, for the editor to show. It counts as shown from now on.
    pub(crate) fn show_waiting_call(&mut self, call: CallId) -> Option<SessionUpdate> {
        let waiting = self.waiting_calls.get(&call)?;
        let shown = started_call(waiting, &self.work_dir, ToolStatus::Pending);
        self.shown_calls.insert(call).then_some(SessionUpdate::ToolCall(shown))
    }

    /// A call that has not started.
    pub(crate) fn waiting_call(&self, call: CallId) -> Option<&Call> {
        self.waiting_calls.get(&call)
    }

    /// Applies the next record.
    pub(crate) fn apply_record(&mut self, record: &Record) -> Vec<Folded> {
        let mut folded = Vec::new();
        match record.kind.as_str() {
            "attempt_started" => {
                self.end_answer(&mut folded);
                self.attempt = record.seq;
            }
            "block" => self.complete_block(record),
            _ => {}
        }
        for update in self.transcript.apply(record) {
            self.apply_update(update, &mut folded);
        }
        if matches!(record.kind.as_str(), "attempt_ended" | "turn_ended" | "imported") {
            self.end_answer(&mut folded);
        }
        folded
    }

    /// Applies an event that is not on record.
    pub(crate) fn apply_live(&mut self, event: &Event) -> Vec<Folded> {
        match &event.kind {
            EventKind::TextDelta { text } if !text.is_empty() => {
                let text = self.message.push_delta(text);
                vec![self.message_chunk(text)]
            }
            EventKind::Partial { text, .. } => {
                let new = self.message.push_whole(text);
                new.map(|text| self.message_chunk(text)).into_iter().collect()
            }
            EventKind::ReasoningDelta { text } if !text.is_empty() => {
                let text = self.thought.push_delta(text);
                vec![self.thought_chunk(text)]
            }
            EventKind::RetryWait { .. } | EventKind::Warning { .. } => {
                let updates = longhaul_transcript::Transcript::new().apply(event);
                updates.iter().filter_map(|update| self.notice(update)).collect()
            }
            _ => vec![],
        }
    }

    /// Completes a block of the answer. The end of the attempt says whether it counts.
    fn complete_block(&mut self, record: &Record) {
        let Ok(SessionRecord::Block(block)) = SessionRecord::decode(record) else { return };
        match block.item {
            Item::Text { .. } => self.message.end_block(),
            Item::Reasoning { .. } => self.thought.end_block(),
            Item::ToolCall { call, name, arguments, .. } => {
                let waiting = Call { call, name, arguments, effect: None, result: None };
                self.waiting_calls.insert(call, waiting);
            }
            _ => {}
        }
    }

    fn end_answer(&mut self, folded: &mut Vec<Folded>) {
        self.thought.end();
        if self.message.end() {
            let chunk = MessageChunk::remark(self.message_id(self.attempt), DISCARDED, "discarded");
            folded.push(Folded::Update(SessionUpdate::AgentMessageChunk(chunk)));
        }
    }

    fn apply_update(&mut self, update: Update, folded: &mut Vec<Folded>) {
        match update {
            Update::Started(Block { content: BlockContent::Call(call), .. }) => {
                folded.push(self.call_started(&call));
            }
            Update::Ended(block) => self.block_ended(block, folded),
            Update::Started(ref block) => {
                if let BlockContent::Compaction { .. } = block.content {
                    folded.extend(self.compaction(block, "in_progress", None));
                }
                folded.extend(self.notice(&update));
            }
            Update::Appended { .. } => {}
        }
    }

    fn block_ended(&mut self, block: Block, folded: &mut Vec<Folded>) {
        let is_kept = block.state == BlockState::Finished;
        match block.content {
            BlockContent::Message { role: Role::Assistant, ref text } if is_kept => {
                let missing = self.message.count_block(text);
                folded.extend(missing.map(|text| self.message_chunk(text)));
            }
            BlockContent::Reasoning { ref text } if is_kept => {
                let missing = self.thought.count_block(text);
                folded.extend(missing.map(|text| self.thought_chunk(text)));
            }
            BlockContent::Input { text, .. } => {
                folded.extend(block.seq.map(|seq| Folded::Input { seq, turn: block.turn, text }));
            }
            BlockContent::Call(ref call) => self.call_ended(call, folded),
            BlockContent::ModeChange { to, .. } => folded.push(Folded::ModeChanged(to)),
            BlockContent::Model { name } => folded.push(Folded::ModelChanged(name)),
            BlockContent::ModelChange { ref to, .. } => {
                folded.push(Folded::ModelChanged(to.clone()));
                folded.extend(self.notice(&Update::Ended(block)));
            }
            BlockContent::Compaction { ref outcome, .. } => {
                let (status, error) = match outcome {
                    Some(CompactionOutcome::Failed { reason }) => ("failed", Some(reason.clone())),
                    Some(CompactionOutcome::Done { .. }) | None => ("completed", None),
                };
                folded.extend(self.compaction(&block, status, error));
                folded.extend(self.notice(&Update::Ended(block)));
            }
            BlockContent::TurnEnd(end) => {
                self.waiting_calls.clear();
                self.cost = match (self.cost, end.spend.cost) {
                    (Some(before), Some(more)) => Some(before + more),
                    (before, more) => before.or(more),
                };
                folded.push(Folded::TurnEnded { turn: block.turn, end: Box::new(end) });
            }
            _ => folded.extend(self.notice(&Update::Ended(block))),
        }
    }

    fn call_started(&mut self, call: &Call) -> Folded {
        self.waiting_calls.remove(&call.call);
        let started = started_call(call, &self.work_dir, ToolStatus::InProgress);
        Folded::Update(match self.shown_calls.insert(call.call) {
            true => SessionUpdate::ToolCall(started),
            false => SessionUpdate::ToolCallUpdate(started),
        })
    }

    fn call_ended(&mut self, call: &Call, folded: &mut Vec<Folded>) {
        // A call that was refused has a result without having started.
        let waiting = self.waiting_calls.remove(&call.call);
        if !self.shown_calls.remove(&call.call) {
            let asked = waiting.as_ref().unwrap_or(call);
            let started = started_call(asked, &self.work_dir, ToolStatus::Pending);
            folded.push(Folded::Update(SessionUpdate::ToolCall(started)));
        }
        let finished = finished_call(call, &self.work_dir);
        folded.push(Folded::Update(SessionUpdate::ToolCallUpdate(finished)));
        let plan = plan_of(call).map(|entries| SessionUpdate::Plan { entries });
        folded.extend(plan.map(Folded::Update));
    }

    fn compaction(&self, block: &Block, status: &'static str, error: Option<String>) -> Option<Folded> {
        let compaction_id = self.message_id(block.seq?);
        let update = SessionUpdate::CompactionUpdate { compaction_id, status, error };
        self.features.compaction.then_some(Folded::Update(update))
    }

    /// A line for the user, if the editor can show it.
    fn notice(&self, update: &Update) -> Option<Folded> {
        let (Update::Started(block) | Update::Ended(block)) = update else { return None };
        let severity = match block.content {
            BlockContent::Warning { .. } | BlockContent::Retry(_) | BlockContent::AttemptFailure { .. } => {
                "warning"
            }
            BlockContent::Task { .. } | BlockContent::ModelChange { .. } => "info",
            BlockContent::Compaction { .. } if !self.features.compaction => "info",
            _ => return None,
        };
        let title = notice_text(update, Verbosity::Normal).filter(|_| self.features.notices)?;
        Some(Folded::Update(SessionUpdate::Notice { severity, title }))
    }

    fn message_chunk(&self, text: String) -> Folded {
        let chunk = MessageChunk::text(self.message_id(self.attempt), text);
        Folded::Update(SessionUpdate::AgentMessageChunk(chunk))
    }

    fn thought_chunk(&self, text: String) -> Folded {
        let chunk = MessageChunk::text(self.message_id(self.attempt) + "/thought", text);
        Folded::Update(SessionUpdate::AgentThoughtChunk(chunk))
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
