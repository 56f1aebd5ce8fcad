//! The view: events and keys go in, frames and requests come out. Pure.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_agent::Watched;
use longhaul_protocol::{EventKind, TaskId, TaskStatus};
use longhaul_transcript::ReasoningDisplay;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use tokio::sync::oneshot;

use super::detail_view::{DetailOutcome, DetailView};
use super::input::{InputField, KeyOutcome};
use super::picker::{Picker, PickerItem, PickerOutcome};
use super::status_line::{SaveState, StatusFacts};
use super::styled_text::{truncate_line, wrap_line};
use super::transcript::Transcript;
use super::viewport::Frame;
use crate::output::{sanitize, truncate};
use crate::questions::{OpenQuestion, question, yes_or_no};
use crate::short_id::short;
use crate::tui::chat::LineEvent;
use crate::tui::chat::slash::{SlashInput, parse_line};

/// Rows of each kind; the rest is counted in one more row.
const MAX_PILL_ROWS: usize = 3;
const MAX_QUEUED_ROWS: usize = 3;
const MAX_QUESTION_ROWS: usize = 4;
/// Rows of the live part of the transcript that are shown even in a low terminal.
const MIN_LIVE_ROWS: usize = 6;
/// With more rows than this, empty rows separate the parts.
const MIN_SPACED_ROWS: usize = 8;
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Whether a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Turn,
}

/// A running task, with the last line of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPill {
    pub(crate) id: TaskId,
    pub(crate) what: String,
    pub(crate) last: String,
}

/// What a key asks of the screen thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ViewRequest {
    Nothing,
    Line(LineEvent),
    /// Stop the process, as Ctrl-Z does.
    Stop,
    Redraw,
}

/// An input that was entered while a turn runs.
#[derive(Debug, PartialEq, Eq)]
struct QueuedInput {
    text: String,
    /// It has joined the turn. It moves to the transcript once no answer is being written.
    is_taken: bool,
}

/// A picker, with the sender that the answer goes to.
struct OpenPicker {
    picker: Picker,
    answer: Option<oneshot::Sender<Option<usize>>>,
}

pub(crate) struct View {
    size: (u16, u16),
    transcript: Transcript,
    input: InputField,
    facts: StatusFacts,
    activity: Activity,
    pills: Vec<TaskPill>,
    questions: Vec<OpenQuestion>,
    /// Inputs of the running turn that are not in the transcript yet.
    queued: Vec<QueuedInput>,
    /// A question in place of the prompt, answered by one line.
    asked: Option<String>,
    picker: Option<OpenPicker>,
    details: Option<DetailView>,
}

impl View {
    pub(crate) fn new(size: (u16, u16), transcript: Transcript, input: InputField) -> Self {
        Self {
            size,
            transcript,
            input,
            facts: StatusFacts::default(),
            activity: Activity::Idle,
            pills: Vec::new(),
            questions: Vec::new(),
            queued: Vec::new(),
            asked: None,
            picker: None,
            details: None,
        }
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.transcript.resize(size.0);
    }

    /// Whether the view changes with time alone.
    pub(crate) fn is_animated(&self) -> bool {
        self.details.is_none() && (self.transcript.moves() || self.activity == Activity::Turn)
    }

    /// Whether the detail view is open.
    pub(crate) fn shows_details(&self) -> bool {
        self.details.is_some()
    }

    pub(crate) fn close_details(&mut self) {
        self.details = None;
    }

    pub(crate) fn see(&mut self, watched: &Watched, now: Instant) {
        if let Watched::Event(event) = watched {
            self.facts.update(&event.kind);
            self.handle_event(&event.kind);
        }
        self.transcript.see(watched, now);
        if !self.transcript.is_answering() {
            let (taken, waiting) =
                std::mem::take(&mut self.queued).into_iter().partition(|queued| queued.is_taken);
            self.queued = waiting;
            let taken: Vec<QueuedInput> = taken;
            taken.iter().for_each(|queued| self.transcript.entered(&queued.text));
        }
    }

