//! Answering questions, from any process.

use longhaul_journal::{Journal, Page, put};
use longhaul_protocol::{
    InboxRecord, Order, OrderId, OrderKind, Question, QuestionId, SessionId, SessionRecord, StreamName,
};

use crate::load::load;
use crate::session::Session;
use crate::state::State;
use crate::{Error, Result};

/// Settles an open question of a session, whoever holds it. When this returns the answer is on disk; whoever runs the
/// session goes on with it.
pub async fn answer_question(
    journal: &dyn Journal,
    key: &str,
    session: SessionId,
    question: QuestionId,
    answer: &str,
) -> Result<()> {
    let state = load(journal, key, session).await?;
    let open = unanswered(journal, session, &state).await?;
    if !open.iter().any(|open| open.id == question) {
        let known = match answer_of(journal, session, question).await? {
            Some(answer) => format!("it was settled ({answer})"),
            None if state.question(question).is_some() => "it was answered just now".to_owned(),
            None if open.is_empty() => "none is open".to_owned(),
            None => {
                let ids: Vec<String> = open.iter().map(|open| open.id.to_string()).collect();
                format!("open: {}", ids.join(", "))
            }
        };
        return Err(Error::NoSuchQuestion { key: key.to_owned(), question: question.to_string(), known });
    }
    let kind = OrderKind::Answer { question, answer: answer.to_owned() };
    let order = InboxRecord::Order(Order { id: OrderId::generate(), kind });
    put(journal, session, order.encode()).await?;
    Ok(())
}

/// What a question was settled with, if it ever was one of this session.
async fn answer_of(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
) -> Result<Option<String>> {
    let mut next = 1;
    loop {
        let page = journal.read(&StreamName::session(session), next, Page::default()).await?;
        let Some(last) = page.last() else { return Ok(None) };
        next = last.seq + 1;
        let answer = page.iter().find_map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::Answered(answered)) if answered.id == question => Some(answered.answer),
            _ => None,
        });
        if answer.is_some() {
            return Ok(answer);
        }
    }
}

/// The questions of a session to which no answer was given. One that is in the inbox is one: whoever runs the session next
/// takes it first.
pub async fn unanswered(journal: &dyn Journal, session: SessionId, state: &State) -> Result<Vec<Question>> {
    let mut open = state.questions.clone();
    let mut next = state.inbox_through + 1;
    while !open.is_empty() {
        let page = journal.read(&StreamName::inbox(session), next, Page::default()).await?;
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

impl Session {
    /// Settles an open question. `yes` lets what was asked about happen; `no` doesn't; other words are a no that the model is told.
    pub async fn answer(&self, question: QuestionId, answer: &str) -> Result<()> {
        let missing = || Error::NoSuchQuestion {
            key: self.key().to_owned(),
            question: question.to_string(),
            known: "the session was never used".to_owned(),
        };
        let id = self.known().await?.ok_or_else(missing)?;
        let answer = self.runtime.redactor.redact(answer);
        answer_question(&*self.runtime.journal, self.key(), id, question, &answer).await?;
        self.ring(id).await;
        Ok(())
    }
}
