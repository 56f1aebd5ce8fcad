//! What a worker takes from its inbox, and how a session and its epochs begin.

use longhaul_journal::{Blob, Error as JournalError, Page};
use longhaul_protocol::{
    Answered, EpochReason, EpochStarted, InboxRecord, InputTaken, Order, OrderId, OrderKind, OrderTaken,
    QuestionId, Record, Seq, SessionCreated, SessionRecord, StreamName, SystemMessage, TextContent, Warning,
};

use crate::worker::{Step, Worker};

impl Worker {
    /// Takes everything that is in the inbox, in its order, in one append.
    pub(crate) async fn take_inbox(&mut self) -> Step<()> {
        self.shared.looking();
        loop {
            let (mut facts, read) = self.next_facts().await?;
            if facts.is_empty() {
                return Ok(());
            }
            let mut blobs = vec![];
            if self.state.epoch.is_none() {
                let (mut begin, content) = self.new_epoch(EpochReason::Created);
                begin.extend(self.remembered().await.map(as_message));
                facts.splice(..0, begin);
                blobs = content;
            }
            self.commit(facts, blobs).await?;
            self.inbox_read = read;
        }
    }

    /// What is next in the inbox, as it is recorded when it is taken, and how far that is.
    async fn next_facts(&self) -> Step<(Vec<SessionRecord>, Seq)> {
        let inbox = StreamName::inbox(self.id);
        let from = self.inbox_read + 1;
        // Whoever puts something there shows that it is accepted before it can be taken.
        let _accepting = self.shared.accepting.lock().await;
        match self.runtime.journal.read(&inbox, from, Page::default()).await {
            Ok(records) => {
                let read = records.last().map_or(self.inbox_read, |record| record.seq);
                Ok((self.with_answers(records.iter().map(taken)), read))
            }
            Err(error @ JournalError::Damaged { .. }) => {
                let (code, text) = ("inbox_damaged".to_owned(), format!("{error}; it is passed over"));
                let warning = SessionRecord::Warning(Warning::new(code, text));
                Ok((vec![passed_over(from), warning], from))
            }
            // It is looked at again soon.
            Err(error) if error.may_pass() => Ok((vec![], self.inbox_read)),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, with the answers that settle an open question; the first one counts.
    fn with_answers(&self, taken: impl Iterator<Item = SessionRecord>) -> Vec<SessionRecord> {
        let mut open: Vec<QuestionId> = self.state.questions.iter().map(|question| question.id).collect();
        let mut facts = Vec::new();
        for fact in taken {
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
            facts.push(fact);
            facts.extend(answer);
        }
        facts
    }

    pub(crate) async fn start_epoch(&mut self) -> Step<()> {
        let (facts, blobs) = self.new_epoch(EpochReason::Changed);
        self.commit(facts, blobs).await
    }

    /// The facts that begin an epoch that goes on with the context there is, and the session too if it has not begun.
    pub(crate) fn new_epoch(&self, reason: EpochReason) -> (Vec<SessionRecord>, Vec<Blob>) {
        let mut facts = Vec::new();
        if self.state.head == 0 {
            facts.push(SessionRecord::SessionCreated(SessionCreated {
                id: self.id,
                key: self.shared.key.clone(),
                work_dir: self.equipment.work_dir.to_str().map(str::to_owned),
                origin: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }));
        }
        let (system, tools) = (&self.equipment.system, &self.equipment.tools.content);
        let before = self.state.epoch.as_ref();
        let number = before.map_or(1, |epoch| epoch.number.saturating_add(1));
        let reason = if before.is_none() { EpochReason::Created } else { reason };
        // What was recorded before the first epoch belongs to it.
        let folds_from = (self.state.head > 0).then(|| before.map_or(1, |epoch| epoch.folds_from));
        facts.push(SessionRecord::EpochStarted(EpochStarted {
            turns: self.state.turn_count,
            inbox_through: self.state.inbox_through,
            pins: self.state.pins.clone(),
            todo: self.state.todo.clone(),
            folds_from,
            tasks: self.state.tasks.carry_running(),
            ended: self.state.tasks.carry_ended(),
            questions: self.state.questions.clone(),
            previous: before.map(|epoch| epoch.began),
            ..EpochStarted::new(number, reason, system.reference.clone(), tools.reference.clone())
        }));
        (facts, vec![system.blob(), tools.blob()])
    }
}

fn as_message(text: String) -> SessionRecord {
    SessionRecord::SystemMessage(SystemMessage { content: vec![TextContent { text }] })
}

/// What taking a record of the inbox is recorded as.
fn taken(record: &Record) -> SessionRecord {
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
        Ok(InboxRecord::Unknown { .. }) | Err(_) => passed_over(inbox_through),
    }
}

/// Something in the inbox that can't be read: erased, or of a newer version. What comes after it is not held up.
fn passed_over(inbox_through: Seq) -> SessionRecord {
    let order = Order { id: OrderId::generate(), kind: OrderKind::Unknown };
    SessionRecord::OrderTaken(OrderTaken { inbox_through, order })
}
