//! Sessions that another process runs: what is wanted goes into the inbox, and what comes of it is read from the records.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Error, Redactor, Result, State, Watched, event_of, load};
use longhaul_journal::{Holder, Journal, Page, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, SessionId, SessionRecord, StreamName,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::inbox::somebody_runs_it;
use crate::status::holder;
use crate::underway::{Became, Wish};

/// How often the records are looked at. Whoever holds no lease is not rung.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked whether anybody runs the session.
const LOOK_FOR_HOLDER: Duration = Duration::from_secs(1);
/// Whoever runs a session begins a turn a few hundred milliseconds after the end of a task, or not at all; one whose machine is
/// busy, some seconds after it.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);

/// A session that another process runs.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) key: String,
    pub(crate) id: SessionId,
    /// What is put into its inbox passes through this, as it would here.
    pub(crate) redactor: Redactor,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Input(InputId),
    Order(OrderId),
    /// That the context was made smaller, or could not be.
    Compaction(OrderId),
    /// That the session has come to rest.
    Rest,
}

impl Awaited {
    fn is_compaction(self) -> bool {
        matches!(self, Self::Compaction(_))
    }
}

impl Elsewhere {
    /// The process that runs the session, if it is another one.
    pub(crate) async fn holder(&self) -> Result<Option<Holder>> {
        Ok(holder(&*self.journal, self.id).await?)
    }

    /// Puts what is wanted into the inbox, and tells what happens until that has come to its end.
    pub(crate) async fn see_through(&self, wish: &Wish, tell: &UnboundedSender<Watched>) -> Result<Became> {
        let mut state = load(&*self.journal, &self.key, self.id).await?;
        let mut is_taken = false;
        let awaited = match wish {
            Wish::Say(text) => self.say(text).await?,
            Wish::Resume => Awaited::Order(self.order(OrderKind::Unknown).await?),
            Wish::Retry => Awaited::Order(self.order(OrderKind::Retry).await?),
            Wish::Continue => Awaited::Order(self.order(OrderKind::Continue).await?),
            Wish::Settle => Awaited::Rest,
            Wish::Compact(focus) => {
                Awaited::Compaction(self.order(OrderKind::Compact { focus: focus.clone() }).await?)
            }
        };
        let (mut looked_for_holder, mut quiet_since) = (Instant::now(), Instant::now());
        loop {
            let seen = state.head;
            if let Some(became) = self.look(&mut state, awaited, &mut is_taken, tell).await? {
                return Ok(became);
            }
            if state.head > seen {
                quiet_since = Instant::now();
            }
            if awaited == Awaited::Rest && rests(&state, quiet_since.elapsed()) {
                return Ok(Became::Nothing);
            }
            if looked_for_holder.elapsed() >= LOOK_FOR_HOLDER {
                looked_for_holder = Instant::now();
                if !somebody_runs_it(&*self.journal, self.id).await? {
                    return Ok(Became::Abandoned);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn say(&self, text: &str) -> Result<Awaited> {
        let id = InputId::generate();
        let input = Input { id, text: text.to_owned(), images: vec![], mode: JoinMode::Join };
        let record = self.redactor.record(InboxRecord::Input(input).encode());
        put(&*self.journal, self.id, record).await?;
        Ok(Awaited::Input(id))
    }

    /// Puts an order into the inbox.
    pub(crate) async fn order(&self, kind: OrderKind) -> Result<OrderId> {
        let id = OrderId::generate();
        let record = self.redactor.record(InboxRecord::Order(Order { id, kind }).encode());
        put(&*self.journal, self.id, record).await?;
        Ok(id)
    }

    /// Reads on and tells what happened; says what became of what is awaited, once something has.
    async fn look(
        &self,
        state: &mut State,
        awaited: Awaited,
        is_taken: &mut bool,
        tell: &UnboundedSender<Watched>,
    ) -> Result<Option<Became>> {
        let stream = StreamName::session(self.id);
        for record in self.journal.read(&stream, state.head + 1, Page::default()).await? {
            let event = event_of(state, &self.key, &record);
            let unreadable = |reason| Error::Unreadable { key: self.key.clone(), reason };
            state.apply(&record).map_err(unreadable)?;
            if let Some(event) = event {
                let _ = tell.send(Watched::Event(event));
            }
            match SessionRecord::decode(&record) {
                Ok(SessionRecord::InputTaken(input)) => *is_taken |= awaited == Awaited::Input(input.id),
                Ok(SessionRecord::OrderTaken(taken)) if awaited == Awaited::Order(taken.order.id) => {
                    *is_taken = true;
                    if state.turn.is_none() && state.waiting.is_empty() && state.again.is_none() {
                        return Ok(Some(Became::Nothing));
                    }
                }
                Ok(SessionRecord::OrderTaken(taken)) if awaited == Awaited::Compaction(taken.order.id) => {
                    *is_taken = true;
                    if state.compaction.asked.is_none() {
                        return Ok(Some(Became::Nothing));
                    }
                }
                Ok(SessionRecord::CompactDone(done)) if *is_taken && awaited.is_compaction() => {
                    return Ok(Some(Became::Compacted(done)));
                }
                Ok(SessionRecord::CompactFailed(failed)) if *is_taken && awaited.is_compaction() => {
                    return Ok(Some(Became::NotCompacted(failed.reason)));
                }
                Ok(SessionRecord::TurnEnded(ended)) => {
                    let later = state.waiting.iter().any(|input| awaited == Awaited::Input(input.id));
                    if *is_taken && !later && !awaited.is_compaction() {
                        return Ok(Some(Became::Ended(ended)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Whether nothing more happens in a session by itself; or not before somebody has answered a question. Which ends begin a turn
/// only its holder knows, who may have another config: what has begun none for so long will begin none.
fn rests(state: &State, quiet: Duration) -> bool {
    let is_busy = state.turn.is_some() || state.tasks.running().next().is_some();
    let may_begin = state.tasks.untold().next().is_some() && quiet < BEGINS_WITHIN;
    !(is_busy || may_begin) || !state.questions.is_empty()
}
