//! Questions to the user: which are open, and answering them from any process.

use longhaul_journal::{Append, Error as JournalError, Journal};
use longhaul_protocol::{
    InboxRecord, JoinMode, Order, OrderId, OrderKind, Question, QuestionId, QuestionKind, Record, Sender,
    Seq, SessionId, SessionRecord, StreamName,
};

use super::accepted::{AcceptedOrder, after_of, with_after};
use crate::replay::load;
use crate::session::state::State;
use crate::spend::load_fold;
use crate::{Error, Result};

/// Answers an open question of a session. When this returns, the answer is on disk, and the process that runs the
/// session continues with it.
pub(super) async fn answer_question(
    journal: &dyn Journal,
    key: &str,
    session: SessionId,
    (question, answer): (QuestionId, &str),
    sender: Sender,
) -> Result<AcceptedOrder> {
    let state = load(journal, key, session).await?;
    let open = open_questions(journal, session, &state).await?;
    let settled = |known: &str| {
        let (key, question, known) = (key.to_owned(), question.to_string(), known.to_owned());
        Err(Error::QuestionSettled { key, question, known })
    };
    if !open.iter().any(|open| open.id == question) {
        if let Some(answer) = answer_of(journal, session, question).await? {
            return settled(&format!("already answered ({answer})"));
        }
        if state.question(question).is_some() {
            return settled("it was just answered, or its turn was cancelled");
        }
        let ids: Vec<String> = open.iter().map(|open| open.id.to_string()).collect();
        let known = match ids.is_empty() {
            true => "no question is open".to_owned(),
            false => format!("open: {}", ids.join(", ")),
        };
        return Err(Error::NoSuchQuestion { key: key.to_owned(), question: question.to_string(), known });
    }
    let after = journal.head(&StreamName::session(session)).await?.seq;
    let kind = OrderKind::Answer { question, answer: answer.to_owned(), sender };
    let order = Order { id: OrderId::generate(), kind };
    let id = order.id;
    let inbox = StreamName::inbox(session);
    let Some(seq) = accept_answer(journal, session, question, order, after).await? else {
        return settled("it was just answered");
    };
    // The holder also finds the answer without this wake.
    let _ = journal.wake_holder(&StreamName::session(session)).await;
    if is_cancelled_before(journal, &inbox, state.inbox_through, seq).await? {
        return settled("its turn was cancelled");
    }
    Ok(AcceptedOrder { seq, id, after })
}

/// The idempotency key of the answer to a question.
fn answer_key(question: QuestionId) -> String {
    format!("answer-{question}")
}

/// Appends the order with an answer to an inbox. `after` is the last record of the session. `None` if the question has an answer: two
/// answers to one question have the same key, so the second is refused.
pub(crate) async fn accept_answer(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
    order: Order,
    after: Seq,
) -> Result<Option<Seq>> {
    let order = with_after(InboxRecord::Order(order).encode(), after).with_key(&answer_key(question));
    match journal.append(Append::to(&StreamName::inbox(session)).record(order)).await {
        Ok(records) => Ok(records.first().map(|record| record.seq)),
        Err(JournalError::Duplicate { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The order that gave this answer to this question, if one did.
pub(super) async fn recorded_answer(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
    answer: &str,
) -> Result<Option<AcceptedOrder>> {
    let inbox = StreamName::inbox(session);
    let Some(seq) = journal.find(&inbox, &answer_key(question)).await? else { return Ok(None) };
    let record = longhaul_journal::record_at(journal, &inbox, seq).await?;
    let is_given = |kind: &OrderKind| matches!(kind, OrderKind::Answer { question: about, answer: given, .. } if *about == question && given == answer);
    match record.as_ref().map(InboxRecord::decode) {
        Some(Ok(InboxRecord::Order(order))) if is_given(&order.kind) => {
            let after = record.as_ref().map_or(0, after_of);
            Ok(Some(AcceptedOrder { seq, id: order.id, after }))
        }
        _ => Ok(None),
    }
}

/// Whether the inbox has an order that ends the turn between these two positions.
async fn is_cancelled_before(
    journal: &dyn Journal,
    inbox: &StreamName,
    after: Seq,
    before: Seq,
) -> Result<bool> {
    let mut records = longhaul_journal::records(journal, inbox, after + 1);
    while let Some(record) = records.next().await? {
        if record.seq >= before {
            break;
        }
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

/// The answer to a question, if the session ever asked it and has one.
async fn answer_of(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
) -> Result<Option<String>> {
    let stream = StreamName::session(session);
    let answers = journal.records_of_kind(&stream, "answered").await?;
    Ok(answers.iter().rev().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Answered(answered)) if answered.id == question => Some(answered.answer),
        _ => None,
    }))
}

/// The questions of a session that have no answer. An answer in the inbox counts, because the worker takes it before
/// anything else; and so does one that another session gave about the same soft limits.
pub(crate) async fn open_questions(
    journal: &dyn Journal,
    session: SessionId,
    state: &State,
) -> Result<Vec<Question>> {
    let mut open = state.questions.clone();
    if open.is_empty() {
        return Ok(open);
    }
    let inbox = StreamName::inbox(session);
    let mut records = longhaul_journal::records(journal, &inbox, state.inbox_through + 1);
    while let Some(record) = records.next().await? {
        if ends_the_turn(&record) {
            return Ok(vec![]);
        }
        if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(&record)
            && let OrderKind::Answer { question, .. } = order.kind
        {
            open.retain(|open| open.id != question);
        }
    }
    if open.iter().any(|open| open.kind == QuestionKind::Budget) {
        let ledger = load_fold(journal).await?;
        open.retain(|open| open.kind != QuestionKind::Budget || !ledger.is_soft_decided(&open.reasons));
    }
    Ok(open)
}
