//! Answering questions, from any process.

use longhaul_journal::{Append, Error as JournalError, Journal, Page};
use longhaul_protocol::{
    InboxRecord, JoinMode, Order, OrderId, OrderKind, Question, QuestionId, Record, Seq, SessionId,
    SessionRecord, StreamName,
};

use crate::client::session::Session;
use crate::replay::load;
use crate::session::state::State;
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
            None if state.question(question).is_some() => {
                "it was answered just now, or its turn was cancelled".to_owned()
            }
            None if open.is_empty() => "none is open".to_owned(),
            None => {
                let ids: Vec<String> = open.iter().map(|open| open.id.to_string()).collect();
                format!("open: {}", ids.join(", "))
            }
        };
        return Err(Error::NoSuchQuestion { key: key.to_owned(), question: question.to_string(), known });
    }
    let too_late = |known: &str| {
        let (key, question, known) = (key.to_owned(), question.to_string(), known.to_owned());
        Err(Error::NoSuchQuestion { key, question, known })
    };
    let kind = OrderKind::Answer { question, answer: answer.to_owned() };
    let order = InboxRecord::Order(Order { id: OrderId::generate(), kind });
    // Of two who answer at once, one is told that the other was first.
    let order = order.encode().with_key(&format!("answer-{question}"));
    let inbox = StreamName::inbox(session);
    let seq = match journal.append(Append::to(&inbox).record(order)).await {
        Ok(records) => records[0].seq,
        Err(JournalError::Duplicate { .. }) => return too_late("it was answered just now"),
        Err(error) => return Err(error.into()),
    };
    // Whoever runs the session is told; if nobody can be, it is found without.
    let _ = journal.ring(&StreamName::session(session)).await;
    if is_cancelled_before(journal, &inbox, state.inbox_through, seq).await? {
        return too_late("its turn was cancelled before that");
    }
    Ok(())
}

/// Whether somebody wanted the turn to end before this place of the inbox, and after that one.
async fn is_cancelled_before(
    journal: &dyn Journal,
    inbox: &StreamName,
    after: Seq,
    before: Seq,
) -> Result<bool> {
    let mut next = after + 1;
    while next < before {
        let page = journal.read(inbox, next, Page::default()).await?;
        let Some(last) = page.last() else { return Ok(false) };
        next = last.seq + 1;
        if page.iter().any(|record| record.seq < before && ends_the_turn(record)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn ends_the_turn(record: &Record) -> bool {
    match InboxRecord::decode(record) {
        Ok(InboxRecord::Order(order)) => order.kind == OrderKind::Cancel,
        Ok(InboxRecord::Input(input)) => input.mode == JoinMode::Interrupt,
        _ => false,
    }
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
            if ends_the_turn(record) {
                return Ok(vec![]);
            }
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
