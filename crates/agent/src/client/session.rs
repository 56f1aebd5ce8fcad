//! A session as a program holds it: send, cancel, watch. What it does is done by its worker.

use std::sync::Arc;

use longhaul_journal::{Journal, accept, check_size, record_at, records};
use longhaul_protocol::{
    CompactDone, EventKind, InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Seq, SessionId,
    SessionRecord, StreamName, TurnEnded,
};

use crate::client::cancel::{Cancelled, PATIENCE, cancel_turn};
use crate::client::watch::Watcher;
use crate::replay::load;
use crate::runtime::Inner;
use crate::runtime::slot::{Awaited, Shared};
use crate::session::state::State;
use crate::{Error, Result};

/// One conversation.
#[derive(Clone)]
pub struct Session {
    pub(crate) runtime: Arc<Inner>,
    pub(crate) shared: Arc<Shared>,
}

/// An input that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its place in the inbox.
    pub seq: Seq,
    /// Its id; that of the first one, if its key was used before.
    pub id: InputId,
}

impl Session {
    /// How people find it.
    pub fn key(&self) -> &str {
        &self.shared.key
    }

    /// Its id, if it was ever used.
    pub fn id(&self) -> Option<SessionId> {
        self.shared.id.get().copied()
    }

    /// Somebody is here, and has given a command: the session is not idle. One that was never used is left so.
    pub fn touch(&self) {
        if let Some(id) = self.id() {
            self.runtime.activity.noted(id);
        }
    }

    /// Gives the session back as soon as nothing is under way in it, and returns when it is nobody's here: whoever deletes it needs
    /// it so. Something that is said takes it again.
    pub async fn part(&self) {
        self.shared.part().await;
    }

    /// Sees what happens from now on.
    pub fn watch(&self) -> Watcher {
        self.shared.hub.watch(self.shared.clone(), self.runtime.journal.clone())
    }

    /// Says something and waits for the end of the turn that has seen it.
    pub async fn send(&self, text: impl Into<String>) -> Result<TurnEnded> {
        let input =
            Input { id: InputId::generate(), text: text.into(), images: vec![], mode: JoinMode::Join };
        check_size(&InboxRecord::Input(input.clone()).encode())?;
        self.is_there().await?;
        // Whoever waits for the outcome must be the one who runs the turn.
        self.shared.awake(&self.runtime).await?;
        let outcome = self.shared.wait_for(Awaited::Input(input.id));
        self.put(input, None).await?;
        match outcome.await.unwrap_or(Err(Error::Suspended)) {
            Ok(ended) => ended.ok_or(Error::Suspended),
            Err(Error::RunsElsewhere { key, holder }) => Err(Error::AcceptedElsewhere { key, holder }),
            Err(error) => Err(error),
        }
    }

    /// Puts an input into the inbox. When this returns it is on disk; whoever holds the session, in whatever process, runs it.
    /// The same idempotency key twice is one input.
    pub async fn put(&self, input: Input, key: Option<&str>) -> Result<Accepted> {
        let known = input.id;
        let mut record = self.runtime.redactor.record(InboxRecord::Input(input).encode());
        check_size(&record)?;
        if let Some(key) = key {
            record = record.with_key(key);
        }
        let id = self.shared.named(&self.runtime).await?;
        self.is_there().await?;
        let journal = &*self.runtime.journal;
        let accepted = {
            // Nobody takes it before it was shown as accepted.
            let _accepting = self.shared.accepting.lock().await;
            let seq = accept(journal, id, record).await?;
            let id = match key {
                Some(_) => input_at(journal, id, seq).await?.unwrap_or(known),
                None => known,
            };
            self.shared.show(&self.shared.live(None, EventKind::InputAccepted { input_seq: seq, id }));
            Accepted { seq, id }
        };
        self.runtime.activity.noted(id);
        self.ring(id).await;
        Ok(accepted)
    }

