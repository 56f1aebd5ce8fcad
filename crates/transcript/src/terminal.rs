//! A session as rows of a terminal: those that are final, and those that may still change.

use std::collections::HashMap;
use std::time::Duration;

use longhaul_protocol::{At, CallId, Outcome};

use crate::block::{Block, BlockContent, BlockState, TextTarget, Update};
use crate::call::output_tail::tail_rows;
use crate::call::{finished_call_lines, running_call_line};
use crate::fold::Transcript;
use crate::markdown::Markdown;
use crate::notice::{Verbosity, notice_text, turn_failure_text};
use crate::plain::BROKEN_OFF;
use crate::question::question_lines;
use crate::reasoning::{reasoning_lines, reasoning_summary};
use crate::style::{Color, Span, Style, StyledLine};
use crate::text::{format_count, format_elapsed, sanitize, truncate};
use crate::todo::{TodoMarks, todo_lines, todo_of_call};
use crate::wrap::{truncate_line, wrap_line};

/// Lines of an input that are echoed, and characters of each: a long paste is sent whole and shown in part.
const MAX_ECHO_LINES: usize = 16;
const MAX_ECHO_CHARS: usize = 2_000;

/// Rows of reasoning that are shown while it arrives.
const MAX_LIVE_REASONING_ROWS: usize = 6;

/// Rows of a running command's output.
const MAX_LIVE_TAIL_ROWS: usize = 5;

/// Bytes of reasoning that are wrapped while it arrives.
const LIVE_REASONING_BYTES: usize = 4 << 10;

/// A completed turn that took longer says how long.
const LONG_TURN: Duration = Duration::from_secs(10);

const DIM: Style = Style::new().dim();

/// Whether reasoning is shown, or one line in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningDisplay {
    Folded,
    Open,
}

/// What the last row belongs to. A blank row separates different sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Input,
    Answer,
    /// Calls, reasoning and notices.
    Aside,
}

/// Renders updates as rows. A row is returned once, when it can't change any more; [`TerminalRenderer::live_lines`] has the rest.
pub struct TerminalRenderer {
    width: u16,
    pub reasoning: ReasoningDisplay,
    verbosity: Verbosity,
    /// Final rows that were not taken yet.
    rows: Vec<StyledLine>,
    section: Section,
    markdown: Markdown,
    /// The text that was given to `markdown`.
    rendered: String,
    /// The last lines that running commands have printed.
    live_output: HashMap<CallId, Vec<String>>,
    todo_marks: TodoMarks,
    /// Text on the screen was discarded, and it is not known yet whether the model is asked again.
    is_broken_off: bool,
}

impl TerminalRenderer {
    pub fn new(width: u16, verbosity: Verbosity) -> Self {
        Self {
            width,
            reasoning: ReasoningDisplay::Folded,
            verbosity,
            rows: Vec::new(),
            section: Section::Start,
            markdown: Markdown::new(),
            rendered: String::new(),
            live_output: HashMap::new(),
            todo_marks: TodoMarks::default(),
            is_broken_off: false,
        }
    }

    /// Sets the marks of todo lists.
    #[must_use]
    pub fn with_todo_marks(self, todo_marks: TodoMarks) -> Self {
        Self { todo_marks, ..self }
    }

    /// Sets the last lines that a running command has printed. The end of the call removes them.
    pub fn set_live_output(&mut self, call: CallId, lines: Vec<String>) {
        self.live_output.insert(call, lines);
    }

    pub fn resize(&mut self, width: u16) {
        self.width = width;
    }

    /// Final rows, each returned once.
    pub fn take_lines(&mut self) -> Vec<StyledLine> {
        self.settle_answer();
        std::mem::take(&mut self.rows)
    }

    /// Renders an update. `transcript` is the fold after the event that caused it.
    pub fn render(&mut self, update: &Update, transcript: &Transcript) {
        match update {
            Update::Appended { target: TextTarget::Message, text, .. } => {
                self.announce_break();
                self.rendered.push_str(text);
                self.markdown.push(text);
            }
            Update::Ended(block) => self.render_end(block, update),
            // A running call is live, and gets its line when it ends.
            Update::Started(Block { content: BlockContent::Call(_), .. }) => {}
            // The line of the call that starts the task says so.
            Update::Started(Block { content: BlockContent::Task { .. }, .. }) if runs_call(transcript) => {}
            Update::Started(Block {
                content: BlockContent::Question { text: Some(text), diff, .. }, ..
            }) => {
                self.begin_aside();
                self.rows.extend(question_lines(text, diff.as_deref(), self.width));
            }
            update => self.render_notice(update),
        }
    }

