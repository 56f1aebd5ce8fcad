//! Open questions of a session, and asking the user at the terminal.

use std::io::{BufRead, IsTerminal, Read, Write};

use longhaul_agent::{Error, Result, Session};
use longhaul_protocol::{EventKind, Question, QuestionId, QuestionKind};
use longhaul_transcript::{question_text, question_with_choices, sanitize as sanitize_lines};

use crate::output::sanitize;
use crate::suggested_command::quoted;

/// The longest line that is read as an answer to `[y/N]`.
const MAX_ANSWER_BYTES: u64 = 1 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenQuestion {
    pub(crate) id: QuestionId,
    pub(crate) kind: QuestionKind,
    pub(crate) text: String,
    /// Answers with a meaning of their own.
    pub(crate) choices: Vec<String>,
    pub(crate) diff: Option<String>,
}

impl From<&Question> for OpenQuestion {
    fn from(question: &Question) -> Self {
        let Question { id, kind, text, choices, diff, .. } = question;
        Self { id: *id, kind: *kind, text: text.clone(), choices: choices.clone(), diff: diff.clone() }
    }
}

impl OpenQuestion {
    /// The question that an event asks.
    pub(crate) fn of_event(event: &EventKind) -> Option<Self> {
        let EventKind::Question { id, kind, text, choices, diff, .. } = event else { return None };
        let (kind, diff) = (kind.unwrap_or_default(), diff.clone());
        Some(Self { id: *id, kind, text: text.clone(), choices: choices.clone(), diff })
    }

    /// Whether a turn waits for the answer. A plan may be left open.
    pub(crate) fn is_awaited(&self) -> bool {
        self.kind != QuestionKind::Plan
    }

    pub(crate) fn shown(&self) -> String {
        let diff = self.diff.as_deref().map(|diff| format!("\n{}", sanitize_lines(diff.trim_end())));
        question_text(&question_with_choices(self.kind, &self.text, &self.choices))
            + &diff.unwrap_or_default()
    }

    /// What a person typed, as the answer to record.
    pub(crate) fn read_answer<'a>(&'a self, typed: &'a str) -> &'a str {
        self.kind.read_answer(&self.choices, typed)
    }

    /// What to tell a person who typed the number of a choice that there is not.
    pub(crate) fn unknown_choice(&self, typed: &str) -> Option<String> {
        let most = self.choices.len();
        self.kind
            .is_unknown_choice(&self.choices, typed)
            .then(|| format!("there is no choice {}; answer 1 to {most}, or in your own words", typed.trim()))
    }

    /// How to answer it from anywhere.
    pub(crate) fn how_to_answer(&self, key: &str) -> String {
        how_to_answer(key, self.id, self.kind)
    }
}

/// The command that answers a question from anywhere.
pub(crate) fn answer_command(key: &str, id: QuestionId, kind: QuestionKind) -> String {
    let answer = if kind.takes_text() { "TEXT" } else { "yes" };
    format!("longhaul answer -s {} {id} {answer}", quoted(&sanitize(key)))
}

/// That command, with what else may be answered.
pub(crate) fn how_to_answer(key: &str, id: QuestionId, kind: QuestionKind) -> String {
    let others = match kind {
        QuestionKind::Ask => "(TEXT: your answer, or the number of a choice)",
        QuestionKind::Elicitation => "(TEXT: what the server asks for, or no)",
        QuestionKind::Approval | QuestionKind::Plan | QuestionKind::Budget => "(or no, or a reason)",
    };
    format!("to answer: {} {others}", answer_command(key, id, kind))
}

/// The questions of a session that wait for an answer.
pub(crate) async fn open_questions(session: &Session) -> Result<Vec<OpenQuestion>> {
    Ok(session.open_questions().await?.iter().map(OpenQuestion::from).collect())
}

/// `yes` or `no`, if the line says so.
pub(crate) fn yes_or_no(line: &str) -> Option<&'static str> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some("yes"),
        "n" | "no" => Some("no"),
        _ => None,
    }
}

/// Asks the user at the terminal. Anything but a yes is a no.
pub(crate) fn confirm(question: &str) -> std::io::Result<bool> {
    let mut errors = std::io::stderr().lock();
    write!(errors, "{question} [y/N] ")?;
    errors.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut line)?;
    Ok(yes_or_no(&line) == Some("yes"))
}

/// Whether a question is settled after an attempt to answer it. It stays open where the answer could not be saved.
pub(crate) fn is_settled(answered: &Result<()>) -> bool {
    matches!(answered, Ok(()) | Err(Error::NoSuchQuestion { .. } | Error::QuestionSettled { .. }))
}

/// Whether there is a terminal to ask the user on.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
