//! Answering questions, from any process.

use longhaul_journal::{Append, Error as JournalError, Journal, records};
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
    let mut cursor = records(journal, inbox, after + 1).through(before.saturating_sub(1));
    while let Some(record) = cursor.next().await? {
        if ends_the_turn(&record) {
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
    let mut cursor = records(journal, &StreamName::session(session), 1);
    while let Some(record) = cursor.next().await? {
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::Answered(answered)) if answered.id == question => {
                return Ok(Some(answered.answer));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The questions of a session to which no answer was given. One that is in the inbox is one: whoever runs the session next
/// takes it first.
pub async fn unanswered(journal: &dyn Journal, session: SessionId, state: &State) -> Result<Vec<Question>> {
    let mut open = state.questions.clone();
    let mut inbox = records(journal, &StreamName::inbox(session), state.inbox_through + 1);
    while !open.is_empty()
        && let Some(record) = inbox.next().await?
    {
        if ends_the_turn(&record) {
            return Ok(vec![]);
        }
        if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(&record)
            && let OrderKind::Answer { question, .. } = order.kind
        {
            open.retain(|open| open.id != question);
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