    fn render_end(&mut self, block: &Block, update: &Update) {
        let took = block.elapsed(block.started_at);
        match &block.content {
            BlockContent::Message { text, .. } => self.end_message(text, block.state),
            BlockContent::Reasoning { text } => {
                self.begin_section(Section::Aside);
                match self.reasoning {
                    ReasoningDisplay::Folded => self.push_line(&reasoning_summary(text, took), "  "),
                    ReasoningDisplay::Open => self.rows.extend(reasoning_lines(text, self.width)),
                }
            }
            BlockContent::Call(call) if call.result.is_some() => {
                self.live_output.remove(&call.call);
                self.begin_section(Section::Aside);
                self.rows.extend(finished_call_lines(call, took, self.width));
                let list =
                    todo_of_call(&call.name, &call.arguments).filter(|_| block.state == BlockState::Finished);
                self.rows.extend(todo_lines(&list.unwrap_or_default(), self.todo_marks, self.width));
            }
            BlockContent::TurnEnd(end) => {
                self.live_output.clear();
                self.is_broken_off = false;
                let took = end.took_ms.map(Duration::from_millis);
                if let Some(took) = took.filter(|took| end.outcome == Outcome::Completed && *took > LONG_TURN)
                {
                    self.push_aside(&format!("({})", format_elapsed(took)));
                }
            }
            _ => self.render_notice(update),
        }
    }

    /// Renders a block of a turn that ended before this terminal was opened: inputs are echoed, and a call is one row.
    pub fn render_past(&mut self, block: &Block) {
        match &block.content {
            BlockContent::Input { text, images, from, .. } => {
                let from = from.iter().map(|from| format!("[from {from}] ")).collect::<String>();
                let images = (*images > 0).then(|| format!(" [{}]", format_count(*images as u64, "image")));
                self.push_input(&format!("{from}{text}{}", images.unwrap_or_default()));
            }
            BlockContent::Message { .. } if block.state == BlockState::Discarded => {}
            BlockContent::Message { text, .. } => {
                self.markdown.push(text);
                let rows = self.markdown.finish(self.width);
                self.push_answer(rows);
                if block.state == BlockState::Interrupted {
                    self.push_aside("[interrupted here]");
                }
            }
            BlockContent::Call(call) if call.result.is_some() => {
                self.begin_section(Section::Aside);
                let took = block.elapsed(block.started_at);
                self.rows.extend(finished_call_lines(call, took, self.width).into_iter().take(1));
            }
            BlockContent::TurnEnd(end) => {
                if let Some(failure) = turn_failure_text(end.outcome, end.error.as_deref()) {
                    self.push_aside(&failure);
                }
            }
            BlockContent::Notification { .. } | BlockContent::Note { .. } => {
                self.render_notice(&Update::Ended(block.clone()));
            }
            _ => {}
        }
    }

    fn render_notice(&mut self, update: &Update) {
        if let Some(notice) = notice_text(update, self.verbosity) {
            self.push_aside(&notice);
        }
    }

    /// Renders the rest of a message: the part that did not arrive as deltas, and what could still change so far.
    fn end_message(&mut self, text: &str, state: BlockState) {
        match state {
            BlockState::Finished => {
                self.announce_break();
                if let Some(rest) = text.strip_prefix(self.rendered.as_str()) {
                    self.markdown.push(rest);
                }
            }
            BlockState::Truncated => self.is_broken_off = false,
            // A second attempt may be discarded before it has written anything.
            BlockState::Discarded => self.is_broken_off |= !self.rendered.is_empty(),
            BlockState::Running | BlockState::Failed | BlockState::Interrupted => {}
        }
        self.rendered.clear();
        let rest = self.markdown.finish(self.width);
        self.push_answer(rest);
    }

    /// Forgets that text broke off: what is shown next is not about it.
    pub fn reset_break(&mut self) {
        self.is_broken_off = false;
    }

    fn announce_break(&mut self) {
        if std::mem::take(&mut self.is_broken_off) {
            self.push_aside(BROKEN_OFF);
        }
    }

