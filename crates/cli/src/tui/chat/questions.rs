//! The open questions of the session, and the answers that the user types.

use longhaul_agent::Session;
use longhaul_protocol::{Answer, EventKind, QuestionId, QuestionKind};

use super::line_source::LineSource;
use crate::event_printer::EventPrinter;
use crate::questions::{OpenQuestion, is_settled, open_questions};
use crate::short_id::{IdMatch, find};
use crate::tui::ScreenUpdate;

const HOW_TO_ANSWER: &str = "answer yes or no; `always` allows it for this session, `project` for this project; any other text says no, with that reason";
const HOW_TO_REPLY: &str = "type your answer, or the number of a choice";
const HOW_TO_ACCEPT: &str = "answer yes to carry it out, or no; any other text says what to change";

/// The reply to `project`.
const PROJECT_RULE: &str = "always allowed in this project from now on; to be asked again, remove the rule from approvals.toml in the home";

/// What an answer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEffect {
    /// A turn goes on, or begins.
    Turn,
    Nothing,
}

/// The open questions, the oldest first.
#[derive(Default)]
pub(super) struct OpenQuestions(Vec<OpenQuestion>);

impl OpenQuestions {
    pub(super) async fn load(session: &Session) -> anyhow::Result<Self> {
        Ok(Self(open_questions(session).await?))
    }

    /// Whether no call waits for an answer. A plan may be left open.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.iter().any(OpenQuestion::is_awaited)
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
            LineSource::Plain(_) | LineSource::Piped(_) => {
                printer.note(match self.0.first().map(|open| open.kind) {
                    Some(kind) if kind.takes_text() => HOW_TO_REPLY,
                    _ if self.is_empty() => HOW_TO_ACCEPT,
                    _ => HOW_TO_ANSWER,
                });
            }
        }
    }

    /// Keeps track of the questions that an event opens and closes.
    pub(super) fn apply_event(&mut self, kind: &EventKind, printer: &mut EventPrinter, lines: &LineSource) {
        match kind {
            EventKind::Question { id, .. } if self.0.iter().all(|open| open.id != *id) => {
                self.0.extend(OpenQuestion::of_event(kind));
                self.show_answer_hint(printer, lines);
            }
            EventKind::Answered { id, .. } => self.0.retain(|open| open.id != *id),
            EventKind::TurnEnded { .. } => self.0.retain(|open| !open.is_awaited()),
            _ => {}
        }
    }

    /// Answers the oldest question with a line. `None` if no question is open. A piped line answers only if it is one of the answers: text from
    /// a pipe is no person's reason.
    pub(super) async fn try_answer(
        &mut self,
        line: &str,
        session: &Session,
        printer: &mut EventPrinter,
        lines: &LineSource,
    ) -> Option<AnswerEffect> {
        let is_choice = |open: &OpenQuestion| match open.kind {
            kind if kind.takes_text() => open.choices.iter().any(|choice| choice == open.read_answer(line)),
            _ => !matches!(Answer::parse(line), Answer::Text(_)),
        };
        let open = self.0.first().filter(|open| lines.is_interactive() || is_choice(open))?;
        let id = open.id;
        Some(self.send_answer(id, line, session, printer).await)
    }

    /// `/answer [ID] yes|always|project|no|TEXT`.
    pub(super) async fn run_answer_command(
        &mut self,
        arguments: &str,
        session: &Session,
        printer: &mut EventPrinter,
    ) -> AnswerEffect {
        let nothing = |printer: &mut EventPrinter, note: String| {
            printer.note(note);
            AnswerEffect::Nothing
        };
        let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let named = find(self.0.iter().map(|open| open.id), first);
        let (question, answer) = match (named, &self.0[..]) {
            _ if arguments.is_empty() => {
                let usage = "the answer is missing; usage: /answer [ID] yes|always|project|no|TEXT";
                return nothing(printer, usage.to_owned());
            }
            (IdMatch::One(id), _) if !rest.trim().is_empty() => (id, rest.trim()),
            (_, []) => return nothing(printer, "no question is open".to_owned()),
            (_, [only]) => (only.id, arguments),
            (_, several) => {
                let ids: Vec<String> = several.iter().map(|open| open.id.to_string()).collect();
                return nothing(
                    printer,
                    format!("several questions are open; name one of {}", ids.join(", ")),
                );
            }
        };
        self.send_answer(question, answer, session, printer).await
    }

    async fn send_answer(
        &mut self,
        question: QuestionId,
        answer: &str,
        session: &Session,
        printer: &mut EventPrinter,
    ) -> AnswerEffect {
        let asked = self.0.iter().find(|open| open.id == question);
        if let Some(problem) = asked.and_then(|asked| asked.unknown_choice(answer)) {
            printer.note(problem);
            return AnswerEffect::Nothing;
        }
        let answer =
            asked.map_or_else(|| Answer::parse(answer).word(), |asked| asked.read_answer(answer)).to_owned();
        let is_approval = asked.is_none_or(|asked| asked.kind == QuestionKind::Approval);
        let answered = session.answer(question, &answer).await;
        let is_plan = self.0.iter().any(|open| open.id == question && !open.is_awaited());
        if is_settled(&answered) {
            self.0.retain(|open| open.id != question);
        }
        match &answered {
            Ok(()) if is_approval && Answer::parse(&answer) == Answer::Project => printer.note(PROJECT_RULE),
            Ok(()) => {}
            Err(error) => printer.note(error),
        }
        match is_settled(&answered) && !(is_plan && Answer::parse(&answer) == Answer::No) {
            true => AnswerEffect::Turn,
            false => AnswerEffect::Nothing,
        }
    }

    /// Notes the commands that answer the questions after the chat has ended.
    pub(super) fn note_answer_commands(&self, key: &str, printer: &mut EventPrinter) {
        for open in &self.0 {
            printer.note(open.how_to_answer(key));
        }
    }
}
