//! Questions that are open: which there are, and how each can be answered.

use std::io::IsTerminal;

use longhaul_agent::{Result, State};
use longhaul_journal::{Journal, Page};
use longhaul_protocol::{InboxRecord, OrderKind, Question, QuestionId, SessionId, StreamName};

use crate::output::{safe, shortened};

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
        format!("question: {}", shortened(&self.text, 400))
    }

    /// How it is answered from anywhere.
    pub(crate) fn command(&self, key: &str) -> String {
        format!("longhaul answer -s {} {} yes", safe(key), self.id)
    }
}

/// The questions of a session to which no answer was given. One that is in the inbox is one: whoever runs the session next
/// takes it first.
pub(crate) async fn unanswered(
    journal: &dyn Journal,
    id: SessionId,
    state: &State,
) -> Result<Vec<OpenQuestion>> {
    let mut open: Vec<OpenQuestion> = state.questions.iter().map(OpenQuestion::from).collect();
    let mut next = state.inbox_through + 1;
    while !open.is_empty() {
        let page = journal.read(&StreamName::inbox(id), next, Page::default()).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        for record in &page {
            if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(record)
                && let OrderKind::Answer { question, .. } = order.kind
            {
                open.retain(|open| open.id != question);
            }
        }
    }
    Ok(open)
}

/// Yes or no, in the words of somebody who was asked just that.
pub(crate) fn yes_or_no(line: &str) -> Option<&'static str> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some("yes"),
        "n" | "no" => Some("no"),
        _ => None,
    }
}

/// Whether somebody is at the terminal who can be asked.
pub(crate) fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