    fn handle_event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::InputTaken { .. } => {
                if let Some(queued) = self.queued.iter_mut().find(|queued| !queued.is_taken) {
                    queued.is_taken = true;
                }
            }
            EventKind::TaskStarted { task_id, description } => {
                self.pills.push(TaskPill { id: *task_id, what: description.clone(), last: String::new() });
            }
            EventKind::TaskEnded { task_id, status, .. } if *status != TaskStatus::Running => {
                self.pills.retain(|pill| pill.id != *task_id);
            }
            EventKind::Question { id, text } if self.questions.iter().all(|open| open.id != *id) => {
                self.questions.push(OpenQuestion { id: *id, text: text.clone() });
            }
            EventKind::Answered { id } => self.questions.retain(|open| open.id != *id),
            // A client that joins in the middle of a turn has not seen its start.
            EventKind::TurnStarted
            | EventKind::StepStarted
            | EventKind::TextDelta { .. }
            | EventKind::Partial { .. }
            | EventKind::ToolStarted { .. } => self.activity = Activity::Turn,
            EventKind::Warning { code, .. } if code == "abandoned" => self.interrupt_turn(),
            EventKind::TurnEnded { .. } => {
                self.questions.clear();
                self.activity = Activity::Idle;
            }
            _ => {}
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.transcript.note(text);
    }

    pub(crate) fn aside(&mut self, text: &str) {
        self.transcript.aside(text);
    }

    pub(crate) fn add_output(&mut self, text: &str) {
        self.transcript.printed(text);
    }

    pub(crate) fn add_input(&mut self, text: &str) {
        self.transcript.entered(text);
    }

    pub(crate) fn set_facts(&mut self, facts: StatusFacts) {
        self.facts = facts;
    }

    pub(crate) fn set_activity(&mut self, activity: Activity) {
        self.activity = activity;
    }

    pub(crate) fn set_questions(&mut self, open: Vec<OpenQuestion>) {
        self.transcript.set_asked(open.len());
        self.questions = open;
    }

    pub(crate) fn ask(&mut self, question: Option<String>) {
        self.asked = question;
    }

    pub(crate) fn set_pills(&mut self, pills: Vec<TaskPill>) {
        self.pills = pills;
    }

    /// Forgets the turn of the previous session.
    pub(crate) fn change_session(&mut self) {
        self.transcript.turn_over();
        self.questions.clear();
        self.queued.clear();
        self.pills.clear();
        self.activity = Activity::Idle;
    }

    /// No process runs the open turn any more.
    pub(crate) fn interrupt_turn(&mut self) {
        self.transcript.turn_over();
        self.activity = Activity::Idle;
    }

    pub(crate) fn pick(
        &mut self,
        title: &str,
        choices: Vec<PickerItem>,
        answer: oneshot::Sender<Option<usize>>,
    ) {
        self.picker = Some(OpenPicker { picker: Picker::new(title, choices), answer: Some(answer) });
    }

    pub(crate) fn close_picker(&mut self) {
        self.picker = None;
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.picker {
            Some(open) => open.picker.paste(text),
            None if self.details.is_some() => {}
            None => self.input.paste(text),
        }
    }

    /// Puts a half typed input into the history.
    pub(crate) fn keep_input(&mut self) {
        self.input.keep_in_history();
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> ViewRequest {
        if let Some(details) = &mut self.details {
            if details.press(key, self.size) == DetailOutcome::Closed {
                self.details = None;
            }
            return ViewRequest::Nothing;
        }
        if let Some(open) = &mut self.picker {
            let chosen = match open.picker.press(key) {
                PickerOutcome::Nothing => return ViewRequest::Nothing,
                PickerOutcome::Chosen(index) => Some(index),
                PickerOutcome::Cancelled => None,
            };
            if let Some(answer) = open.answer.take() {
                let _ = answer.send(chosen);
            }
            self.picker = None;
            return ViewRequest::Nothing;
        }
        // An empty line chooses the default answer.
        if self.asked.is_some() && key.code == KeyCode::Enter && self.input.is_empty() {
            return self.answer(String::new());
        }
        match self.input.press(key) {
            // Esc ends the turn, and a half typed input stays.
            KeyOutcome::Edited if key.code == KeyCode::Esc && self.activity == Activity::Turn => {
                ViewRequest::Line(LineEvent::Escape)
            }
            KeyOutcome::Edited => ViewRequest::Nothing,
            KeyOutcome::Entered(text) if self.asked.is_some() => self.answer(text),
            KeyOutcome::Entered(text) => {
                self.echo(&text);
                ViewRequest::Line(LineEvent::Line(text))
            }
            KeyOutcome::Escape => ViewRequest::Line(LineEvent::Escape),
            KeyOutcome::Interrupt => ViewRequest::Line(LineEvent::Interrupt),
            KeyOutcome::End => ViewRequest::Line(LineEvent::End),
            KeyOutcome::Other(key) => self.handle_view_key(key),
        }
    }

    fn answer(&mut self, text: String) -> ViewRequest {
        let asked = self.asked.take().unwrap_or_default();
        self.transcript.aside(&format!("{asked}{text}"));
        self.activity = Activity::Turn;
        ViewRequest::Line(LineEvent::Line(text))
    }

    /// Puts an input into the transcript at once, or into the queue if it joins a turn.
    fn echo(&mut self, text: &str) {
        let is_answer = !self.questions.is_empty() && yes_or_no(text).is_some();
        match parse_line(text) {
            SlashInput::Say(said) if self.activity == Activity::Turn && !is_answer => {
                self.queued.push(QueuedInput { text: said, is_taken: false });
            }
            SlashInput::Say(said) => {
                self.facts.saved = SaveState::NotYet;
                self.transcript.entered(&said);
                // Its turn starts now: later inputs join it.
                self.activity = Activity::Turn;
            }
            _ => self.transcript.entered(text),
        }
    }

    fn handle_view_key(&mut self, key: KeyEvent) -> ViewRequest {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('o') if with_control => {
                self.details = DetailView::new(self.transcript.details(Instant::now()));
                if self.details.is_none() {
                    self.transcript.note("there is no call and no thought to open yet");
                }
            }
            KeyCode::Char('r') if with_control => {
                let display = self.transcript.toggle_reasoning();
                self.transcript.note(match display {
                    ReasoningDisplay::Open => "thoughts are shown from here on; Ctrl-R folds them",
                    ReasoningDisplay::Folded => "thoughts are folded from here on; Ctrl-O opens one",
                });
            }
            KeyCode::Char('l') if with_control => return ViewRequest::Redraw,
            KeyCode::Char('z') if with_control => return ViewRequest::Stop,
            _ => {}
        }
        ViewRequest::Nothing
    }

    /// The frame to draw now. Lines above the viewport are returned once.
    pub(crate) fn frame(&mut self, now: Instant) -> Frame {
        if let Some(details) = &mut self.details {
            return details.frame(self.size);
        }
        let above = self.transcript.take();
        let (width, height) = self.size;
        // One row of the transcript stays visible.
        let room = usize::from(height).saturating_sub(1).max(1);
        let (mut input, cursor) = self.input_rows(width, room);
        let left = room.saturating_sub(input.len());
        let mut middle = self.middle(width, left);
        let left = left.saturating_sub(middle.len());
        // At most half of the terminal, so that the rows still fit after it becomes half as wide.
        let mut rows = self.transcript.live(left.min(usize::from(height / 2).max(MIN_LIVE_ROWS)), now);
        rows.append(&mut middle);
        let cursor = (cursor.0, u16::try_from(rows.len()).unwrap_or(0).saturating_add(cursor.1));
        rows.append(&mut input);
        Frame { above, rows: rows.into_iter().map(|line| fitted(line, width)).collect(), cursor }
    }

    /// The input and the status line, with the cursor in them.
    fn input_rows(&self, width: u16, room: usize) -> (Vec<Line<'static>>, (u16, u16)) {
        if let Some(open) = &self.picker {
            let rows = u16::try_from(room.min(14)).unwrap_or(14);
            let lines = open.picker.lines(width, rows);
            let last = u16::try_from(lines.len().saturating_sub(1)).unwrap_or(0);
            return (lines, (0, last.min(1)));
        }
        let (question, prompt) = match &self.asked {
            Some(question) => (wrap_line(&Line::raw(sanitize(question)), width, ""), "? "),
            None => (vec![], "> "),
        };
        let rows = u16::try_from((room / 2).clamp(1, 10)).unwrap_or(1);
        let shown = self.input.render(prompt, width, rows);
        let hint = match (self.activity, self.input.is_empty()) {
            _ if self.asked.is_some() => "Enter answers, Ctrl-C leaves it open",
            (Activity::Turn, _) => "Esc ends the turn",
            (Activity::Idle, true) => "/help",
            (Activity::Idle, false) => "",
        };
        let status = self.facts.line(self.pills.len(), hint, width);
        let (column, row) = shown.cursor;
        let mut lines = if room > MIN_SPACED_ROWS { vec![Line::default()] } else { vec![] };
        lines.extend(question);
        let above = u16::try_from(lines.len()).unwrap_or(0);
        lines.extend(shown.lines);
        match shown.completions.is_empty() {
            true => lines.push(status),
            false => lines.extend(shown.completions),
        }
        // Without room for all rows, keep the one with the cursor.
        let at = usize::from(above + row);
        if lines.len() > room {
            let from = (at + 1).saturating_sub(room);
            lines = lines.into_iter().skip(from).take(room).collect();
            return (lines, (column, u16::try_from(at - from).unwrap_or(0)));
        }
        (lines, (column, above + row))
    }

    /// Queued inputs, open questions and running tasks.
    fn middle(&self, width: u16, room: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for queued in self.queued.iter().take(MAX_QUEUED_ROWS) {
            let text = format!("+ {}  (joins the turn at its next step)", truncate(&queued.text, 60));
            lines.push(Line::styled(text, DIM));
        }
        if self.queued.len() > MAX_QUEUED_ROWS {
            lines.push(Line::styled(format!("+ {} more", self.queued.len() - MAX_QUEUED_ROWS), DIM));
        }
        if let Some(OpenQuestion { text, .. }) = self.questions.first() {
            let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
            // The transcript has all of it; here is its first line.
            let shown = question(text);
            let about = shown.lines().next().unwrap_or_default().to_owned();
            let mut rows = wrap_line(&Line::styled(about, style), width, "  ");
            if rows.len() > MAX_QUESTION_ROWS {
                rows.truncate(MAX_QUESTION_ROWS);
                rows.push(Line::styled("  … all of it stands above", style));
            }
            lines.extend(rows);
            let more = match self.questions.len() {
                1 => String::new(),
                several => format!("; {} more after this one", several - 1),
            };
            let how = format!("  y or n and Enter answers it; /answer TEXT is a no with its reason{more}");
            lines.extend(wrap_line(&Line::styled(how, DIM), width, "  "));
        }
        for pill in self.pills.iter().take(MAX_PILL_ROWS) {
            lines.push(pill_line(pill));
        }
        if self.pills.len() > MAX_PILL_ROWS {
            lines.push(Line::styled(
                format!("◦ {} more; /tasks lists them", self.pills.len() - MAX_PILL_ROWS),
                DIM,
            ));
        }
        if !lines.is_empty() && room > MIN_SPACED_ROWS {
            lines.insert(0, Line::default());
        }
        lines.truncate(room);
        lines
    }
}

fn pill_line(pill: &TaskPill) -> Line<'static> {
    let style = Style::new().fg(Color::Blue);
    let mut spans =
        vec![Span::styled(format!("◦ {} ", short(pill.id)), style), Span::raw(truncate(&pill.what, 40))];
    if !pill.last.is_empty() {
        spans.push(Span::styled(format!("  {}", truncate(&pill.last, 200)), DIM));
    }
    Line::from(spans)
}

/// Cuts a line that is wider than the viewport.
fn fitted(line: Line<'static>, width: u16) -> Line<'static> {
    if line.width() <= usize::from(width) { line } else { truncate_line(&line, width) }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
