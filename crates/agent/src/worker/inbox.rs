//! The inbox: accepted inputs, orders and answers that the session has not taken yet.
//!
//! A user may take an input back (`OrderKind::Withdraw`) as long as no turn has it. The session's stream has one writer, so the order and
//! the step that shows the input to the model have an order of their own, which decides:
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `input` | the input | it is taken, and joins or begins a turn |
//! | the order, in the inbox | the input, then the order | both are taken before anything is decided: no turn gets the input |
//! | `order_taken`, before a step has the input | that it was taken back | nothing waits for it |
//! | `step_started`, before `order_taken` | that the turn has the input | the order changes nothing |
//!
//! An input is in a turn or is taken back; never both, never neither. An input that a cancel has ended has its turn already, and a
//! client of the API waits for the answer to its own: these can't be taken back.

use longhaul_journal::{Error as JournalError, Journal, Page, records};
use longhaul_protocol::{
    Answer, Answered, AnsweredBy, InboxRecord, Input, InputId, InputTaken, JoinMode, ModeChanged, Order,
    OrderId, OrderKind, OrderTaken, PermissionMode, Question, QuestionKind, Record, Sender, Seq, SessionId,
    SessionRecord, StreamName, Warning,
};

use crate::session::permission::mode_after_plan;
use crate::session::state::State;
use crate::worker::WorkerResult;

/// The input that an accepted plan begins its turn with.
const CARRY_OUT_PLAN: &str = "I accept the plan. Carry it out.";

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
    /// `mode` is the present permission mode.
    pub(super) async fn next_batch(
        &self,
        journal: &dyn Journal,
        state: &State,
        mode: PermissionMode,
    ) -> WorkerResult<InboxBatch> {
        let from = self.read_through + 1;
        match journal.read(&self.stream, from, Page::default()).await {
            Ok(records) => {
                let through = records.last().map_or(self.read_through, |record| record.seq);
                let mut effects = OrderEffects::new(state, mode);
                let facts = records.iter().map(take_record).flat_map(|fact| {
                    let after = match &fact {
                        SessionRecord::OrderTaken(taken) => effects.records_after(taken),
                        _ => vec![],
                    };
                    std::iter::once(fact).chain(after)
                });
                let facts = facts.collect();
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

/// What the orders of a batch change, as the batch goes on.
struct OrderEffects {
    /// Questions without an answer. The first answer to one settles it.
    open: Vec<Question>,
    mode: PermissionMode,
    mode_after_plan: PermissionMode,
}

impl OrderEffects {
    fn new(state: &State, mode: PermissionMode) -> Self {
        Self { open: state.questions.clone(), mode, mode_after_plan: mode_after_plan(state) }
    }

    /// The records that follow an order, in the same append.
    fn records_after(&mut self, taken: &OrderTaken) -> Vec<SessionRecord> {
        match &taken.order.kind {
            OrderKind::Mode { mode } => self.change_mode(*mode).into_iter().collect(),
            OrderKind::Answer { question, answer, sender } => {
                let settled = self.open.extract_if(.., |open| open.id == *question).next();
                settled.map_or_else(Vec::new, |settled| {
                    self.settle(&settled, answer, sender, taken.inbox_through)
                })
            }
            _ => vec![],
        }
    }

    fn change_mode(&mut self, to: PermissionMode) -> Option<SessionRecord> {
        let from = std::mem::replace(&mut self.mode, to);
        if to == PermissionMode::Plan && from != to {
            self.mode_after_plan = from;
        }
        (from != to).then_some(SessionRecord::ModeChanged(ModeChanged { from, to }))
    }

    fn settle(
        &mut self,
        question: &Question,
        answer: &str,
        sender: &Sender,
        inbox_through: Seq,
    ) -> Vec<SessionRecord> {
        let by = if sender.is_person() { AnsweredBy::User } else { AnsweredBy::Agent };
        let (id, by) = (question.id, Some(by));
        let mut records = vec![SessionRecord::Answered(Answered { id, answer: answer.to_owned(), by })];
        if question.kind != QuestionKind::Plan {
            return records;
        }
        // A plan's question belongs to no turn, so the answer begins one.
        let said = match Answer::parse(answer) {
            Answer::No => return records,
            Answer::Text(text) => text,
            Answer::Yes | Answer::Always | Answer::Project => {
                if self.mode == PermissionMode::Plan {
                    records.extend(self.change_mode(self.mode_after_plan));
                }
                CARRY_OUT_PLAN
            }
        };
        records.push(SessionRecord::InputTaken(InputTaken::of(
            Input { sender: sender.clone(), ..Input::new(InputId::generate(), said, JoinMode::Join) },
            inbox_through,
        )));
        records
    }
}

/// The session record that takes a record of the inbox.
fn take_record(record: &Record) -> SessionRecord {
    let inbox_through = record.seq;
    match InboxRecord::decode(record) {
        Ok(InboxRecord::Input(input)) => SessionRecord::InputTaken(InputTaken::of(input, inbox_through)),
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
