//! The fold from events to blocks.

use longhaul_protocol::{At, CallId, Event, EventKind, Outcome, QuestionId, Role, Seq, TaskId, TaskStatus};

use crate::block::{
    Block, BlockContent, BlockId, BlockState, Call, CallResult, CompactionOutcome, Retry, TextTarget,
    TurnEnd, Update, milliseconds_between,
};
use crate::spend::Spend;

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
}

/// Where and when an event happened: what each block that it starts has in common.
#[derive(Debug, Clone, Copy)]
struct Origin {
    seq: Option<Seq>,
    turn: Option<u64>,
    at: At,
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
        let origin = Origin { seq: event.seq, turn: event.turn, at };
        let mut updates = Vec::new();
        if !matches!(event.kind, EventKind::RetryWait { .. }) {
            self.end_retry(at, &mut updates);
        }
        match &event.kind {
            EventKind::TurnStarted => self.turn_started_at = Some(at),
            // A watcher that joins in the middle of a turn has not seen it start.
            EventKind::StepStarted
            | EventKind::TextDelta { .. }
            | EventKind::Partial { .. }
            | EventKind::ToolStarted { .. } => drop(self.turn_started_at.get_or_insert(at)),
            _ => {}
        }
        if !self.apply_answer(&event.kind, origin, &mut updates)
            && !self.apply_lasting(&event.kind, origin, &mut updates)
            && let Some(content) = instant_content(&event.kind)
        {
            updates.push(self.instant(content, origin));
        }
        updates
    }

    /// Events of the model's answer and of the turn around it. False if the event is none of them.
    fn apply_answer(&mut self, kind: &EventKind, origin: Origin, updates: &mut Vec<Update>) -> bool {
        match kind {
            EventKind::TextDelta { text } => self.append_message(text, origin, updates),
            // The whole text so far, of which a part may have arrived as deltas.
            EventKind::Partial { text, .. } => {
                let known = self.message_text().unwrap_or_default();
                let new = text.strip_prefix(known).unwrap_or(text).to_owned();
                self.append_message(&new, origin, updates);
            }
            EventKind::ReasoningDelta { text } => {
                self.append(TextTarget::Reasoning, text, origin, updates);
            }
            EventKind::Message { role, content } => {
                self.end_reasoning(origin.at, updates);
                self.end_message(Some((*role, content)), BlockState::Finished, origin, updates);
            }
            EventKind::AttemptDiscarded { kept_blocks, .. } => {
                self.end_reasoning(origin.at, updates);
                let state = if *kept_blocks > 0 { BlockState::Truncated } else { BlockState::Discarded };
                self.end_message(None, state, origin, updates);
            }
            EventKind::TurnEnded { outcome, limit, text, error, code } => {
                self.end_open_blocks_of_turn(origin, updates);
                let took_ms = self.turn_started_at.take().map(|start| milliseconds_between(start, origin.at));
                let end = TurnEnd {
                    outcome: *outcome,
                    limit: *limit,
                    text: text.clone(),
                    error: error.clone(),
                    code: code.clone(),
                    took_ms,
                    steps: 0,
                    spend: Spend::default(),
                };
                let state =
                    if *outcome == Outcome::Failed { BlockState::Failed } else { BlockState::Finished };
                updates.push(Update::Ended(Block {
                    state,
                    ..self.finished(BlockContent::TurnEnd(end), origin)
                }));
            }
            _ => return false,
        }
        true
    }

    /// Events of blocks that start and end at different times. False if the event is none of them.
    fn apply_lasting(&mut self, kind: &EventKind, origin: Origin, updates: &mut Vec<Update>) -> bool {
        match kind {
            EventKind::ToolStarted { call_id, name, arguments, effect } => {
                self.end_reasoning(origin.at, updates);
                if self.message_text().is_some() {
                    self.end_message(None, BlockState::Interrupted, origin, updates);
                }
                let call = Call {
                    call: *call_id,
                    name: name.clone(),
                    arguments: arguments.clone(),
                    effect: Some(*effect),
                    result: None,
                };
                self.start(BlockContent::Call(call), origin, updates);
            }
            EventKind::ToolFinished { call_id, name, is_error, content } => {
                let result = CallResult { content: content.clone(), is_error: *is_error };
                self.end_call(*call_id, name, result, origin, updates);
            }
            EventKind::RetryWait { class, attempt, of, delay_ms, reason } => {
                self.open.retain(|block| !matches!(block.content, BlockContent::Retry(_)));
                let (class, reason) = (class.clone(), reason.clone());
                let retry =
                    Retry { class, attempt: *attempt, max_attempts: *of, delay_ms: *delay_ms, reason };
                self.start(BlockContent::Retry(retry), origin, updates);
            }
            EventKind::TaskStarted { task_id, description } => {
                let (task, description) = (*task_id, Some(description.clone()));
                let status = TaskStatus::Running;
                self.start(
                    BlockContent::Task { task, description, status, exit_code: None },
                    origin,
                    updates,
                );
            }
            EventKind::TaskEnded { task_id, status, exit_code } => {
                self.end_task(*task_id, *status, *exit_code, origin, updates);
            }
            EventKind::Question { id, text } => {
                self.open_questions += 1;
                let content =
                    BlockContent::Question { question: *id, text: Some(text.clone()), answer: None };
                self.start(content, origin, updates);
            }
            EventKind::Answered { id } => {
                self.open_questions = self.open_questions.saturating_sub(1);
                self.end_question(*id, origin, updates);
            }
            EventKind::CompactStart { reason } => {
                self.open.retain(|block| !matches!(block.content, BlockContent::Compaction { .. }));
                let content = BlockContent::Compaction { reason: Some(reason.clone()), outcome: None };
                self.start(content, origin, updates);
            }
            EventKind::CompactDone { epoch, by, before, after } => {
                let outcome =
                    CompactionOutcome::Done { epoch: *epoch, by: *by, before: *before, after: *after };
                self.end_compaction(outcome, BlockState::Finished, origin, updates);
            }
            EventKind::CompactFailed { reason } => {
                let outcome = CompactionOutcome::Failed { reason: reason.clone() };
                self.end_compaction(outcome, BlockState::Failed, origin, updates);
            }
            _ => return false,
        }
        true
    }

    /// Forgets the turn that runs, because another session is shown or because no process runs it any more. Only the open
    /// message is handed over; calls, questions and reasoning are dropped. Tasks go on.
    pub fn abandon_turn(&mut self, at: At) -> Vec<Update> {
        let mut updates = Vec::new();
        if let Some(mut message) = self.take_open(|content| matches!(content, BlockContent::Message { .. })) {
            (message.state, message.ended_at) = (BlockState::Interrupted, Some(at));
            updates.push(Update::Ended(message));
        }
        self.open.retain(|block| matches!(block.content, BlockContent::Task { .. }));
        (self.turn_started_at, self.open_questions) = (None, 0);
        updates
    }

    /// Blocks that have started and not ended, the oldest first.
    pub fn open_blocks(&self) -> &[Block] {
        &self.open
    }

    /// When the turn that runs began.
    pub fn turn_started_at(&self) -> Option<At> {
        self.turn_started_at
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

    fn next_id(&mut self) -> BlockId {
        self.last_id += 1;
        self.last_id
    }

    /// A block that is finished at once.
    fn finished(&mut self, content: BlockContent, origin: Origin) -> Block {
        let Origin { seq, turn, at } = origin;
        let state = BlockState::Finished;
        Block { id: self.next_id(), seq, turn, started_at: at, ended_at: Some(at), state, content }
    }

    fn instant(&mut self, content: BlockContent, origin: Origin) -> Update {
        Update::Ended(self.finished(content, origin))
    }

    /// A finished block that no event tells of.
    pub(crate) fn record_block(
        &mut self,
        content: BlockContent,
        seq: Option<Seq>,
        turn: Option<u64>,
        at: At,
    ) -> Block {
        self.finished(content, Origin { seq, turn, at })
    }

    fn start(&mut self, content: BlockContent, origin: Origin, updates: &mut Vec<Update>) {
        let block = Block { state: BlockState::Running, ended_at: None, ..self.finished(content, origin) };
        updates.push(Update::Started(block.clone()));
        self.open.push(block);
    }

    /// Takes the first open block with this content, if there is one.
    fn take_open(&mut self, is_wanted: impl Fn(&BlockContent) -> bool) -> Option<Block> {
        let place = self.open.iter().position(|block| is_wanted(&block.content))?;
        Some(self.open.remove(place))
    }

    /// Ends the open block with this content. If the transcript did not see it start, a block starts and ends now.
    fn end_or_insert(
        &mut self,
        is_wanted: impl Fn(&BlockContent) -> bool,
        otherwise: BlockContent,
        origin: Origin,
    ) -> Block {
        let block = self.take_open(is_wanted);
        let mut block = block.unwrap_or_else(|| self.finished(otherwise, origin));
        (block.state, block.ended_at) = (BlockState::Finished, Some(origin.at));
        block
    }

    fn append_message(&mut self, text: &str, origin: Origin, updates: &mut Vec<Update>) {
        if !text.is_empty() {
            self.end_reasoning(origin.at, updates);
            self.append(TextTarget::Message, text, origin, updates);
        }
    }

    fn append(&mut self, target: TextTarget, new: &str, origin: Origin, updates: &mut Vec<Update>) {
        let is_target = |block: &Block| match target {
            TextTarget::Message => matches!(block.content, BlockContent::Message { .. }),
            TextTarget::Reasoning => matches!(block.content, BlockContent::Reasoning { .. }),
        };
        if !self.open.iter().any(is_target) {
            let text = String::new();
            let content = match target {
                TextTarget::Message => BlockContent::Message { role: Role::Assistant, text },
                TextTarget::Reasoning => BlockContent::Reasoning { text },
            };
            self.start(content, origin, updates);
        }
        let Some(block) = self.open.iter_mut().find(|block| is_target(block)) else { return };
        if let BlockContent::Message { text, .. } | BlockContent::Reasoning { text } = &mut block.content {
            text.push_str(new);
        }
        updates.push(Update::Appended { block: block.id, target, text: new.to_owned() });
    }

    /// Ends the open message, with its whole text if that is known now. A message of which nothing arrived before, or of which
    /// nothing arrived at all, starts and ends here.
    fn end_message(
        &mut self,
        whole: Option<(Role, &String)>,
        state: BlockState,
        origin: Origin,
        updates: &mut Vec<Update>,
    ) {
        let empty = BlockContent::Message { role: Role::Assistant, text: String::new() };
        let is_message = |content: &BlockContent| matches!(content, BlockContent::Message { .. });
        let mut block = Block { state, ..self.end_or_insert(is_message, empty, origin) };
        if let Some((role, text)) = whole {
            block.content = BlockContent::Message { role, text: text.clone() };
        }
        updates.push(Update::Ended(block));
    }

    fn end_reasoning(&mut self, at: At, updates: &mut Vec<Update>) {
        if let Some(mut block) = self.take_open(|content| matches!(content, BlockContent::Reasoning { .. })) {
            (block.state, block.ended_at) = (BlockState::Finished, Some(at));
            updates.push(Update::Ended(block));
        }
    }

    fn end_retry(&mut self, at: At, updates: &mut Vec<Update>) {
        if let Some(mut block) = self.take_open(|content| matches!(content, BlockContent::Retry(_))) {
            (block.state, block.ended_at) = (BlockState::Finished, Some(at));
            updates.push(Update::Ended(block));
        }
    }

    fn end_call(
        &mut self,
        id: CallId,
        name: &str,
        result: CallResult,
        origin: Origin,
        updates: &mut Vec<Update>,
    ) {
        let is_call = |content: &BlockContent| matches!(content, BlockContent::Call(call) if call.call == id);
        let name = name.to_owned();
        let unseen =
            Call { call: id, name: name.clone(), arguments: String::new(), effect: None, result: None };
        let mut block = self.end_or_insert(is_call, BlockContent::Call(unseen), origin);
        if result.is_error {
            block.state = BlockState::Failed;
        }
        if let BlockContent::Call(call) = &mut block.content {
            (call.name, call.result) = (name, Some(result));
        }
        updates.push(Update::Ended(block));
    }

    fn end_task(
        &mut self,
        id: TaskId,
        ended: TaskStatus,
        code: Option<i32>,
        origin: Origin,
        updates: &mut Vec<Update>,
    ) {
        let is_task =
            |content: &BlockContent| matches!(content, BlockContent::Task { task, .. } if *task == id);
        let unseen = BlockContent::Task { task: id, description: None, status: ended, exit_code: code };
        let mut block = self.end_or_insert(is_task, unseen, origin);
        if let BlockContent::Task { status, exit_code, .. } = &mut block.content {
            (*status, *exit_code) = (ended, code);
        }
        if ended != TaskStatus::Completed {
            block.state = BlockState::Failed;
        }
        updates.push(Update::Ended(block));
    }

    fn end_question(&mut self, id: QuestionId, origin: Origin, updates: &mut Vec<Update>) {
        let is_question = |content: &BlockContent| matches!(content, BlockContent::Question { question, .. } if *question == id);
        let unseen = BlockContent::Question { question: id, text: None, answer: None };
        let block = self.end_or_insert(is_question, unseen, origin);
        updates.push(Update::Ended(block));
    }

    fn end_compaction(
        &mut self,
        ended: CompactionOutcome,
        state: BlockState,
        origin: Origin,
        updates: &mut Vec<Update>,
    ) {
        let is_compaction = |content: &BlockContent| matches!(content, BlockContent::Compaction { .. });
        let unseen = BlockContent::Compaction { reason: None, outcome: None };
        let mut block = Block { state, ..self.end_or_insert(is_compaction, unseen, origin) };
        if let BlockContent::Compaction { outcome, .. } = &mut block.content {
            *outcome = Some(ended);
        }
        updates.push(Update::Ended(block));
    }

    /// Reasoning counts as finished; everything else that the turn leaves open is interrupted. Tasks go on.
    fn end_open_blocks_of_turn(&mut self, origin: Origin, updates: &mut Vec<Update>) {
        self.end_reasoning(origin.at, updates);
        let is_of_turn = |block: &mut Block| !matches!(block.content, BlockContent::Task { .. });
        for mut block in self.open.extract_if(.., is_of_turn) {
            (block.state, block.ended_at) = (BlockState::Interrupted, Some(origin.at));
            updates.push(Update::Ended(block));
        }
        self.open_questions = 0;
    }
}

/// The content of an event that is a block of its own, if it is one.
fn instant_content(kind: &EventKind) -> Option<BlockContent> {
    Some(match kind {
        EventKind::TurnStarted => BlockContent::TurnStart,
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
