//! Questions that are open: which there are, and how each can be answered.

use std::io::{BufRead, IsTerminal, Read, Write};

use longhaul_agent::{Error, Result, Session};
use longhaul_protocol::{Question, QuestionId};

use crate::output::safe;
use crate::suggested_command::quoted;

/// More of a line is no answer to a yes-or-no question.
const MAX_ANSWER_BYTES: u64 = 1 << 10;

/// A question that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenQuestion {
    pub(crate) id: QuestionId,
    pub(crate) text: String,
}

impl From<&Question> for OpenQuestion {
    fn from(question: &Question) -> Self {
        Self { id: question.id, text: question.text.clone() }
    }
}

impl OpenQuestion {
    /// The question, for people.
    pub(crate) fn shown(&self) -> String {
        question(&self.text)
    }

    /// How it is answered from anywhere.
    pub(crate) fn command(&self, key: &str) -> String {
        format!("longhaul answer -s {} {} yes", quoted(&safe(key)), self.id)
    }
}

/// A question, for people: all of it, because whoever approves something must see it to its end. The agent bounds it.
pub(crate) fn question(text: &str) -> String {
    format!("question: {}", safe(text.trim_end()).replace('\n', "\n  "))
}

/// The questions of a session that wait for an answer.
pub(crate) async fn open_questions(session: &Session) -> Result<Vec<OpenQuestion>> {
    Ok(session.open_questions().await?.iter().map(OpenQuestion::from).collect())
}

/// Yes or no, in the words of somebody who was asked just that.
pub(crate) fn yes_or_no(line: &str) -> Option<&'static str> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some("yes"),
        "n" | "no" => Some("no"),
        _ => None,
    }
}

/// Asks whoever is at the terminal; anything but a yes is a no.
pub(crate) fn confirm(question: &str) -> std::io::Result<bool> {
    let mut errors = std::io::stderr().lock();
    write!(errors, "{question} [y/N] ")?;
    errors.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut line)?;
    Ok(yes_or_no(&line) == Some("yes"))
}

/// Whether a question is open no more, now that this came of an answer. One that could not be saved is asked again: whoever
/// typed it must not learn later that what they said next was taken for something else.
pub(crate) fn is_settled(answered: &Result<()>) -> bool {
    matches!(answered, Ok(()) | Err(Error::NoSuchQuestion { .. }))
}

/// Whether somebody is at the terminal who can be asked.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