    /// Moves the rows of the answer that can't change any more to the final ones.
    fn settle_answer(&mut self) {
        let settled = self.markdown.take_settled(self.width);
        self.push_answer(settled);
    }

    fn push_answer(&mut self, mut lines: Vec<StyledLine>) {
        if lines.is_empty() {
            return;
        }
        // Where the answer goes on after something else, there is a blank row already.
        if !matches!(self.section, Section::Answer | Section::Start) && lines[0].width() == 0 {
            lines.remove(0);
        }
        self.begin_section(Section::Answer);
        self.rows.extend(lines);
    }

    fn begin_section(&mut self, section: Section) {
        if self.section != section && self.section != Section::Start {
            self.rows.push(StyledLine::default());
        }
        self.section = section;
    }

    fn push_line(&mut self, line: &StyledLine, indent: &str) {
        self.rows.extend(wrap_line(line, self.width, indent));
    }

    /// Echoes what a user entered.
    pub fn push_input(&mut self, text: &str) {
        self.settle_answer();
        let style = Style::new().fg(Color::Cyan).bold();
        // A blank row separates one input from the next, too.
        if self.section == Section::Input {
            self.rows.push(StyledLine::default());
        }
        self.begin_section(Section::Input);
        let text = sanitize(text);
        for (number, line) in text.lines().take(MAX_ECHO_LINES).enumerate() {
            let mark = if number == 0 { "> " } else { "  " };
            let line = truncate(line, MAX_ECHO_CHARS);
            self.push_line(&StyledLine::styled(format!("{mark}{line}"), style), "  ");
        }
        let more = text.lines().count().saturating_sub(MAX_ECHO_LINES);
        if more > 0 {
            let more = format!("  … {}", format_count(more as u64, "more line"));
            self.push_line(&StyledLine::dim(more), "  ");
        }
    }

    /// Adds a line beside the answer.
    pub fn push_aside(&mut self, text: &str) {
        self.begin_aside();
        for line in sanitize(text).lines() {
            self.push_line(&StyledLine::dim(line), "  ");
        }
    }

    /// Adds a line from the program itself, with its name before it.
    pub fn push_program_note(&mut self, text: &str) {
        self.begin_aside();
        for line in sanitize(text).lines() {
            let spans = vec![Span::dim("longhaul: "), Span::raw(line)];
            self.push_line(&StyledLine::from(spans), "  ");
        }
    }

    /// Adds the output of a command of the program.
    pub fn push_output(&mut self, text: &str) {
        self.begin_aside();
        for line in sanitize(text).lines() {
            self.push_line(&StyledLine::raw(line), &" ".repeat(last_column(line)));
        }
    }

    /// Adds the rows of a table, each cut to the width of the terminal.
    pub fn push_table(&mut self, rows: &[String]) {
        self.begin_aside();
        let cut = rows.iter().map(|row| truncate_line(&StyledLine::raw(sanitize(row)), self.width));
        self.rows.extend(cut);
    }

    fn begin_aside(&mut self) {
        self.settle_answer();
        self.begin_section(Section::Aside);
    }

    /// What may still change, in at most `max_rows` rows: the end of the answer, and below it what runs.
    pub fn live_lines(&self, transcript: &Transcript, max_rows: usize, now: At) -> Vec<StyledLine> {
        let mut below = Vec::new();
        let tail_rows = live_tail_rows(transcript.open_blocks(), max_rows);
        for block in in_live_order(transcript.open_blocks()) {
            self.push_live_block(block, transcript, now, &mut below);
            if let BlockContent::Call(call) = &block.content {
                below.extend(self.live_output_rows(call.call, tail_rows));
            }
        }
        let is_silent =
            below.is_empty() && transcript.message_text().is_none() && !transcript.has_open_questions();
        if let (true, Some(since)) = (is_silent, transcript.turn_started_at()) {
            let elapsed = Duration::from_millis(crate::block::milliseconds_between(since, now));
            below.push(progress_line("waiting for the model", elapsed, elapsed));
        }
        let left = max_rows.saturating_sub(below.len());
        let mut lines = if left > 0 { self.markdown.open_lines(self.width) } else { vec![] };
        lines.drain(..lines.len().saturating_sub(left));
        lines.extend(below.iter().map(|line| truncate_line(line, self.width)));
        lines.drain(..lines.len().saturating_sub(max_rows));
        lines
    }

