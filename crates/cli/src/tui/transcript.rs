//! The session on the screen: events become blocks, and blocks become rows.

use std::collections::VecDeque;
use std::time::Instant;

use longhaul_agent::Watched;
use longhaul_protocol::{At, CallId};
use longhaul_transcript as transcript;
use longhaul_transcript::{
    Block, BlockContent, BlockState, Call, CallResult, ReasoningDisplay, TerminalRenderer, TodoMarks, Update,
    Verbosity, format_count,
};
use ratatui::text::Line;

use super::chat::PastTurns;
use super::styled_text::to_lines;

/// Calls and reasoning that can still be opened, and their bytes.
const MAX_DETAILS: usize = 200;
const MAX_DETAIL_BYTES: usize = 4 << 20;
/// Calls in a row that are shown of a turn that ended before.
const MAX_PAST_CALLS: usize = 5;

/// What is shown of a session. Durations are measured by the clock of this process.
pub(crate) struct Transcript {
    pub(super) blocks: transcript::Transcript,
    pub(super) renderer: TerminalRenderer,
    pub(super) todo_marks: TodoMarks,
    /// Finished calls and reasoning, the oldest first.
    details: VecDeque<Block>,
    created_at: Instant,
}

impl Transcript {
    pub(crate) fn new(width: u16, verbosity: Verbosity) -> Self {
        Self {
            blocks: transcript::Transcript::new(),
            renderer: TerminalRenderer::new(width, verbosity),
            todo_marks: TodoMarks::default(),
            details: VecDeque::new(),
            created_at: Instant::now(),
        }
    }

    /// Sets the marks of todo lists.
    pub(crate) fn with_todo_marks(self, todo_marks: TodoMarks) -> Self {
        Self { renderer: self.renderer.with_todo_marks(todo_marks), todo_marks, ..self }
    }

    /// Rows that can't change any more, each returned once.
    pub(crate) fn take(&mut self) -> Vec<Line<'static>> {
        to_lines(self.renderer.take_lines())
    }

    pub(crate) fn show_event(&mut self, watched: &Watched, now: Instant) {
        match watched {
            Watched::Event(event) => {
                let updates = self.blocks.apply_at(event, self.at(now));
                self.render(updates);
            }
            Watched::Missed { events, .. } => {
                self.renderer.push_program_note(&format!("{events} events skipped"));
            }
        }
    }

    /// Shows the end of a conversation that is opened again.
    pub(crate) fn show_past(&mut self, past: PastTurns) {
        if let Some(heading) = past.heading() {
            self.renderer.push_aside(&heading);
        }
        let is_call = |block: &Block| matches!(block.content, BlockContent::Call(_));
        for section in past.blocks.chunk_by(|one, next| is_call(one) == is_call(next)) {
            let left_out = match is_call(&section[0]) {
                true => section.len().saturating_sub(MAX_PAST_CALLS),
                false => 0,
            };
            if left_out > 0 {
                self.renderer.push_aside(&format!("… {}", format_count(left_out as u64, "call")));
            }
            section[left_out..].iter().for_each(|block| self.renderer.render_past(block));
        }
        past.blocks.into_iter().for_each(|block| self.keep_detail(block));
    }

    fn render(&mut self, updates: Vec<Update>) {
        for update in updates {
            self.renderer.render(&update, &self.blocks);
            if let Update::Ended(block) = update {
                self.keep_detail(block);
            }
        }
    }

    /// The screen's clock as a time of blocks: only differences matter.
    fn at(&self, now: Instant) -> At {
        let elapsed = now.saturating_duration_since(self.created_at);
        At(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    /// Another session is shown from here on, or the user decides about an open turn.
    pub(crate) fn close_turn(&mut self) {
        let updates = self.blocks.abandon_turn(self.at(Instant::now()));
        self.render(updates);
        self.renderer.reset_break();
    }

    /// The process that ran the turn is gone. The text of its last attempt does not count, which a row says once the model is asked again.
    pub(crate) fn discard_attempt(&mut self) {
        let at = self.at(Instant::now());
        let mut updates = self.blocks.discard_message(at);
        updates.extend(self.blocks.abandon_turn(at));
        self.render(updates);
    }

    /// Shows the last lines of a running command.
    pub(crate) fn show_tail(&mut self, id: CallId, lines: Vec<String>) {
        let is_call = |block: &Block| matches!(&block.content, BlockContent::Call(call) if call.call == id);
        if self.blocks.open_blocks().iter().any(is_call) {
            self.renderer.set_live_output(id, lines);
        }
    }

    /// Keeps a command of the user's, so that its output can be opened.
    pub(crate) fn keep_user_command(&mut self, command: String, output: String, lines: u64) {
        let at = self.at(Instant::now());
        let result = CallResult { content: output, lines: Some(lines), ..CallResult::default() };
        let (call, name) = (CallId::generate(), "!".to_owned());
        let call = Call { call, name, arguments: command, effect: None, result: Some(result) };
        self.keep_detail(Block {
            id: 0,
            seq: None,
            turn: None,
            started_at: at,
            ended_at: Some(at),
            state: BlockState::Finished,
            content: BlockContent::Call(call),
        });
    }

    fn keep_detail(&mut self, block: Block) {
        let size = |block: &Block| match &block.content {
            BlockContent::Call(call) => {
                let size =
                    |result: &CallResult| result.content.len() + result.diff.as_ref().map_or(0, String::len);
                call.arguments.len() + call.result.as_ref().map_or(0, size)
            }
            BlockContent::Reasoning { text } => text.len(),
            _ => 0,
        };
        match &block.content {
            BlockContent::Call(call) if call.result.is_some() => {}
            BlockContent::Reasoning { .. } => {}
            _ => return,
        }
        self.details.push_back(block);
        let mut bytes: usize = self.details.iter().map(size).sum();
        while self.details.len() > MAX_DETAILS || (bytes > MAX_DETAIL_BYTES && self.details.len() > 1) {
            bytes -= self.details.pop_front().as_ref().map_or(0, size);
        }
    }

    /// Blocks that can be opened, the oldest first; running calls come last, with the time that they have taken so far.
    pub(crate) fn details(&self, now: Instant) -> Vec<Block> {
        let running = self.blocks.open_blocks().iter();
        let running = running.filter(|block| matches!(block.content, BlockContent::Call(_))).cloned();
        let running = running.map(|block| Block { ended_at: Some(self.at(now)), ..block });
        self.details.iter().cloned().chain(running).collect()
    }

    /// Shows or folds reasoning from here on, and returns which.
    pub(crate) fn toggle_reasoning(&mut self) -> ReasoningDisplay {
        self.renderer.reasoning = match self.renderer.reasoning {
            ReasoningDisplay::Folded => ReasoningDisplay::Open,
            ReasoningDisplay::Open => ReasoningDisplay::Folded,
        };
        self.renderer.reasoning
    }

    /// What may still change, in at most this many rows.
    pub(crate) fn live(&self, max_rows: usize, now: Instant) -> Vec<Line<'static>> {
        to_lines(self.renderer.live_lines(&self.blocks, max_rows, self.at(now)))
    }
}