    /// A session that somebody has deleted since it was opened takes nothing any more: nobody would ever find it.
    async fn is_there(&self) -> Result<()> {
        match self.shared.id.get() {
            Some(id) if self.runtime.journal.session_with_id(*id).await?.is_none() => {
                Err(longhaul_journal::Error::NoSuchSession { key: self.shared.key.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Ends a wait before a retry; or, where no turn is open and the last one failed, runs that again without new input. Returns
    /// with the outcome; nothing, if there was nothing to do.
    pub async fn retry(&self) -> Result<Option<TurnEnded>> {
        self.order(OrderKind::Retry).await
    }

    /// Goes on from the text of an answer that was interrupted: by a failure, a crash or the user. Otherwise waits for the turn that is open.
    /// Nothing, if there was neither.
    pub async fn go_on(&self) -> Result<Option<TurnEnded>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        let holder = self.runtime.journal.holder(&StreamName::session(id)).await?;
        if holder.is_some_and(|holder| !holder.is_gone()) {
            return self.order(OrderKind::Continue).await;
        }
        // After a crash the order is on disk before a worker opens the session, which would ask for the answer again.
        let order = Order { id: OrderId::generate(), kind: OrderKind::Continue };
        let outcome = self.shared.wait_for(Awaited::Order(order.id));
        accept(&*self.runtime.journal, id, InboxRecord::Order(order).encode()).await?;
        self.shared.awake(&self.runtime).await?;
        self.ring(id).await;
        outcome.await.unwrap_or(Err(Error::Suspended))
    }

    /// Waits for the end of the turn that is open, or of the one that what waits in the inbox begins; nothing, if there is
    /// neither.
    pub async fn resume(&self) -> Result<Option<TurnEnded>> {
        if !self.is_unfinished().await? {
            return Ok(None);
        }
        let before = self.state().await?;
        match self.order(OrderKind::Unknown).await? {
            Some(ended) => Ok(Some(ended)),
            // It may have ended before anybody saw that somebody waits for it.
            None => {
                self.end_of(
                    before.turn.map_or(before.turns.saturating_add(1), |turn| turn.number),
                    before.head,
                )
                .await
            }
        }
    }

    /// How a turn ended, by the records after this one.
    async fn end_of(&self, turn: u64, after: Seq) -> Result<Option<TurnEnded>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        let mut cursor = records(&*self.runtime.journal, &StreamName::session(id), after + 1);
        while let Some(record) = cursor.next().await? {
            match SessionRecord::decode(&record) {
                Ok(SessionRecord::TurnEnded(ended)) if ended.turn == turn => return Ok(Some(ended)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Makes the context smaller, between two steps of the turn that is open or at once. Nothing, if nothing has happened since it last
    /// was.
    pub async fn compact(&self) -> Result<Option<CompactDone>> {
        self.compact_with(None).await
    }

    /// The same, with what the summary should dwell on.
    pub async fn compact_with(&self, focus: Option<String>) -> Result<Option<CompactDone>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        self.shared.awake(&self.runtime).await?;
        let after = self.runtime.journal.head(&StreamName::session(id)).await?.seq;
        let order = Order { id: OrderId::generate(), kind: OrderKind::Compact { focus } };
        let ended = self.shared.wait_for(Awaited::Compaction(order.id));
        let record = self.runtime.redactor.record(InboxRecord::Order(order.clone()).encode());
        accept(&*self.runtime.journal, id, record).await?;
        self.ring(id).await;
        ended.await.unwrap_or(Err(Error::Suspended))?;
        match compaction_by(&*self.runtime.journal, id, order.id, after).await? {
            Some(Ok(done)) => Ok(Some(done)),
            Some(Err(reason)) => Err(Error::NotCompacted { reason }),
            None => Ok(None),
        }
    }

    /// Whether a turn is open, or something that was accepted has not had its turn yet.
    pub async fn is_unfinished(&self) -> Result<bool> {
        let Some(entry) = self.runtime.journal.session(self.key()).await? else { return Ok(false) };
        let state = self.state().await?;
        Ok(state.work(entry.inbox_head, self.runtime.wake()).is_unfinished())
    }

    /// Puts an order into the inbox, and returns when the turn that it concerns has ended.
    async fn order(&self, kind: OrderKind) -> Result<Option<TurnEnded>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        self.shared.awake(&self.runtime).await?;
        let order = Order { id: OrderId::generate(), kind };
        let outcome = self.shared.wait_for(Awaited::Order(order.id));
        accept(&*self.runtime.journal, id, InboxRecord::Order(order).encode()).await?;
        self.ring(id).await;
        outcome.await.unwrap_or(Err(Error::Suspended))
    }

    /// Ends the running turn, and returns when its end is on record. Nothing, if no turn was running.
    pub async fn cancel(&self) -> Result<Option<TurnEnded>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        match self.shared.awake(&self.runtime).await {
            Ok(()) => {}
            Err(error @ Error::RunsElsewhere { .. }) => {
                return match cancel_turn(&*self.runtime.journal, id, PATIENCE).await? {
                    Cancelled::Ended(ended) => Ok(Some(ended)),
                    Cancelled::NoTurn => Ok(None),
                    Cancelled::NotYet => Err(error),
                };
            }
            Err(error) => return Err(error),
        }
        self.order(OrderKind::Cancel).await
    }

    /// What it is right now, by its records.
    pub async fn state(&self) -> Result<State> {
        match self.known().await? {
            Some(id) => load(&*self.runtime.journal, self.key(), id).await,
            None => Ok(State::default()),
        }
    }

    /// Tells whoever holds the session; if nobody does, it is held here from now on.
    pub(crate) async fn ring(&self, id: SessionId) {
        self.shared.wake(&self.runtime);
        // What is on disk is found without a ring, too.
        let _ = self.runtime.journal.ring(&StreamName::session(id)).await;
    }

    /// The session's id, if it has one.
    pub(crate) async fn known(&self) -> Result<Option<SessionId>> {
        if let Some(id) = self.shared.id.get() {
            return Ok(Some(*id));
        }
        match self.runtime.journal.session(self.key()).await? {
            Some(_) => Ok(Some(self.shared.named(&self.runtime).await?)),
            None => Ok(None),
        }
    }
}

/// What came of a compaction that an order asked for, by the records after this one: how it ended, or why it failed. Nothing, if there
/// is none: it has not come to its end, or there was nothing to do.
pub async fn compaction_by(
    journal: &dyn Journal,
    session: SessionId,
    order: OrderId,
    after: Seq,
) -> Result<Option<std::result::Result<CompactDone, String>>> {
    let mut cursor = records(journal, &StreamName::session(session), after + 1);
    let mut is_taken = false;
    while let Some(record) = cursor.next().await? {
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::OrderTaken(taken)) => is_taken |= taken.order.id == order,
            Ok(SessionRecord::CompactDone(done)) if is_taken => return Ok(Some(Ok(done))),
            Ok(SessionRecord::CompactFailed(failed)) if is_taken => return Ok(Some(Err(failed.reason))),
            _ => {}
        }
    }
    Ok(None)
}

/// The id of the input that stands at a place of an inbox: with a key that was used before, that is not what was just sent.
pub async fn input_at(journal: &dyn Journal, session: SessionId, seq: Seq) -> Result<Option<InputId>> {
    let record = record_at(journal, &StreamName::inbox(session), seq).await?;
    Ok(record.and_then(|record| match InboxRecord::decode(&record) {
        Ok(InboxRecord::Input(input)) => Some(input.id),
        _ => None,
    }))
}
