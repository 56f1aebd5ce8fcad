//! The fold from events to blocks.

use longhaul_protocol::{
    AnsweredBy, At, Event, EventKind, Outcome, QuestionId, QuestionKind, Role, Seq, TaskStatus,
};

use crate::block::{
    Block, BlockContent, BlockId, BlockState, Call, CallResult, CompactionOutcome, Retry, TextTarget,
    TurnEnd, Update, milliseconds_between,
};
use crate::cost::SessionCost;
use crate::question::question_with_choices;

/// Folds the events of one session into blocks. It keeps only what is open; a finished block is handed over with its
/// [`Update::Ended`], and the caller decides how long to keep it.
#[derive(Debug, Default)]
pub struct Transcript {
    last_id: BlockId,
    /// In the order in which they started.
    open: Vec<Block>,
    /// When the turn that runs began, or when its first event was seen.
    turn_started_at: Option<At>,
    open_questions: usize,
    /// What the event that is being applied has changed so far.
    updates: Vec<Update>,
}

/// Where and when an event happened: what each block that it starts has in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockOrigin {
    pub(crate) seq: Option<Seq>,
    pub(crate) turn: Option<u64>,
    pub(crate) at: At,
}

impl Transcript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies the next event. Its own time is that of the blocks.
    pub fn apply(&mut self, event: &Event) -> Vec<Update> {
        self.apply_at(event, event.at)
    }

    /// Applies the next event as of `at`: for a watcher that measures durations by its own clock.
    pub fn apply_at(&mut self, event: &Event, at: At) -> Vec<Update> {
        if !matches!(event.kind, EventKind::RetryWait { .. }) {
            self.end_if_open(|content| matches!(content, BlockContent::Retry(_)), BlockState::Finished, at);
        }
        match &event.kind {
            EventKind::TurnStarted { .. } => self.turn_started_at = Some(at),
            // A watcher that joins in the middle of a turn has not seen it start.
            EventKind::StepStarted
            | EventKind::TextDelta { .. }
            | EventKind::Partial { .. }
            | EventKind::ToolStarted { .. } => drop(self.turn_started_at.get_or_insert(at)),
            _ => {}
        }
        let origin = BlockOrigin { seq: event.seq, turn: event.turn, at };
        if !self.apply_answer(&event.kind, origin)
            && !self.apply_lasting(&event.kind, origin)
            && let Some(content) = instant_content(&event.kind)
        {
            let block = self.finished_block(content, origin);
            self.updates.push(Update::Ended(block));
        }
        std::mem::take(&mut self.updates)
    }

    /// Events of the model's answer and of the turn around it. False if the event is none of them.
    fn apply_answer(&mut self, kind: &EventKind, origin: BlockOrigin) -> bool {
        match kind {
            EventKind::TextDelta { text } => self.append_message(text, origin),
            // The whole text so far, of which a part may have arrived as deltas.
            EventKind::Partial { text, .. } => {
                let known = self.message_text().unwrap_or_default();
                let new = text.strip_prefix(known).unwrap_or(text).to_owned();
                self.append_message(&new, origin);
            }
            EventKind::ReasoningDelta { text } => self.append(TextTarget::Reasoning, text, origin),
            EventKind::Message { role, content } => {
                self.end_reasoning(origin.at);
                let message = BlockContent::Message { role: *role, text: content.clone() };
                self.end(is_message, message.clone(), BlockState::Finished, origin, |content| {
                    *content = message;
                });
            }
            EventKind::AttemptDiscarded { kept_blocks, .. } => {
                self.end_reasoning(origin.at);
                let state = if *kept_blocks > 0 { BlockState::Truncated } else { BlockState::Discarded };
                let empty = BlockContent::Message { role: Role::Assistant, text: String::new() };
                self.end(is_message, empty, state, origin, |_| {});
            }
            EventKind::TurnEnded { outcome, limit, text, error, code } => {
                self.end_blocks_of_turn(origin.at);
                let took_ms = self.turn_started_at.take().map(|start| milliseconds_between(start, origin.at));
                let end = TurnEnd {
                    outcome: *outcome,
                    limit: *limit,
                    text: text.clone(),
                    error: error.clone(),
                    code: code.clone(),
                    took_ms,
                    steps: 0,
                    spend: SessionCost::default(),
                };
                let mut block = self.finished_block(BlockContent::TurnEnd(end), origin);
                if *outcome == Outcome::Failed {
                    block.state = BlockState::Failed;
                }
                self.updates.push(Update::Ended(block));
            }
            _ => return false,
        }
        true
    }

    /// Events of blocks that start and end at different times. False if the event is none of them.
    fn apply_lasting(&mut self, kind: &EventKind, origin: BlockOrigin) -> bool {
        match kind {
            EventKind::ToolStarted { call_id, name, arguments, effect } => {
                self.end_reasoning(origin.at);
                self.end_if_open(is_message, BlockState::Interrupted, origin.at);
                let (call, name, arguments) = (*call_id, name.clone(), arguments.clone());
                let call = Call { call, name, arguments, effect: Some(*effect), result: None };
                self.start(BlockContent::Call(call), origin);
            }
            EventKind::ToolFinished { call_id: id, name, is_error, content, diff, lines, .. } => {
                let state = if *is_error { BlockState::Failed } else { BlockState::Finished };
                let (content, diff) = (content.clone(), diff.clone());
                let result = Some(CallResult { content, is_error: *is_error, diff, lines: *lines });
                let (name, arguments) = (name.clone(), String::new());
                let unseen = Call { call: *id, name: name.clone(), arguments, effect: None, result: None };
                let is_call =
                    |content: &BlockContent| matches!(content, BlockContent::Call(call) if call.call == *id);
                self.end(is_call, BlockContent::Call(unseen), state, origin, |content| {
                    if let BlockContent::Call(call) = content {
                        (call.name, call.result) = (name, result);
                    }
                });
            }
            EventKind::RetryWait { class, attempt, of, delay_ms, reason } => {
                self.open.retain(|block| !matches!(block.content, BlockContent::Retry(_)));
                let (class, reason) = (class.clone(), reason.clone());
                let retry =
                    Retry { class, attempt: *attempt, max_attempts: *of, delay_ms: *delay_ms, reason };
                self.start(BlockContent::Retry(retry), origin);
            }
            EventKind::TaskStarted { task_id, description }
            | EventKind::ChildStarted { task_id, description, .. } => {
                let (task, description, status) = (*task_id, Some(description.clone()), TaskStatus::Running);
                self.start(BlockContent::Task { task, description, status, exit_code: None }, origin);
            }
            EventKind::TaskEnded { task_id: id, status, .. }
            | EventKind::ChildEnded { task_id: id, status, .. } => {
                let (status, exit_code) = (*status, kind.ended_task().and_then(|(_, _, code)| code));
                let state =
                    if status == TaskStatus::Completed { BlockState::Finished } else { BlockState::Failed };
                let is_task =
                    |content: &BlockContent| matches!(content, BlockContent::Task { task, .. } if task == id);
                let unseen = BlockContent::Task { task: *id, description: None, status, exit_code };
                self.end(is_task, unseen, state, origin, |content| {
                    if let BlockContent::Task { status: now, exit_code: code, .. } = content {
                        (*now, *code) = (status, exit_code);
                    }
                });
            }
            EventKind::Question { id, kind, text, choices, diff, .. } => {
                self.open_questions += 1;
                let (question, kind, diff) = (*id, kind.unwrap_or_default(), diff.clone());
                let text = Some(question_with_choices(kind, text, choices));
                self.start(BlockContent::Question { question, kind, text, diff, answer: None }, origin);
            }
            EventKind::Answered { id, answer, by } => {
                // A question that the runtime withdrew has no answer.
                let given =
                    answer.clone().filter(|_| matches!(by, Some(AnsweredBy::User | AnsweredBy::Agent)));
                self.end_question(*id, given, origin);
            }
            EventKind::CompactStart { reason } => {
                self.open.retain(|block| !is_compaction(&block.content));
                let reason = Some(reason.clone());
                self.start(BlockContent::Compaction { reason, outcome: None }, origin);
            }
            EventKind::CompactDone { epoch, by, before, after } => {
                let outcome =
                    CompactionOutcome::Done { epoch: *epoch, by: *by, before: *before, after: *after };
                self.end_compaction(outcome, BlockState::Finished, origin);
            }
            EventKind::CompactFailed { reason } => {
                let outcome = CompactionOutcome::Failed { reason: reason.clone() };
                self.end_compaction(outcome, BlockState::Failed, origin);
            }
            _ => return false,
        }
        true
    }

    /// Forgets the turn that runs, because another session is shown or because no process runs it any more. Only the open
    /// message is handed over; calls, questions and reasoning are dropped. Tasks go on.
    pub fn abandon_turn(&mut self, at: At) -> Vec<Update> {
        self.end_if_open(is_message, BlockState::Interrupted, at);
        self.open.retain(|block| matches!(block.content, BlockContent::Task { .. }));
        (self.turn_started_at, self.open_questions) = (None, 0);
        std::mem::take(&mut self.updates)
    }

    /// Ends the open message as discarded: the process that wrote it is gone, and the model is asked again.
    pub fn discard_message(&mut self, at: At) -> Vec<Update> {
        self.end_if_open(is_message, BlockState::Discarded, at);
        std::mem::take(&mut self.updates)
    }

    /// Blocks that have started and not ended, the oldest first.
    pub fn open_blocks(&self) -> &[Block] {
        &self.open
    }

    /// When the turn that runs began.
    pub fn turn_started_at(&self) -> Option<At> {
        self.turn_started_at
    }

    /// Sets when the turn began, for a fold that begins in the middle of it.
    pub(crate) fn set_turn_started_at(&mut self, at: At) {
        self.turn_started_at = Some(at);
    }

    /// Whether a turn, a wait for a retry or a compaction runs, so that a display of elapsed time changes.
    pub fn is_active(&self) -> bool {
        let is_timed =
            |block: &Block| matches!(block.content, BlockContent::Retry(_) | BlockContent::Compaction { .. });
        self.turn_started_at.is_some() || self.open.iter().any(is_timed)
    }

    /// The message that is arriving.
    pub fn message_text(&self) -> Option<&str> {
        self.open.iter().find_map(|block| match &block.content {
            BlockContent::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    pub fn has_open_questions(&self) -> bool {
        self.open_questions > 0
    }

    /// Sets the number of open questions for a caller that knows it from the journal.
    pub fn set_open_questions(&mut self, count: usize) {
        self.open_questions = count;
    }

    /// A block that is finished at once.
    pub(crate) fn finished_block(&mut self, content: BlockContent, origin: BlockOrigin) -> Block {
        self.last_id += 1;
        let BlockOrigin { seq, turn, at } = origin;
        let state = BlockState::Finished;
        Block { id: self.last_id, seq, turn, started_at: at, ended_at: Some(at), state, content }
    }

    fn start(&mut self, content: BlockContent, origin: BlockOrigin) {
        let block = self.finished_block(content, origin);
        let block = Block { state: BlockState::Running, ended_at: None, ..block };
        self.updates.push(Update::Started(block.clone()));
        self.open.push(block);
    }

    /// Takes the first open block with this content, if there is one.
    fn take_open(&mut self, is_wanted: impl Fn(&BlockContent) -> bool) -> Option<Block> {
        let place = self.open.iter().position(|block| is_wanted(&block.content))?;
        Some(self.open.remove(place))
    }

    /// Ends the open block with this content, which `complete` completes. If the transcript did not see it start, a block with the
    /// content `unseen` starts and ends now.
    fn end(
        &mut self,
        is_wanted: impl Fn(&BlockContent) -> bool,
        unseen: BlockContent,
        state: BlockState,
        origin: BlockOrigin,
        complete: impl FnOnce(&mut BlockContent),
    ) {
        let block = self.take_open(is_wanted);
        let mut block = block.unwrap_or_else(|| self.finished_block(unseen, origin));
        complete(&mut block.content);
        self.updates.push(Update::Ended(Block { state, ended_at: Some(origin.at), ..block }));
    }

    fn end_if_open(&mut self, is_wanted: impl Fn(&BlockContent) -> bool, state: BlockState, at: At) {
        if let Some(block) = self.take_open(is_wanted) {
            self.updates.push(Update::Ended(Block { state, ended_at: Some(at), ..block }));
        }
    }

    fn end_reasoning(&mut self, at: At) {
        self.end_if_open(is_reasoning, BlockState::Finished, at);
    }

    fn end_question(&mut self, id: QuestionId, given: Option<String>, origin: BlockOrigin) {
        self.open_questions = self.open_questions.saturating_sub(1);
        let is_question = |content: &BlockContent| matches!(content, BlockContent::Question { question, .. } if *question == id);
        let kind = QuestionKind::default();
        let unseen = BlockContent::Question { question: id, kind, text: None, diff: None, answer: None };
        self.end(is_question, unseen, BlockState::Finished, origin, |content| {
            if let BlockContent::Question { answer, .. } = content {
                *answer = given;
            }
        });
    }

    fn end_compaction(&mut self, outcome: CompactionOutcome, state: BlockState, origin: BlockOrigin) {
        let unseen = BlockContent::Compaction { reason: None, outcome: None };
        self.end(is_compaction, unseen, state, origin, |content| {
            if let BlockContent::Compaction { outcome: ended, .. } = content {
                *ended = Some(outcome);
            }
        });
    }

    fn append_message(&mut self, text: &str, origin: BlockOrigin) {
        if !text.is_empty() {
            self.end_reasoning(origin.at);
            self.append(TextTarget::Message, text, origin);
        }
    }

    fn append(&mut self, target: TextTarget, new: &str, origin: BlockOrigin) {
        let (is_target, empty): (fn(&BlockContent) -> bool, _) = match target {
            TextTarget::Message => {
                (is_message, BlockContent::Message { role: Role::Assistant, text: String::new() })
            }
            TextTarget::Reasoning => (is_reasoning, BlockContent::Reasoning { text: String::new() }),
        };
        if !self.open.iter().any(|block| is_target(&block.content)) {
            self.start(empty, origin);
        }
        for block in self.open.iter_mut().filter(|block| is_target(&block.content)) {
            if let BlockContent::Message { text, .. } | BlockContent::Reasoning { text } = &mut block.content
            {
                text.push_str(new);
            }
            self.updates.push(Update::Appended { block: block.id, target, text: new.to_owned() });
        }
    }

    /// Reasoning counts as finished; everything else that the turn leaves open is interrupted. Tasks go on.
    fn end_blocks_of_turn(&mut self, at: At) {
        self.end_reasoning(at);
        let is_of_turn = |block: &mut Block| !matches!(block.content, BlockContent::Task { .. });
        let interrupted = self.open.extract_if(.., is_of_turn);
        let state = BlockState::Interrupted;
        self.updates
            .extend(interrupted.map(|block| Update::Ended(Block { state, ended_at: Some(at), ..block })));
        self.open_questions = 0;
    }
}

fn is_message(content: &BlockContent) -> bool {
    matches!(content, BlockContent::Message { .. })
}

fn is_reasoning(content: &BlockContent) -> bool {
    matches!(content, BlockContent::Reasoning { .. })
}

fn is_compaction(content: &BlockContent) -> bool {
    matches!(content, BlockContent::Compaction { .. })
}

/// The content of an event that is a block of its own, if it is one.
fn instant_content(kind: &EventKind) -> Option<BlockContent> {
    Some(match kind {
        EventKind::TurnStarted { .. } => BlockContent::TurnStart,
        EventKind::InputWithdrawn { .. } => BlockContent::WithdrawnInput,
        EventKind::ModeChanged { from, to } => BlockContent::ModeChange { from: *from, to: *to },
        EventKind::ModelChanged { from, to, reason } => {
            BlockContent::ModelChange { from: from.clone(), to: to.clone(), reason: reason.clone() }
        }
        EventKind::Notification { task_id } => BlockContent::Notification { task: *task_id },
        EventKind::Note { text } => BlockContent::Note { text: text.clone() },
        EventKind::Imported { work_dir, mine } => {
            BlockContent::Import { work_dir: work_dir.clone(), mine: *mine }
        }
        EventKind::SystemMessage { content } => {
            let texts: Vec<&str> = content.iter().map(|part| part.text.as_str()).collect();
            BlockContent::Summary { text: texts.join("\n") }
        }
        EventKind::ExtractDone { through } => BlockContent::Extraction { through: *through },
        EventKind::MemoryChanged { pages } => BlockContent::MemoryChange { pages: pages.clone() },
        EventKind::Warning { code, text } => BlockContent::Warning { code: code.clone(), text: text.clone() },
        // Inputs have no text in events, steps and usage are no blocks, and the rest is handled before.
        _ => return None,
    })
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
