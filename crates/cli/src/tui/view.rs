//! The view: events and keys go in, frames and requests come out. Pure.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_agent::Watched;
use longhaul_protocol::{Event, EventKind, TaskStatus};
use longhaul_transcript::{ReasoningDisplay, StyledLine, truncate_line, wrap_line};
use ratatui::text::Line;
use tokio::sync::oneshot;

use super::detail_view::{DetailOutcome, DetailView, OutputRequests};
use super::input::{InputField, KeyOutcome};
use super::mode_note::ModeNote;
use super::permission_keys::{HeldAnswer, answer_key, answer_lines, mode_key};
use super::picker::{Picker, PickerOutcome};
use super::pinned_todo::PinnedTodo;
use super::repeated_key::{FirstPress, RepeatedKey};
use super::screen_update::{Activity, OutputUpdate, ScreenUpdate};
use super::status_line::{SaveState, StatusFacts};
use super::styled_text::{to_line, to_lines, to_rows};
use super::task_pills::{TaskPill, pill_lines};
use super::transcript::Transcript;
use super::viewport::Frame;
use crate::output::{sanitize, truncate};
use crate::questions::OpenQuestion;
use crate::tui::chat::slash::{SlashInput, parse_line};
use crate::tui::chat::{LineEvent, UserCommand};

/// Queued inputs that have a row; the rest is counted in one more row.
const MAX_QUEUED_ROWS: usize = 3;
/// Rows of the live part of the transcript that are shown even in a low terminal.
const MIN_LIVE_ROWS: usize = 6;
/// The message below a recalled input that still waits in the inbox.
const ALREADY_SENT: &str = "This was sent already: Enter sends it once more.";
/// With more rows than this, empty rows separate the parts.
const MIN_SPACED_ROWS: usize = 8;

/// What a key asks of the screen thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ViewRequest {
    Nothing,
    Line(LineEvent),
    /// Stop the process, as Ctrl-Z does.
    Stop,
    /// Open the user's editor with the typed text.
    Edit,
    Redraw,
}

/// An input that was entered while a turn runs. It is in the inbox already: it joins the turn, or begins the next one.
#[derive(Debug, PartialEq, Eq)]
struct QueuedInput {
    text: String,
    /// The session has taken it. It moves to the transcript with the step that shows it to the model.
    is_taken: bool,
}

/// A picker, with the sender that the answer goes to.
struct OpenPicker {
    picker: Picker,
    answer: oneshot::Sender<Option<usize>>,
}

pub(crate) struct View {
    size: (u16, u16),
    transcript: Transcript,
    input: InputField,
    facts: StatusFacts,
    /// The model that a turn begins with, with the tokens of its context window.
    chosen_model: (String, Option<u64>),
    activity: Activity,
    pills: Vec<TaskPill>,
    questions: Vec<OpenQuestion>,
    held_answer: Option<HeldAnswer>,
    /// Inputs of the running turn that are not in the transcript yet.
    queued: Vec<QueuedInput>,
    /// A question in place of the prompt, answered by one line.
    asked: Option<String>,
    picker: Option<OpenPicker>,
    details: Option<DetailView>,
    first_press: FirstPress,
    is_leaving: bool,
    /// Where to ask for the whole output of a call.
    output_requests: Option<OutputRequests>,
    todo: PinnedTodo,
    mode_note: ModeNote,
}

impl View {
    pub(crate) fn new(size: (u16, u16), transcript: Transcript, input: InputField) -> Self {
        Self {
            size,
            todo: PinnedTodo::new(transcript.todo_marks),
            transcript,
            input,
            facts: StatusFacts::default(),
            chosen_model: <(String, Option<u64>)>::default(),
            activity: Activity::Idle,
            pills: Vec::new(),
            questions: Vec::new(),
            held_answer: None,
            queued: Vec::new(),
            asked: None,
            picker: None,
            details: None,
            first_press: FirstPress::default(),
            is_leaving: false,
            output_requests: None,
            mode_note: ModeNote::default(),
        }
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.transcript.renderer.resize(size.0);
    }

    /// Whether the view changes with time alone.
    pub(crate) fn is_animated(&self) -> bool {
        self.details.is_none()
            && (self.transcript.blocks.is_active()
                || self.activity == Activity::Turn
                || self.held_answer.is_some()
                || self.first_press.is_pending(Instant::now())
                || self.input.awaits_files())
    }

