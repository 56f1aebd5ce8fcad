//! Everything that is to be seen, and what keys do. Pure: what happens goes in, frames and wishes come out.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_agent::Watched;
use longhaul_protocol::{EventKind, TaskId, TaskStatus};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use tokio::sync::oneshot;

use super::detail_view::{DetailOutcome, Details};
use super::input::{InputField, KeyOutcome};
use super::picker::{Picker, PickerItem, PickerOutcome};
use super::status_line::{SaveState, StatusFacts};
use super::transcript::{Thoughts, Transcript};
use super::viewport::Frame;
use super::wrap::{one_row, wrapped};
use crate::output::{safe, shortened};
use crate::questions::{OpenQuestion, question, yes_or_no};
use crate::short_id::short;
use crate::tui::chat::LineEvent;
use crate::tui::chat::slash::{SlashInput, parse_line};

/// So many of each kind of line are shown; the rest is counted.
const MAX_PILL_ROWS: usize = 3;
const MAX_QUEUED_ROWS: usize = 3;
/// So many rows of a question.
const MAX_QUESTION_ROWS: usize = 4;
/// So many rows of what may still change are shown in any case.
const MIN_LIVE_ROWS: usize = 6;
/// From so many rows on, one may stay empty.
const MIN_SPACED_ROWS: usize = 8;
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Whether a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Turn,
}

/// A task that goes on, and what it printed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPill {
    pub(crate) id: TaskId,
    pub(crate) what: String,
    pub(crate) last: String,
}

/// What a key asks of whoever shows the view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ViewRequest {
    Nothing,
    Line(LineEvent),
    /// The process stops until somebody brings it back.
    Stop,
    /// Everything is drawn again.
    Redraw,
}

/// Something that was entered while a turn runs.
#[derive(Debug, PartialEq, Eq)]
struct QueuedInput {
    text: String,
    /// It has joined the turn, and stands above as soon as that cuts no answer in two.
    is_taken: bool,
}

/// A list of which one is chosen, and who waits for that.
struct OpenPicker {
    picker: Picker,
    answer: Option<oneshot::Sender<Option<usize>>>,
}

pub(crate) struct View {
    size: (u16, u16),
    transcript: Transcript,
    typing: InputField,
    facts: StatusFacts,
    activity: Activity,
    pills: Vec<TaskPill>,
    questions: Vec<OpenQuestion>,
    /// What was entered while a turn runs, and does not stand above yet.
    queued: Vec<QueuedInput>,
    /// What stands in place of the prompt, and is answered by one line.
    asked: Option<String>,
    picking: Option<OpenPicker>,
    details: Option<Details>,
}

impl View {
    pub(crate) fn new(size: (u16, u16), transcript: Transcript, typing: InputField) -> Self {
        Self {
            size,
            transcript,
            typing,
            facts: StatusFacts::default(),
            activity: Activity::Idle,
            pills: Vec::new(),
            questions: Vec::new(),
            queued: Vec::new(),
            asked: None,
            picking: None,
            details: None,
        }
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.transcript.resize(size.0);
    }

    /// Whether anything moves by itself.
    pub(crate) fn moves(&self) -> bool {
        self.details.is_none() && (self.transcript.moves() || self.activity == Activity::Turn)
    }

    /// Whether what stands on one line is looked at, over the whole terminal.
    pub(crate) fn shows_details(&self) -> bool {
        self.details.is_some()
    }

    pub(crate) fn close_details(&mut self) {
        self.details = None;
    }

