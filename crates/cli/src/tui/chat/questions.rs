//! The open questions of the session, and the answers that the user types.

use longhaul_agent::Session;
use longhaul_protocol::{EventKind, QuestionId};

use super::line_source::LineSource;
use crate::event_printer::EventPrinter;
use crate::output::truncate;
use crate::questions::{OpenQuestion, is_settled, open_questions, yes_or_no};
use crate::short_id::{IdMatch, find};
use crate::tui::ScreenUpdate;

const HOW_TO_ANSWER: &str = "answer yes or no; /answer TEXT says no, with a reason";

/// The open questions, the oldest first.
#[derive(Default)]
pub(super) struct OpenQuestions(Vec<OpenQuestion>);

impl OpenQuestions {
    pub(super) async fn load(session: &Session) -> anyhow::Result<Self> {
        Ok(Self(open_questions(session).await?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Shows the questions, and how to answer them.
    pub(super) fn show(&self, printer: &mut EventPrinter, lines: &LineSource) {
        if self.0.is_empty() {
            return;
        }
        self.0.iter().for_each(|open| printer.aside(&open.shown()));
        self.show_answer_hint(printer, lines);
    }

    /// Tells the user how to answer. The screen shows it as long as a question is open.
    fn show_answer_hint(&self, printer: &mut EventPrinter, lines: &LineSource) {
        match lines {
            LineSource::Screen(_) => printer.tell(ScreenUpdate::Questions(self.0.clone())),
            LineSource::Plain(_) | LineSource::Piped(_) => printer.note(HOW_TO_ANSWER),
        }
    }

    /// Keeps track of the questions that an event opens and closes.
    pub(super) fn apply_event(&mut self, kind: &EventKind, printer: &mut EventPrinter, lines: &LineSource) {
        match kind {
            EventKind::Question { id, text } if self.0.iter().all(|open| open.id != *id) => {
                self.0.push(OpenQuestion { id: *id, text: text.clone() });
                self.show_answer_hint(printer, lines);
            }
            EventKind::Answered { id } => self.0.retain(|open| open.id != *id),
            EventKind::TurnEnded { .. } => self.0.clear(),
            _ => {}
        }
    }

    /// Answers the oldest question if the line says yes or no. False if it does not.
    pub(super) async fn try_answer(
        &mut self,
        line: &str,
        session: &Session,
        printer: &mut EventPrinter,
    ) -> bool {
        let (Some(answer), Some(open)) = (yes_or_no(line), self.0.first()) else { return false };
        let id = open.id;
        self.send_answer(id, answer, session, printer).await;
        true
    }

    /// `/answer [ID] yes|no|TEXT`.
    pub(super) async fn run_answer_command(
        &mut self,
        arguments: &str,
        session: &Session,
        printer: &mut EventPrinter,
    ) {
        let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let named = find(self.0.iter().map(|open| open.id), first);
        let (question, answer) = match (named, &self.0[..]) {
            _ if arguments.is_empty() => {
                return printer.note("the answer is missing; usage: /answer [ID] yes|no|TEXT");
            }
            (IdMatch::One(id), _) if !rest.trim().is_empty() => (id, rest.trim()),
            (_, []) => return printer.note("no question is open"),
            (_, [only]) => (only.id, arguments),
            (_, several) => {
                let ids: Vec<String> = several.iter().map(|open| open.id.to_string()).collect();
                return printer.note(format!("several questions are open; name one of {}", ids.join(", ")));
            }
        };
        self.send_answer(question, yes_or_no(answer).unwrap_or(answer), session, printer).await;
    }

    async fn send_answer(
        &mut self,
        question: QuestionId,
        answer: &str,
        session: &Session,
        printer: &mut EventPrinter,
    ) {
        let answered = session.answer(question, answer).await;
        if is_settled(&answered) {
            self.0.retain(|open| open.id != question);
        }
        match answered {
            Ok(()) => printer.note(format!("answered: {}", truncate(answer, 80))),
            Err(error) => printer.note(error),
        }
    }

    /// Notes the commands that answer the questions after the chat has ended.
    pub(super) fn note_answer_commands(&self, key: &str, printer: &mut EventPrinter) {
        for open in &self.0 {
            printer.note(format!("to answer: {} (or no, or a reason)", open.command(key)));
        }
    }
}
