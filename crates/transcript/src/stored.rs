//! The fold from the records of a stored session to blocks.

use longhaul_protocol::{
    At, AttemptEnded, AttemptId, Body, Cause, EpochReason, Event, EventKind, Input, InputTaken, Item,
    OrderKind, OrderTaken, Record, Role, Seq, SessionRecord, TurnEnded, TurnStarted,
};

use crate::block::{Block, BlockContent, BlockState, Update};
use crate::cost::SessionCost;
use crate::fold::{BlockOrigin, Transcript};
use crate::waiting_inputs::{WaitingInput, WaitingInputs};

/// Folds the records of a session into the same updates as [`Transcript`] does with events. Records tell more: the text of inputs
/// and answers, orders, what a turn spent. A message is one update here, since its deltas are not on record. An input ends with the step that
/// shows it to the model.
#[derive(Debug, Default)]
pub struct StoredTranscript {
    transcript: Transcript,
    waiting: WaitingInputs,
    turn: Option<TurnTotals>,
    /// The record with which the last turn ended.
    last_end: Option<Seq>,
    attempt: Option<OpenAttempt>,
    model: Option<String>,
}

#[derive(Debug, Default)]
struct TurnTotals {
    number: u64,
    /// The record that started it.
    seq: Option<Seq>,
    cause: Option<Cause>,
    steps: u64,
    /// Whether the model was called.
    has_called: bool,
    spend: SessionCost,
}

/// What a fold that begins in the middle of a session can't know from the records behind that place.
#[derive(Debug, Clone, Default)]
pub struct FoldStart {
    /// The model of the last attempt.
    pub model: Option<String>,
    /// The turn that runs there.
    pub turn: Option<RunningTurn>,
    /// The record with which the last turn ended.
    pub last_end: Option<Seq>,
    /// The inputs that wait there.
    pub waiting: Vec<WaitingInput>,
}

/// A turn that runs where a fold begins.
#[derive(Debug, Clone)]
pub struct RunningTurn {
    pub number: u64,
    /// The record that started it.
    pub seq: Seq,
    pub cause: Option<Cause>,
    pub started_at: At,
    /// Steps that were started before.
    pub steps: u64,
    /// What was spent before.
    pub spend: SessionCost,
}

#[derive(Debug)]
struct OpenAttempt {
    id: AttemptId,
    /// The record that started it.
    seq: Option<Seq>,
    started_at: At,
    items: Vec<Item>,
    /// The text of the item that is not complete, as far as checkpoints have it.
    partial_text: String,
}