    pub(crate) fn see(&mut self, watched: &Watched, now: Instant) {
        if let Watched::Event(event) = watched {
            self.facts.see(&event.kind);
            self.heed(&event.kind);
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

    fn heed(&mut self, kind: &EventKind) {
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
            // Whoever comes in the middle of a turn has not seen it begin.
            EventKind::TurnStarted
            | EventKind::StepStarted
            | EventKind::TextDelta { .. }
            | EventKind::Partial { .. }
            | EventKind::ToolStarted { .. } => self.activity = Activity::Turn,
            EventKind::Warning { code, .. } if code == "abandoned" => self.turn_interrupted(),
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

    pub(crate) fn printed(&mut self, text: &str) {
        self.transcript.printed(text);
    }

    /// What somebody said, here or elsewhere.
    pub(crate) fn entered(&mut self, text: &str) {
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

    /// Which tasks go on, and what each of them printed last.
    pub(crate) fn set_pills(&mut self, pills: Vec<TaskPill>) {
        self.pills = pills;
    }

    /// Another session is shown from here on.
    pub(crate) fn turn_over(&mut self) {
        self.transcript.turn_over();
        self.questions.clear();
        self.queued.clear();
        self.pills.clear();
        self.activity = Activity::Idle;
    }

    /// Nobody runs the turn that is open.
    pub(crate) fn turn_interrupted(&mut self) {
        self.transcript.turn_over();
        self.activity = Activity::Idle;
    }

    pub(crate) fn pick(
        &mut self,
        title: &str,
        choices: Vec<PickerItem>,
        answer: oneshot::Sender<Option<usize>>,
    ) {
        self.picking = Some(OpenPicker { picker: Picker::new(title, choices), answer: Some(answer) });
    }

    /// Nobody will choose any more.
    pub(crate) fn give_up_picking(&mut self) {
        self.picking = None;
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.picking {
            Some(picking) => picking.picker.paste(text),
            None if self.details.is_some() => {}
            None => self.typing.paste(text),
        }
    }

    /// Whatever is half typed is found again in the history.
    pub(crate) fn keep_typed(&mut self) {
        self.typing.keep();
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> ViewRequest {
        if let Some(details) = &mut self.details {
            if details.press(key, self.size) == DetailOutcome::Closed {
                self.details = None;
            }
            return ViewRequest::Nothing;
        }
        if let Some(picking) = &mut self.picking {
            let chosen = match picking.picker.press(key) {
                PickerOutcome::Nothing => return ViewRequest::Nothing,
                PickerOutcome::Chosen(place) => Some(place),
                PickerOutcome::Left => None,
            };
            if let Some(answer) = picking.answer.take() {
                let _ = answer.send(chosen);
            }
            self.picking = None;
            return ViewRequest::Nothing;
        }
        // Where a question has a usual answer, that is entered by entering nothing.
        if self.asked.is_some() && key.code == KeyCode::Enter && self.typing.is_empty() {
            return self.answered(String::new());
        }
        match self.typing.press(key) {
            // Whatever is half typed stays: what runs must be ended by the key that says so.
            KeyOutcome::Edited if key.code == KeyCode::Esc && self.activity == Activity::Turn => {
                ViewRequest::Line(LineEvent::Escape)
            }
            KeyOutcome::Edited => ViewRequest::Nothing,
            KeyOutcome::Entered(text) if self.asked.is_some() => self.answered(text),
            KeyOutcome::Entered(text) => {
                self.echo(&text);
                ViewRequest::Line(LineEvent::Line(text))
            }
            KeyOutcome::Escape => ViewRequest::Line(LineEvent::Escape),
            KeyOutcome::Interrupt => ViewRequest::Line(LineEvent::Interrupt),
            KeyOutcome::End => ViewRequest::Line(LineEvent::End),
            KeyOutcome::Other(key) => self.other(key),
        }
    }

    fn answered(&mut self, text: String) -> ViewRequest {
        let asked = self.asked.take().unwrap_or_default();
        self.transcript.aside(&format!("{asked}{text}"));
        self.activity = Activity::Turn;
        ViewRequest::Line(LineEvent::Line(text))
    }

    /// What is entered stands above at once; what joins a turn, when it has.
    fn echo(&mut self, text: &str) {
        let is_answer = !self.questions.is_empty() && yes_or_no(text).is_some();
        match parse_line(text) {
            SlashInput::Say(said) if self.activity == Activity::Turn && !is_answer => {
                self.queued.push(QueuedInput { text: said, is_taken: false });
            }
            SlashInput::Say(said) => {
                self.facts.saved = SaveState::NotYet;
                self.transcript.entered(&said);
                // Its turn begins in a moment; what is entered until then comes after it.
                self.activity = Activity::Turn;
            }
            _ => self.transcript.entered(text),
        }
    }

    fn other(&mut self, key: KeyEvent) -> ViewRequest {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('o') if with_control => {
                self.details = Details::new(self.transcript.details(Instant::now()));
                if self.details.is_none() {
                    self.transcript.note("there is no call and no thought to open yet");
                }
            }
            KeyCode::Char('r') if with_control => {
                self.transcript.thoughts = match self.transcript.thoughts {
                    Thoughts::Folded => Thoughts::Open,
                    Thoughts::Open => Thoughts::Folded,
                };
                self.transcript.note(match self.transcript.thoughts {
                    Thoughts::Open => "thoughts are shown from here on; Ctrl-R folds them",
                    Thoughts::Folded => "thoughts are folded from here on; Ctrl-O opens one",
                });
            }
            KeyCode::Char('l') if with_control => return ViewRequest::Redraw,
            KeyCode::Char('z') if with_control => return ViewRequest::Stop,
            _ => {}
        }
        ViewRequest::Nothing
    }

    /// What is to be seen now. What is above the viewport is given once.
    pub(crate) fn frame(&mut self, now: Instant) -> Frame {
        if let Some(details) = &mut self.details {
            return details.frame(self.size);
        }
        let above = self.transcript.take();
        let (width, height) = self.size;
        // A row of what was said stays in sight.
        let room = usize::from(height).saturating_sub(1).max(1);
        let (mut input, cursor) = self.input(width, room);
        let left = room.saturating_sub(input.len());
        let mut middle = self.middle(width, left);
        let left = left.saturating_sub(middle.len());
        // Where a terminal gets half as wide, what is drawn again must still fit.
        let mut rows = self.transcript.live(left.min(usize::from(height / 2).max(MIN_LIVE_ROWS)), now);
        rows.append(&mut middle);
        let cursor = (cursor.0, u16::try_from(rows.len()).unwrap_or(0).saturating_add(cursor.1));
        rows.append(&mut input);
        Frame { above, rows: rows.into_iter().map(|line| fitted(line, width)).collect(), cursor }
    }

    /// The rows in which somebody types, and the status below; where the cursor stands in them.
    fn input(&self, width: u16, room: usize) -> (Vec<Line<'static>>, (u16, u16)) {
        if let Some(picking) = &self.picking {
            let rows = u16::try_from(room.min(14)).unwrap_or(14);
            let lines = picking.picker.lines(width, rows);
            let last = u16::try_from(lines.len().saturating_sub(1)).unwrap_or(0);
            return (lines, (0, last.min(1)));
        }
        let (question, prompt) = match &self.asked {
            Some(question) => (wrapped(&Line::raw(safe(question)), width, ""), "? "),
            None => (vec![], "> "),
        };
        let rows = u16::try_from((room / 2).clamp(1, 10)).unwrap_or(1);
        let shown = self.typing.shown(prompt, width, rows);
        let hint = match (self.activity, self.typing.is_empty()) {
            _ if self.asked.is_some() => "Enter answers, Ctrl-C leaves it open",
            (Activity::Turn, _) => "Esc ends the turn",
            (Activity::Idle, true) => "/help",
            (Activity::Idle, false) => "",
        };
        let status = self.facts.line(self.pills.len(), hint, width);
        let (column, row) = shown.cursor;
        // Where there is room, what is typed stands apart from what was said.
        let mut lines = if room > MIN_SPACED_ROWS { vec![Line::default()] } else { vec![] };
        lines.extend(question);
        let above = u16::try_from(lines.len()).unwrap_or(0);
        lines.extend(shown.lines);
        match shown.completions.is_empty() {
            true => lines.push(status),
            false => lines.extend(shown.completions),
        }
        // Where there is hardly any room, the row with the cursor is what counts.
        let at = usize::from(above + row);
        if lines.len() > room {
            let from = (at + 1).saturating_sub(room);
            lines = lines.into_iter().skip(from).take(room).collect();
            return (lines, (column, u16::try_from(at - from).unwrap_or(0)));
        }
        (lines, (column, above + row))
    }

    /// What waits for somebody, and what goes on in the background.
    fn middle(&self, width: u16, room: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for queued in self.queued.iter().take(MAX_QUEUED_ROWS) {
            let text = format!("+ {}  (joins the turn at its next step)", shortened(&queued.text, 60));
            lines.push(Line::styled(text, DIM));
        }
        if self.queued.len() > MAX_QUEUED_ROWS {
            lines.push(Line::styled(format!("+ {} more", self.queued.len() - MAX_QUEUED_ROWS), DIM));
        }
        if let Some(OpenQuestion { text, .. }) = self.questions.first() {
            let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
            // All of it stands above; this is what it is about.
            let shown = question(text);
            let about = shown.lines().next().unwrap_or_default().to_owned();
            let mut rows = wrapped(&Line::styled(about, style), width, "  ");
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
            lines.extend(wrapped(&Line::styled(how, DIM), width, "  "));
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
        vec![Span::styled(format!("◦ {} ", short(pill.id)), style), Span::raw(shortened(&pill.what, 40))];
    if !pill.last.is_empty() {
        spans.push(Span::styled(format!("  {}", shortened(&pill.last, 200)), DIM));
    }
    Line::from(spans)
}

/// A line in one row: in the viewport each has one.
fn fitted(line: Line<'static>, width: u16) -> Line<'static> {
    if line.width() <= usize::from(width) { line } else { one_row(&line, width) }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