    /// Whether the detail view is open.
    pub(crate) fn shows_details(&self) -> bool {
        self.details.is_some()
    }

    pub(crate) fn close_details(&mut self) {
        self.details = None;
    }

    pub(crate) fn show_event(&mut self, watched: &Watched, now: Instant) {
        if let Watched::Event(event) = watched {
            self.facts.update(&event.kind);
            if self.facts.model == self.chosen_model.0 {
                self.facts.window = self.chosen_model.1;
            }
            self.todo.apply_event(&event.kind);
            self.handle_event(&event.kind);
        }
        if let Watched::Event(Event { kind: EventKind::ModeChanged { from, to }, .. }) = watched {
            return self.mode_note.add(*from, *to);
        }
        self.settle_mode();
        self.transcript.show_event(watched, now);
    }

    /// Moves the line about the mode to the transcript: something else is shown next.
    fn settle_mode(&mut self) {
        if let Some(text) = self.mode_note.take() {
            self.transcript.renderer.push_aside(&text);
        }
    }

    fn handle_event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::InputTaken { .. } => {
                if let Some(queued) = self.queued.iter_mut().find(|queued| !queued.is_taken) {
                    queued.is_taken = true;
                }
            }
            EventKind::ToolFinished { call_id, .. } => {
                self.details.iter_mut().for_each(|details| details.refresh_output(*call_id));
            }
            EventKind::TaskStarted { task_id, description }
            | EventKind::ChildStarted { task_id, description, .. } => {
                self.pills.push(TaskPill { id: *task_id, what: description.clone(), last: String::new() });
            }
            EventKind::TaskEnded { task_id, status, .. } | EventKind::ChildEnded { task_id, status, .. }
                if *status != TaskStatus::Running =>
            {
                self.pills.retain(|pill| pill.id != *task_id);
            }
            EventKind::Question { id, .. } if self.questions.iter().all(|open| open.id != *id) => {
                self.questions.extend(OpenQuestion::of_event(kind));
            }
            EventKind::Answered { id, .. } => self.questions.retain(|open| open.id != *id),
            EventKind::TurnStarted { .. } | EventKind::StepStarted => {
                for queued in self.queued.extract_if(.., |queued| queued.is_taken) {
                    self.transcript.renderer.push_input(&queued.text);
                }
                self.activity = Activity::Turn;
            }
            // A client that joins in the middle of a turn has not seen its start.
            EventKind::TextDelta { .. } | EventKind::Partial { .. } | EventKind::ToolStarted { .. } => {
                self.activity = Activity::Turn;
            }
            EventKind::Warning { code, .. } if code == "abandoned" => {
                self.transcript.discard_attempt();
                self.activity = Activity::Idle;
            }
            EventKind::TurnEnded { .. } => {
                self.questions.retain(|open| !open.is_awaited());
                self.activity = Activity::Idle;
            }
            _ => {}
        }
    }

    pub(crate) fn update(&mut self, update: ScreenUpdate, now: Instant) {
        if matches!(update, ScreenUpdate::Note(_) | ScreenUpdate::Leaving | ScreenUpdate::SessionChanged) {
            self.settle_mode();
        }
        match update {
            ScreenUpdate::Watched(watched) => self.show_event(&watched, now),
            ScreenUpdate::Note(text) => self.transcript.renderer.push_program_note(&text),
            ScreenUpdate::Aside(text) => self.transcript.renderer.push_aside(&text),
            ScreenUpdate::Printed(text) => self.transcript.renderer.push_output(&text),
            ScreenUpdate::Table(rows) => self.transcript.renderer.push_table(&rows),
            ScreenUpdate::UserCommand { command, output, lines } => {
                self.transcript.keep_user_command(command, output, lines);
            }
            ScreenUpdate::Entered(text) => self.transcript.renderer.push_input(&text),
            ScreenUpdate::Unsent => drop(self.queued.pop()),
            ScreenUpdate::TakenBack(line) => self.take_back(&line),
            ScreenUpdate::Past(past) => self.transcript.show_past(past),
            ScreenUpdate::StatusFacts(facts) => {
                self.chosen_model = (facts.model.clone(), facts.window);
                self.facts = facts;
            }
            ScreenUpdate::ContextTokens(tokens) => self.facts.used = Some(tokens),
            ScreenUpdate::Model { name, window } => {
                (self.facts.model, self.facts.window) = (name.clone(), window);
                self.chosen_model = (name, window);
            }
            ScreenUpdate::MemoryCalls(calls) => self.facts.memory = calls,
            ScreenUpdate::Activity(activity) => self.activity = activity,
            ScreenUpdate::Input(text) => self.input.recall_text(&text),
            ScreenUpdate::Leaving => self.is_leaving = true,
            ScreenUpdate::Pills(pills) => self.pills = pills,
            ScreenUpdate::Output(update) => self.update_output(update),
            ScreenUpdate::Todo(list) => self.todo.set_list(list),
            ScreenUpdate::Questions(open) => {
                self.transcript.blocks.set_open_questions(open.len());
                self.questions = open;
            }
            ScreenUpdate::Ask(question) => self.asked = Some(question),
            ScreenUpdate::Pick { title, choices, answer } => {
                self.picker = Some(OpenPicker { picker: Picker::new(title, choices), answer });
            }
            ScreenUpdate::SessionChanged => {
                self.interrupt_turn();
                self.questions.clear();
                self.queued.clear();
                self.pills.clear();
            }
            ScreenUpdate::Interrupted => self.interrupt_turn(),
        }
    }

    /// Returns a line that was sent to the input field, before what is typed there.
    fn take_back(&mut self, line: &str) {
        if let SlashInput::Say(said) = parse_line(line)
            && let Some(index) = self.queued.iter().rposition(|queued| queued.text == said)
        {
            self.queued.remove(index);
        }
        let typed = self.input.expanded();
        self.input.set(&if typed.is_empty() { line.to_owned() } else { format!("{line}\n{typed}") });
    }

    fn update_output(&mut self, update: OutputUpdate) {
        match update {
            OutputUpdate::Requests(requests) => self.output_requests = Some(requests),
            OutputUpdate::Tail { call, lines } => {
                self.details.iter_mut().for_each(|details| details.refresh_output(call));
                self.transcript.show_tail(call, lines);
            }
            OutputUpdate::Whole { call, pages } => {
                let size = self.size;
                if let Some(details) = &mut self.details {
                    details.show_output(call, pages, size);
                }
            }
            OutputUpdate::NoMore { call } => {
                self.details.iter_mut().for_each(|details| details.keep_output(call));
            }
        }
    }

    /// No process runs the open turn any more.
    fn interrupt_turn(&mut self) {
        self.transcript.close_turn();
        self.activity = Activity::Idle;
    }

    pub(crate) fn close_picker(&mut self) {
        self.picker = None;
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.picker {
            Some(open) => open.picker.paste(text),
            None => match &mut self.details {
                Some(details) => details.paste(text),
                None => self.input.paste(text),
            },
        }
    }

    /// Puts a half typed input into the history.
    pub(crate) fn keep_input(&mut self) {
        self.input.keep_in_history();
    }

    /// The typed text, for the editor.
    pub(crate) fn typed_text(&self) -> String {
        self.input.expanded()
    }

    /// Takes the text back from the editor, or says why there is none.
    pub(crate) fn take_edited(&mut self, edited: Result<String, String>) {
        match edited {
            Ok(text) => self.input.set(&text),
            Err(error) => self.transcript.renderer.push_program_note(&error),
        }
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> ViewRequest {
        let first_press = std::mem::take(&mut self.first_press);
        if let Some(details) = &mut self.details {
            if details.press(key, self.size) == DetailOutcome::Closed {
                self.details = None;
            }
            return ViewRequest::Nothing;
        }
        if let Some(mut open) = self.picker.take() {
            let chosen = match open.picker.press(key) {
                PickerOutcome::Nothing => {
                    self.picker = Some(open);
                    return ViewRequest::Nothing;
                }
                PickerOutcome::Chosen(index) => Some(index),
                PickerOutcome::Cancelled => None,
            };
            let _ = open.answer.send(chosen);
            return ViewRequest::Nothing;
        }
        // An empty line chooses the default answer.
        if self.asked.is_some() && key.code == KeyCode::Enter && self.input.is_empty() {
            return self.answer(String::new());
        }
        if let Some(line) = self.take_held_answer(|held| held.is_confirmed_by(key)) {
            return ViewRequest::Line(LineEvent::Line(line));
        }
        // Whatever else is pressed, the letter is the beginning of a text.
        self.held_answer = None;
        if let Some(line) = self.permission_key(key) {
            let question = self.questions.first().filter(|_| key.code != KeyCode::BackTab);
            self.held_answer = question.and_then(|open| HeldAnswer::new(open, key, &line, Instant::now()));
            if self.held_answer.is_none() {
                return ViewRequest::Line(LineEvent::Line(line));
            }
        }
        let takes_back =
            key.code == KeyCode::Up && self.activity == Activity::Turn && !self.queued.is_empty();
        if takes_back && self.input.is_empty() {
            return ViewRequest::Line(LineEvent::TakeBack);
        }
        match self.input.press(key) {
            // Esc ends the turn, and a half typed input stays.
            KeyOutcome::Edited if key.code == KeyCode::Esc && self.activity != Activity::Idle => {
                ViewRequest::Line(LineEvent::Escape)
            }
            KeyOutcome::Edited => {
                let shown = self.input.recalled().filter(|_| matches!(key.code, KeyCode::Up | KeyCode::Down));
                if shown.is_some_and(|shown| self.queued.iter().any(|queued| queued.text == shown)) {
                    self.input.set_message(ALREADY_SENT);
                }
                ViewRequest::Nothing
            }
            KeyOutcome::Entered(text) if self.asked.is_some() => self.answer(text),
            KeyOutcome::Entered(text) => {
                self.echo(&text);
                ViewRequest::Line(LineEvent::Line(text))
            }
            KeyOutcome::Escape => self.press_twice(RepeatedKey::Escape, first_press),
            KeyOutcome::Interrupt => self.press_twice(RepeatedKey::Interrupt, first_press),
            KeyOutcome::End => ViewRequest::Line(LineEvent::End),
            KeyOutcome::Other(key) => self.handle_view_key(key),
        }
    }

    /// Ctrl-C or Esc with nothing typed. At the prompt only the second press leaves or goes back.
    fn press_twice(&mut self, key: RepeatedKey, first_press: FirstPress) -> ViewRequest {
        let is_at_prompt = self.activity == Activity::Idle && self.asked.is_none() && !self.is_leaving;
        self.first_press = first_press;
        let is_second = is_at_prompt && self.first_press.press(key, Instant::now());
        match (key, is_second) {
            (RepeatedKey::Interrupt, false) if is_at_prompt => ViewRequest::Nothing,
            (RepeatedKey::Interrupt, _) => ViewRequest::Line(LineEvent::Interrupt),
            (RepeatedKey::Escape, true) => ViewRequest::Line(LineEvent::GoBack),
            // A turn may run that the view does not know of.
            (RepeatedKey::Escape, false) => ViewRequest::Line(LineEvent::Escape),
        }
    }

    /// The command of a letter that no other key has followed for long enough.
    pub(crate) fn take_due_answer(&mut self, now: Instant) -> Option<LineEvent> {
        self.take_held_answer(|held| held.is_due(now)).map(LineEvent::Line)
    }

    fn take_held_answer(&mut self, is_given: impl Fn(&HeldAnswer) -> bool) -> Option<String> {
        let (typed, questions) = (self.input.expanded(), &self.questions);
        let held = self.held_answer.take_if(|held| is_given(held) || !held.counts(questions, &typed))?;
        held.counts(&self.questions, &typed).then(|| {
            self.input.set("");
            held.into_line()
        })
    }

    /// The command of a key that answers a question or changes the permission mode.
    fn permission_key(&self, key: KeyEvent) -> Option<String> {
        if self.asked.is_some() || self.input.has_completions() {
            return None;
        }
        let question = self.questions.first().filter(|_| self.input.is_empty());
        mode_key(key).or_else(|| question.and_then(|question| answer_key(question, key)))
    }

    fn answer(&mut self, text: String) -> ViewRequest {
        let asked = self.asked.take().unwrap_or_default();
        self.transcript.renderer.push_aside(&format!("{asked}{text}"));
        self.activity = Activity::Turn;
        ViewRequest::Line(LineEvent::Line(text))
    }

    /// Puts an input into the transcript at once, or into the queue if it joins a turn.
    fn echo(&mut self, text: &str) {
        self.settle_mode();
        if UserCommand::parse(text).is_some() {
            return self.transcript.renderer.push_input(text);
        }
        let is_answer = !self.questions.is_empty();
        match parse_line(text) {
            SlashInput::Say(said) if self.activity == Activity::Turn && !is_answer => {
                self.queued.push(QueuedInput { text: said, is_taken: false });
            }
            SlashInput::Say(said) => {
                self.facts.saved = SaveState::NotYet;
                self.transcript.renderer.push_input(&said);
                // Its turn starts now: later inputs join it.
                self.activity = Activity::Turn;
            }
            _ => self.transcript.renderer.push_input(text),
        }
    }

    fn handle_view_key(&mut self, key: KeyEvent) -> ViewRequest {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('o') if with_control => {
                self.details =
                    DetailView::new(self.transcript.details(Instant::now()), self.output_requests.clone());
                if self.details.is_none() {
                    self.transcript.renderer.push_program_note("there is no call and no thought to open yet");
                }
            }
            KeyCode::Char('t') if with_control => {
                let display = self.transcript.toggle_reasoning();
                self.transcript.renderer.push_program_note(match display {
                    ReasoningDisplay::Open => "thoughts are shown from here on; Ctrl-T folds them",
                    ReasoningDisplay::Folded => "thoughts are folded from here on; Ctrl-O opens one",
                });
            }
            KeyCode::Char('g') if with_control => return ViewRequest::Edit,
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
        self.input.refresh_completion();
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
        Frame { above, rows, cursor }
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
            Some(question) => (to_lines(wrap_line(&StyledLine::raw(sanitize(question)), width, "")), "? "),
            None => (vec![], "> "),
        };
        let rows = u16::try_from((room / 2).clamp(1, 10)).unwrap_or(1);
        let shown = self.input.render(prompt, width, rows);
        let hint = match (self.activity, self.input.is_empty()) {
            _ if self.asked.is_some() => "Enter answers, Ctrl-C leaves it open",
            (Activity::Turn, _) if !self.queued.is_empty() => "Esc ends the turn, Up takes + back",
            (Activity::Turn, _) => "Esc ends the turn",
            (Activity::Command, _) => "Esc ends the command",
            (Activity::Following, _) => "Esc stops following",
            (Activity::Idle, true) => "/help",
            (Activity::Idle, false) => "",
        };
        let facts = || self.facts.line(self.pills.len(), hint, width);
        let status = self.first_press.hint(Instant::now()).map_or_else(facts, StyledLine::dim);
        let status = truncate_line(&status, width);
        let (column, row) = shown.cursor;
        let mut lines = if room > MIN_SPACED_ROWS { vec![Line::default()] } else { vec![] };
        lines.extend(question);
        let above = u16::try_from(lines.len()).unwrap_or(0);
        lines.extend(shown.lines);
        match shown.completions.is_empty() {
            true => lines.push(to_line(status)),
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

    /// The todo list, queued inputs, open questions and running tasks.
    fn middle(&self, width: u16, room: usize) -> Vec<Line<'static>> {
        let mut lines = match self.activity {
            Activity::Turn => self.todo.lines(width, room),
            Activity::Idle | Activity::Command | Activity::Following => Vec::new(),
        };
        for queued in self.queued.iter().take(MAX_QUEUED_ROWS) {
            let text = format!("+ {}  (sent; joins the turn at its next step)", truncate(&queued.text, 60));
            lines.push(StyledLine::dim(text));
        }
        if self.queued.len() > MAX_QUEUED_ROWS {
            lines.push(StyledLine::dim(format!("+ {} more", self.queued.len() - MAX_QUEUED_ROWS)));
        }
        lines.extend(self.mode_note.line());
        if let Some(open) = self.questions.first() {
            lines.extend(answer_lines(open, self.questions.len(), width));
        }
        lines.extend(pill_lines(&self.pills));
        if !lines.is_empty() && room > MIN_SPACED_ROWS {
            lines.insert(0, StyledLine::default());
        }
        lines.truncate(room);
        to_rows(&lines, width)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