impl OpenAttempt {
    /// The text of the answer so far.
    fn text(&self) -> String {
        let complete = self.items.iter().filter_map(|item| match item {
            Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
            _ => None,
        });
        let parts = complete.chain([self.partial_text.as_str()]).filter(|text| !text.trim().is_empty());
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

impl StoredTranscript {
    pub fn new() -> Self {
        Self::default()
    }

    /// A fold that begins between two turns or between two steps of one. `inputs` has the records of the inputs that wait there.
    pub fn starting_at(start: FoldStart, inputs: &[Record]) -> Self {
        let mut transcript = Transcript::new();
        let turn = start.turn.map(|turn| {
            transcript.set_turn_started_at(turn.started_at);
            let RunningTurn { number, seq, cause, steps, spend, .. } = turn;
            // A second step follows a call.
            TurnTotals { number, seq: Some(seq), cause, steps, has_called: steps > 0, spend }
        });
        let (model, last_end) = (start.model, start.last_end);
        let mut fold = Self { transcript, turn, model, last_end, ..Self::default() };
        for known in &start.waiting {
            let record = inputs.iter().find(|record| record.seq == known.seq);
            if let Some((record, input)) = record.and_then(|record| Some((record, record.decode().ok()?))) {
                let input: InputTaken = input;
                let origin = BlockOrigin { seq: Some(record.seq), turn: None, at: record.at };
                let block = fold.input_block(&input, origin);
                fold.waiting.restore(known, &input, block);
            }
        }
        fold
    }

    /// What another fold needs to know that begins here, between two turns or between two steps of one.
    pub fn next_start(&self) -> FoldStart {
        let turn = self.turn.as_ref().and_then(|turn| {
            let TurnTotals { number, seq, cause, steps, ref spend, .. } = *turn;
            let (started_at, spend) = (self.transcript.turn_started_at()?, spend.clone());
            Some(RunningTurn { number, seq: seq?, cause, started_at, steps, spend })
        });
        let (model, last_end, waiting) = (self.model.clone(), self.last_end, self.waiting.places());
        FoldStart { model, turn, last_end, waiting }
    }

    /// What goes on after the records so far: the turn, the part of an answer that has arrived, calls, questions and compactions,
    /// and inputs that wait for a step. Background tasks are not listed, since the fold may not have seen them start.
    pub fn open_blocks(&self) -> Vec<Block> {
        let running = |seq, at, content| {
            let (turn, state) = (self.turn.as_ref().map(|turn| turn.number), BlockState::Running);
            Block { id: 0, seq, turn, started_at: at, ended_at: None, state, content }
        };
        let mut open = Vec::new();
        if let Some(turn) = &self.turn {
            let started_at = self.transcript.turn_started_at().unwrap_or(At(0));
            open.push(running(turn.seq, started_at, BlockContent::TurnStart { cause: turn.cause }));
        }
        if let Some(attempt) = &self.attempt {
            let text = attempt.text();
            if !text.trim().is_empty() {
                let content = BlockContent::Message { role: Role::Assistant, text };
                open.push(running(attempt.seq, attempt.started_at, content));
            }
        }
        let is_listed = |block: &&Block| !matches!(block.content, BlockContent::Task { .. });
        open.extend(self.transcript.open_blocks().iter().filter(is_listed).cloned());
        open.extend(self.waiting.blocks().map(|block| self.with_fork_point(block.clone())));
        open
    }

    /// Applies the next record.
    pub fn apply(&mut self, record: &Record) -> Vec<Update> {
        let origin = self.origin(Some(record.seq), record.at);
        if let Body::Gone(gone) = &record.body {
            let (seq, kind, reason) = (record.seq, record.kind.clone(), gone.reason.clone());
            return vec![self.block(BlockContent::ErasedRecord { seq, kind, at: gone.at, reason }, origin)];
        }
        match SessionRecord::decode(record) {
            Ok(fact) => self.apply_fact(fact, origin),
            Err(error) => self.apply_damaged(record.seq, error.to_string()),
        }
    }

    /// Notes that a record can't be read.
    pub fn apply_damaged(&mut self, seq: Seq, reason: String) -> Vec<Update> {
        let origin = self.origin(Some(seq), At(0));
        vec![self.block(BlockContent::DamagedRecord { seq, reason }, origin)]
    }

    /// What is still open when the records end.
    pub fn end(&mut self) -> Vec<Update> {
        let origin = self.origin(None, At(0));
        let mut updates = self.end_attempt(None, BlockState::Interrupted, origin);
        if let Some(turn) = self.turn.take() {
            updates.push(self.block(BlockContent::UnfinishedTurn { turn: turn.number }, origin));
        }
        let waiting = self.waiting.take_all();
        updates.extend(waiting.into_iter().map(|block| Update::Ended(self.with_fork_point(block))));
        updates
    }

    /// Inputs that the session has not taken from its inbox, with the moments at which they were accepted.
    pub fn untaken_inputs(&mut self, inbox: Vec<(At, Input)>) -> Vec<Update> {
        let block = |(at, input): (At, Input)| {
            let origin = self.origin(None, at);
            Update::Ended(self.input_block(&InputTaken::of(input, 0), origin))
        };
        inbox.into_iter().map(block).collect()
    }

    fn apply_fact(&mut self, fact: SessionRecord, origin: BlockOrigin) -> Vec<Update> {
        match fact {
            SessionRecord::InputTaken(input) => {
                let block = self.input_block(&input, origin);
                self.waiting.push(&input, block);
                vec![]
            }
            SessionRecord::OrderTaken(taken) => self.order_taken(taken, origin),
            SessionRecord::TurnStarted(started) => {
                let TurnStarted { turn, cause } = started;
                self.turn =
                    Some(TurnTotals { number: turn, seq: origin.seq, cause, ..TurnTotals::default() });
                let origin = BlockOrigin { turn: Some(turn), ..origin };
                self.waiting.begin_turn();
                self.event(SessionRecord::TurnStarted(started), origin)
            }
            SessionRecord::StepStarted(step) => {
                self.turn.iter_mut().for_each(|turn| turn.steps += 1);
                let taken = self.waiting.begin_step(&step.later);
                self.end_inputs(taken, origin)
            }
            SessionRecord::AttemptStarted(started) => {
                // The process that received the answer before died, and the model is asked again.
                let mut updates = self.end_attempt(None, BlockState::Discarded, origin);
                // The record of the step can't be read.
                if self.turn.as_ref().is_some_and(|turn| turn.steps == 0) {
                    let taken = self.waiting.begin_step(&[]);
                    updates.extend(self.end_inputs(taken, origin));
                }
                self.turn.iter_mut().for_each(|turn| turn.has_called = true);
                let (id, items, partial_text) = (started.attempt, vec![], String::new());
                let (seq, started_at) = (origin.seq, origin.at);
                self.attempt = Some(OpenAttempt { id, seq, started_at, items, partial_text });
                if self.model.as_ref() != Some(&started.model) {
                    updates.push(self.block(BlockContent::Model { name: started.model.clone() }, origin));
                    self.model = Some(started.model);
                }
                updates
            }
            SessionRecord::Block(block) => {
                if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.id == block.attempt) {
                    attempt.items.push(block.item);
                    attempt.partial_text.clear();
                }
                vec![]
            }
            SessionRecord::Checkpoint(checkpoint) => {
                let attempt = self.attempt.as_mut().filter(|attempt| attempt.id == checkpoint.attempt);
                attempt.into_iter().for_each(|attempt| attempt.partial_text.push_str(&checkpoint.text));
                vec![]
            }
            SessionRecord::AttemptEnded(ended) => self.attempt_ended(&ended, origin),
            SessionRecord::Usage(usage) => {
                self.turn.iter_mut().for_each(|turn| turn.spend.add(&usage));
                vec![]
            }
            SessionRecord::TurnEnded(ended) => self.turn_ended(ended, origin),
            SessionRecord::Imported(imported) => {
                let mut updates = self.end_attempt(None, BlockState::Interrupted, origin);
                let dropped = self.waiting.take_all();
                updates.extend(self.end_inputs(dropped, origin));
                (self.turn, self.last_end) = (None, origin.seq);
                self.transcript.abandon_turn(origin.at);
                updates.extend(self.event(SessionRecord::Imported(imported), origin));
                updates
            }
            fact => self.apply_event_like(fact, origin),
        }
    }

    fn order_taken(&mut self, taken: OrderTaken, origin: BlockOrigin) -> Vec<Update> {
        let content = match taken.order.kind {
            OrderKind::Withdraw { input } if self.waiting.withdraw(input) => BlockContent::WithdrawnInput,
            order => {
                if order == OrderKind::Cancel && self.turn.is_none() {
                    self.waiting.cancel();
                }
                BlockContent::Order(order)
            }
        };
        vec![self.block(content, origin)]
    }

    /// An input that waits. Which turn will have it is not known yet.
    fn input_block(&mut self, input: &InputTaken, origin: BlockOrigin) -> Block {
        let from = (!input.sender.is_person()).then(|| input.sender.to_string());
        let content =
            BlockContent::Input { text: input.text.clone(), images: input.images.len(), from, fork_at: None };
        let block = self.transcript.finished_block(content, origin);
        Block { turn: None, ended_at: None, state: BlockState::Running, ..block }
    }

    /// Ends inputs with the record that shows them to the model.
    fn end_inputs(&self, inputs: Vec<Block>, origin: BlockOrigin) -> Vec<Update> {
        let (turn, ended_at) = (origin.turn, Some(origin.at));
        let ended = inputs.into_iter().map(|block| Block {
            turn,
            ended_at,
            state: BlockState::Finished,
            ..self.with_fork_point(block)
        });
        ended.map(Update::Ended).collect()
    }

    fn with_fork_point(&self, mut block: Block) -> Block {
        if let BlockContent::Input { fork_at, .. } = &mut block.content {
            *fork_at = self.last_end;
        }
        block
    }

    /// Of an attempt, only the kept items count.
    fn attempt_ended(&mut self, ended: &AttemptEnded, origin: BlockOrigin) -> Vec<Update> {
        let Some(error) = &ended.error else {
            let Some(attempt) = self.attempt.take() else { return vec![] };
            return self.kept_items(attempt.items, ended.kept, origin);
        };
        let items = self.attempt.as_mut().map(|attempt| std::mem::take(&mut attempt.items));
        let mut updates = self.kept_items(items.unwrap_or_default(), ended.kept, origin);
        // What counts of the text is a block by now: that of a cancelled answer. The rest is discarded.
        updates.extend(self.end_attempt(Some(error), BlockState::Discarded, origin));
        updates
    }

    /// The items of an answer that were kept. Calls become blocks when they run.
    fn kept_items(&mut self, items: Vec<Item>, kept: u32, origin: BlockOrigin) -> Vec<Update> {
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let contents = items.into_iter().take(kept).filter_map(|item| match item {
            Item::Text { role: Role::Assistant, text } if !text.trim().is_empty() => {
                Some(BlockContent::Message { role: Role::Assistant, text })
            }
            Item::Reasoning { text, .. } if !text.trim().is_empty() => Some(BlockContent::Reasoning { text }),
            _ => None,
        });
        contents.map(|content| self.block(content, origin)).collect()
    }

    /// Ends an attempt that has no more to give: its partial text, which is in this state, and its error.
    fn end_attempt(&mut self, error: Option<&str>, state: BlockState, origin: BlockOrigin) -> Vec<Update> {
        let Some(attempt) = self.attempt.take() else { return vec![] };
        let mut updates = Vec::new();
        if !attempt.partial_text.trim().is_empty() {
            let content = BlockContent::Message { role: Role::Assistant, text: attempt.partial_text };
            let block = self.transcript.finished_block(content, origin);
            updates.push(Update::Ended(Block { state, ..block }));
        }
        if let Some(error) = error {
            updates.push(self.block(BlockContent::AttemptFailure { error: error.to_owned() }, origin));
        }
        updates
    }

    fn turn_ended(&mut self, ended: TurnEnded, origin: BlockOrigin) -> Vec<Update> {
        let mut updates = self.end_attempt(None, BlockState::Interrupted, origin);
        // The record says that no input waits. If one seems to wait, the record of its step can't be read.
        if ended.inbox_through.is_some() {
            let taken = self.waiting.take_all();
            updates.extend(self.end_inputs(taken, origin));
        }
        let totals = self.turn.take();
        self.last_end = origin.seq;
        updates.extend(self.event(SessionRecord::TurnEnded(ended), origin));
        if let Some(Update::Ended(Block { content: BlockContent::TurnEnd(end), .. })) = updates.last_mut() {
            match totals {
                Some(totals) => {
                    let is_unused = !totals.has_called && totals.spend == SessionCost::default();
                    let spend = if is_unused { SessionCost::of_no_call() } else { totals.spend };
                    (end.steps, end.spend) = (totals.steps, spend);
                }
                None => end.took_ms = None,
            }
        }
        updates
    }

    /// Records that have an event of the same content, and the few that have no event at all.
    fn apply_event_like(&mut self, fact: SessionRecord, origin: BlockOrigin) -> Vec<Update> {
        match fact {
            SessionRecord::EpochStarted(started) if started.reason == EpochReason::Changed => {
                vec![self.block(BlockContent::PromptChange, origin)]
            }
            SessionRecord::Stubbed(stubbed) => {
                vec![self.block(BlockContent::Stubs { results: stubbed.calls.len() }, origin)]
            }
            SessionRecord::Answered(answered) => {
                let given = answered.answer.clone();
                let mut updates = self.event(SessionRecord::Answered(answered), origin);
                if let Some(Update::Ended(Block { content: BlockContent::Question { answer, .. }, .. })) =
                    updates.last_mut()
                {
                    *answer = Some(given);
                }
                updates
            }
            SessionRecord::ModelChanged(changed) => {
                self.model = Some(changed.to.clone());
                self.event(SessionRecord::ModelChanged(changed), origin)
            }
            fact => self.event(fact, origin),
        }
    }

    /// A block that is finished at once.
    fn block(&mut self, content: BlockContent, origin: BlockOrigin) -> Update {
        Update::Ended(self.transcript.finished_block(content, origin))
    }

    /// Applies the event that shows a record.
    fn event(&mut self, fact: SessionRecord, origin: BlockOrigin) -> Vec<Update> {
        let Some(kind) = EventKind::of_record(fact) else { return vec![] };
        let BlockOrigin { seq, turn, at } = origin;
        self.transcript.apply(&Event { seq, at, session: String::new(), turn, kind })
    }

    fn origin(&self, seq: Option<Seq>, at: At) -> BlockOrigin {
        BlockOrigin { seq, turn: self.turn.as_ref().map(|turn| turn.number), at }
    }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
