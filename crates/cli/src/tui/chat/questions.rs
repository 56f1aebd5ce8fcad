//! Open questions in the chat, and the answers that the user types.

use longhaul_agent::Watched;
use longhaul_protocol::{EventKind, QuestionId};

use super::line_source::LineSource;
use super::{Chat, ChatStep};
use crate::exit;
use crate::output::truncate;
use crate::questions::{OpenQuestion, is_settled, open_questions, yes_or_no};
use crate::short_id::{IdMatch, find};
use crate::tui::ScreenUpdate;

const HOW_TO_ANSWER: &str = "yes or no answers it; /answer TEXT is a no with its reason";

impl Chat<'_> {
    /// Loads the open questions and shows them.
    pub(super) async fn load_questions(&mut self) -> anyhow::Result<()> {
        self.questions = open_questions(&self.session).await?;
        self.show_questions();
        Ok(())
    }

    pub(super) fn show_questions(&mut self) {
        if self.questions.is_empty() {
            return;
        }
        self.questions.iter().for_each(|open| self.printer.aside(&open.shown()));
        self.show_answer_hint();
    }

    /// Tells the user how to answer. The screen shows it as long as a question is open.
    fn show_answer_hint(&mut self) {
        match self.lines {
            LineSource::Screen(_) => self.printer.tell(ScreenUpdate::Questions(self.questions.clone())),
            LineSource::Plain(_) | LineSource::Piped(_) => self.printer.note(HOW_TO_ANSWER),
        }
    }

    /// Shows an event, and keeps track of the open questions.
    pub(super) fn show_event(&mut self, watched: &Watched) {
        let Watched::Event(event) = watched else { return self.printer.watched(watched) };
        if !self.events.is_new(event) {
            return;
        }
        self.printer.watched(watched);
        match &event.kind {
            EventKind::Question { id, text } if self.questions.iter().all(|open| open.id != *id) => {
                self.questions.push(OpenQuestion { id: *id, text: text.clone() });
                self.show_answer_hint();
            }
            EventKind::Answered { id } => self.questions.retain(|open| open.id != *id),
            EventKind::TurnEnded { .. } => self.questions.clear(),
            _ => {}
        }
    }

    /// Answers the oldest open question if the line says yes or no. False if it does not.
    pub(super) async fn try_answer(&mut self, line: &str) -> bool {
        let (Some(words), Some(open)) = (yes_or_no(line), self.questions.first()) else { return false };
        let id = open.id;
        self.send_answer(id, words).await;
        true
    }

    /// `/answer [ID] yes|no|TEXT`.
    pub(super) async fn answer_command(&mut self, arguments: &str) {
        let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let named = find(self.questions.iter().map(|open| open.id), first);
        let (question, words) = match (named, &self.questions[..]) {
            _ if arguments.is_empty() => {
                return self.printer.note("what is the answer? /answer [ID] yes|no|TEXT");
            }
            (IdMatch::One(id), _) if !rest.trim().is_empty() => (id, rest.trim()),
            (_, []) => return self.printer.note("no question is open"),
            (_, [only]) => (only.id, arguments),
            (_, several) => {
                let ids: Vec<String> = several.iter().map(|open| open.id.to_string()).collect();
                return self
                    .printer
                    .note(format!("several questions are open; name one: {}", ids.join(", ")));
            }
        };
        self.send_answer(question, yes_or_no(words).unwrap_or(words)).await;
    }

    async fn send_answer(&mut self, question: QuestionId, words: &str) {
        let answered = self.session.answer(question, words).await;
        if is_settled(&answered) {
            self.questions.retain(|open| open.id != question);
        }
        match answered {
            Ok(()) => self.printer.note(format!("answered: {}", truncate(words, 80))),
            Err(error) => self.printer.note(error),
        }
    }

    /// Ends the chat with its questions open, and says how to answer them.
    pub(super) fn leave_with_open_questions(&mut self) -> ChatStep {
        let key = self.session.key().to_owned();
        for open in &self.questions {
            self.printer.note(format!("to answer: {}  (or no, or why not)", open.command(&key)));
        }
        self.printer.note(format!("then, to go on: {}", self.resume_command()));
        self.exit_code = exit::ASKED;
        ChatStep::Leave
    }
}
