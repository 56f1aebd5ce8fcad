//! The inbox: accepted inputs, orders and answers that the session has not taken yet.

use longhaul_journal::{Error as JournalError, Journal, Page, records};
use longhaul_protocol::{
    Answered, InboxRecord, InputTaken, Order, OrderId, OrderKind, OrderTaken, Question, QuestionId, Record,
    Seq, SessionId, SessionRecord, StreamName, Warning,
};

use crate::worker::WorkerResult;

/// The inbox of one session, and how far the worker has read it.
pub(super) struct Inbox {
    stream: StreamName,
    read_through: Seq,
}

/// The next records of the inbox, as the session records that take them.
pub(super) struct InboxBatch {
    pub(super) facts: Vec<SessionRecord>,
    pub(super) through: Seq,
}

impl Inbox {
    pub(super) fn new(session: SessionId, read_through: Seq) -> Self {
        Self { stream: StreamName::inbox(session), read_through }
    }

    /// Reads the next page. It is empty at the end, or if the journal can't be read now. The caller reads again soon.
    ///
    /// `open` are the session's open questions. The first answer to a question settles it.
    pub(super) async fn next_batch(
        &self,
        journal: &dyn Journal,
        open: &[Question],
    ) -> WorkerResult<InboxBatch> {
        let from = self.read_through + 1;
        match journal.read(&self.stream, from, Page::default()).await {
            Ok(records) => {
                let through = records.last().map_or(self.read_through, |record| record.seq);
                let facts = settle_questions(records.iter().map(take_record), open);
                Ok(InboxBatch { facts, through })
            }
            Err(error @ JournalError::Damaged { .. }) => {
                let warning = Warning::new("inbox_damaged", format!("{error}; skipping it"));
                let facts = vec![take_unreadable(from), SessionRecord::Warning(warning)];
                Ok(InboxBatch { facts, through: from })
            }
            Err(error) if error.may_pass() => Ok(InboxBatch { facts: vec![], through: self.read_through }),
            Err(error) => Err(error.into()),
        }
    }

    /// Records that a batch is committed.
    pub(super) fn mark_taken(&mut self, through: Seq) {
        self.read_through = through;
    }

    /// The records that wait in the inbox, without taking them. Skips unreadable ones.
    pub(super) async fn peek(&self, journal: &dyn Journal) -> Vec<InboxRecord> {
        let mut waiting = Vec::new();
        let mut cursor = records(journal, &self.stream, self.read_through + 1);
        while let Ok(Some(record)) = cursor.next().await {
            waiting.extend(InboxRecord::decode(&record).ok());
        }
        waiting
    }
}

/// Adds an `answered` record after each order that answers an open question.
fn settle_questions(facts: impl Iterator<Item = SessionRecord>, open: &[Question]) -> Vec<SessionRecord> {
    let mut open: Vec<QuestionId> = open.iter().map(|question| question.id).collect();
    let mut settled = Vec::new();
    for fact in facts {
        let answer = match &fact {
            SessionRecord::OrderTaken(OrderTaken { order, .. }) => match &order.kind {
                OrderKind::Answer { question, answer } => open
                    .extract_if(.., |open| open == question)
                    .next()
                    .map(|id| SessionRecord::Answered(Answered { id, answer: answer.clone() })),
                _ => None,
            },
            _ => None,
        };
        settled.push(fact);
        settled.extend(answer);
    }
    settled
}

/// The session record that takes a record of the inbox.
fn take_record(record: &Record) -> SessionRecord {
    let inbox_through = record.seq;
    match InboxRecord::decode(record) {
        Ok(InboxRecord::Input(input)) => SessionRecord::InputTaken(InputTaken {
            id: input.id,
            inbox_through,
            text: input.text,
            images: input.images,
            mode: input.mode,
        }),
        Ok(InboxRecord::Order(order)) => SessionRecord::OrderTaken(OrderTaken { inbox_through, order }),
        Ok(InboxRecord::Unknown { .. }) | Err(_) => take_unreadable(inbox_through),
    }
}

/// Takes a record that was erased, is damaged, or comes from a newer version, so that it does not block the records
/// after it.
fn take_unreadable(inbox_through: Seq) -> SessionRecord {
    let order = Order { id: OrderId::generate(), kind: OrderKind::Unknown };
    SessionRecord::OrderTaken(OrderTaken { inbox_through, order })
}
