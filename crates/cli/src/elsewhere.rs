//! Sessions that another process runs: what is wanted goes into the inbox, and what comes of it is read from the records.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Error, Redactor, Result, State, Watched, event_of, load};
use longhaul_journal::{Holder, Journal, Page, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, SessionId, SessionRecord, StreamName,
    TurnEnded,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::inbox::somebody_runs_it;
use crate::status::holder;
use crate::underway::Wish;

/// How often the records are looked at. Whoever holds no lease is not rung.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked whether anybody runs the session.
const LOOK_FOR_HOLDER: Duration = Duration::from_secs(1);
/// Whoever runs a session begins a turn a few hundred milliseconds after the end of a task, or not at all.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// A session that another process runs.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) key: String,
    pub(crate) id: SessionId,
    /// What is put into its inbox passes through this, as it would here.
    pub(crate) redactor: Redactor,
}

/// What became of what was wanted.
pub(crate) enum Followed {
    /// The turn ended; nothing, if there was nothing to do.
    Ended(Option<TurnEnded>),
    /// Nobody is there any more who would run it.
    Abandoned,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Input(InputId),
    Order(OrderId),
    /// That the session has come to rest.
    Rest,
}

impl Elsewhere {
    /// The process that runs the session, if it is another one.
    pub(crate) async fn holder(&self) -> Result<Option<Holder>> {
        Ok(holder(&*self.journal, self.id).await?)
    }

    /// Puts what is wanted into the inbox, and tells what happens until the turn that took it has ended.
    pub(crate) async fn see_through(&self, wish: &Wish, tell: &UnboundedSender<Watched>) -> Result<Followed> {
        let mut state = load(&*self.journal, &self.key, self.id).await?;
        let mut is_taken = false;
        let awaited = match wish {
            Wish::Say(text) => self.say(text).await?,
            Wish::Resume => self.order(OrderKind::Unknown).await?,
            Wish::Retry => self.order(OrderKind::Retry).await?,
            Wish::Continue => self.order(OrderKind::Continue).await?,
            Wish::Settle => Awaited::Rest,
        };
        let (mut looked_for_holder, mut quiet_since) = (Instant::now(), Instant::now());
        loop {
            let seen = state.head;
            if let Some(ended) = self.look(&mut state, awaited, &mut is_taken, tell).await? {
                return Ok(Followed::Ended(ended));
            }
            if state.head > seen {
                quiet_since = Instant::now();
            }
            if awaited == Awaited::Rest && rests(&state, quiet_since.elapsed()) {
                return Ok(Followed::Ended(None));
            }
            if looked_for_holder.elapsed() >= LOOK_FOR_HOLDER {
                looked_for_holder = Instant::now();
                if !somebody_runs_it(&*self.journal, self.id).await? {
                    return Ok(Followed::Abandoned);
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

    async fn order(&self, kind: OrderKind) -> Result<Awaited> {
        let id = OrderId::generate();
        put(&*self.journal, self.id, InboxRecord::Order(Order { id, kind }).encode()).await?;
        Ok(Awaited::Order(id))
    }

    /// Reads on and tells what happened; says how the turn ended, if it has.
    async fn look(
        &self,
        state: &mut State,
        awaited: Awaited,
        is_taken: &mut bool,
        tell: &UnboundedSender<Watched>,
    ) -> Result<Option<Option<TurnEnded>>> {
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
                        return Ok(Some(None));
                    }
                }
                Ok(SessionRecord::TurnEnded(ended)) => {
                    let later = state.waiting.iter().any(|input| awaited == Awaited::Input(input.id));
                    if *is_taken && !later {
                        return Ok(Some(Some(ended)));
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