    /// The last lines that a running command has printed.
    fn live_output_rows(&self, call: CallId, max_rows: usize) -> impl Iterator<Item = StyledLine> {
        let lines = self.live_output.get(&call).map_or(&[][..], Vec::as_slice);
        let shown = &lines[lines.len().saturating_sub(max_rows)..];
        tail_rows(shown.iter().map(String::as_str), self.width)
    }

    fn push_live_block(&self, block: &Block, transcript: &Transcript, now: At, below: &mut Vec<StyledLine>) {
        let elapsed = block.elapsed(now);
        let turn_elapsed = transcript
            .turn_started_at()
            .map_or(elapsed, |since| Duration::from_millis(crate::block::milliseconds_between(since, now)));
        match &block.content {
            BlockContent::Reasoning { text } => {
                if self.reasoning == ReasoningDisplay::Open {
                    let end = text.ceil_char_boundary(text.len().saturating_sub(LIVE_REASONING_BYTES));
                    let rows = reasoning_lines(&text[end..], self.width);
                    below.extend(rows.into_iter().rev().take(MAX_LIVE_REASONING_ROWS).rev());
                }
                below.push(progress_line("thinking", elapsed, turn_elapsed));
            }
            BlockContent::Call(call) => {
                let mut line = progress_line("", elapsed, turn_elapsed);
                line.spans.extend(running_call_line(call, self.width.saturating_sub(10)).spans);
                below.push(line);
            }
            BlockContent::Retry(retry) => {
                let left = Duration::from_millis(retry.delay_ms).saturating_sub(elapsed);
                let left = format_elapsed(left);
                let text = format!("retrying in {left} (/retry now, /model NAME to switch, Esc to cancel)");
                below.push(StyledLine::styled(text, Style::new().fg(Color::Yellow)));
            }
            BlockContent::Compaction { .. } => {
                below.push(progress_line("compacting the context", elapsed, turn_elapsed));
            }
            _ => {}
        }
    }
}

/// Rows of output below each running call, so that all running calls stay visible.
fn live_tail_rows(open: &[Block], max_rows: usize) -> usize {
    let calls = open.iter().filter(|block| matches!(block.content, BlockContent::Call(_))).count();
    (max_rows.saturating_sub(open.len()) / calls.max(1)).min(MAX_LIVE_TAIL_ROWS)
}

fn runs_call(transcript: &Transcript) -> bool {
    transcript.open_blocks().iter().any(|block| matches!(block.content, BlockContent::Call(_)))
}

/// Open blocks in the order of their rows: reasoning, calls, the wait for a retry, a compaction.
fn in_live_order(open: &[Block]) -> Vec<&Block> {
    let rank = |block: &&Block| match block.content {
        BlockContent::Reasoning { .. } => 0,
        BlockContent::Call(_) => 1,
        BlockContent::Retry(_) => 2,
        _ => 3,
    };
    let mut blocks: Vec<&Block> = open.iter().collect();
    blocks.sort_by_key(rank);
    blocks
}

/// A spinner, what runs, and for how long. The spinner turns with the time of the turn, so that all of them turn together.
fn progress_line(what: &str, elapsed: Duration, turn_elapsed: Duration) -> StyledLine {
    const SPINNER: [&str; 8] = ["⠇", "⠋", "⠙", "⠸", "⢰", "⣠", "⣄", "⡆"];
    const SPINNER_STEP_MS: u128 = 125;
    let step = turn_elapsed.as_millis() / SPINNER_STEP_MS % SPINNER.len() as u128;
    let sign = SPINNER[usize::try_from(step).unwrap_or(0)];
    let time = match elapsed < Duration::from_secs(1) {
        true => String::new(),
        false => format!("{} ", format_elapsed(elapsed)),
    };
    let what = if what.is_empty() { String::new() } else { format!("{what} ") };
    StyledLine::from(vec![
        Span::colored(format!("{sign} "), Color::Cyan),
        Span::styled(format!("{what}{time}"), DIM),
    ])
}

/// Where the last column of a table-like line begins, so that wrapped rows stay below it.
fn last_column(line: &str) -> usize {
    const MAX_INDENT: usize = 32;
    let gap = line
        .char_indices()
        .take(MAX_INDENT)
        .filter(|(place, _)| line[..*place].ends_with("  ") && !line[*place..].starts_with(' '));
    gap.last().map_or(0, |(place, _)| line[..place].chars().count())
}
