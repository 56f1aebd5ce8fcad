//! Sessions that another process runs: what is wanted goes into the inbox, and what comes of it is followed.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Error, Followed, Follower, Redactor, Result, State, Watched, load, load_through};
use longhaul_journal::{Error as JournalError, Holder, Journal, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Record, Seq, SessionId, SessionRecord,
    StreamName,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, MissedTickBehavior};

use crate::commands::status::holder;
use crate::session_lookup::somebody_runs_it;
use crate::turn_handle::{Became, Wish};

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
    /// The last record that was shown, if what came after it is wanted, too.
    pub(crate) seen: Option<Seq>,
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
        let state = match self.seen {
            Some(seen) => load_through(&*self.journal, &self.key, self.id, seen).await?,
            None => load(&*self.journal, &self.key, self.id).await?,
        };
        // Before anything is wanted, so that what comes of it is seen from its first word on.
        let follower = Follower::of(self.journal.clone(), &self.key, self.id, state.clone());
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
        let course = Course { state, awaited, is_taken: false, quiet_since: Instant::now() };
        self.follow(follower, course, tell).await
    }

    /// Tells what happens until what is awaited has come to its end, or until nobody is there who would bring it there.
    async fn follow(
        &self,
        mut follower: Follower,
        mut course: Course,
        tell: &UnboundedSender<Watched>,
    ) -> Result<Became> {
        let mut looks = tokio::time::interval(LOOK_FOR_HOLDER);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        // Where the session ends that nobody runs: what is awaited may have come to its end before that.
        let mut abandoned_at = None;
        loop {
            if course.rests() {
                return Ok(Became::Nothing);
            }
            if abandoned_at.is_some_and(|end| course.state.head >= end) {
                return Ok(Became::Abandoned);
            }
            let step = tokio::select! {
                step = follower.step() => step?.ok_or(JournalError::Closed)?,
                _ = looks.tick() => {
                    abandoned_at = match somebody_runs_it(&*self.journal, self.id).await? {
                        true => None,
                        false => Some(self.journal.head(&StreamName::session(self.id)).await?.seq),
                    };
                    continue;
                }
            };
            let (record, event) = match step {
                Followed::Record(record, event) => (Some(record), event),
                Followed::Live(event) => (None, Some(event)),
            };
            if let Some(event) = event {
                let _ = tell.send(Watched::Event(*event));
            }
            if let Some(record) = record
                && let Some(became) = self.fold(&mut course, &record)?
            {
                return Ok(became);
            }
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

    /// What became of what is awaited, if this record says so.
    fn fold(&self, course: &mut Course, record: &Record) -> Result<Option<Became>> {
        let Course { state, awaited, is_taken, quiet_since } = course;
        *quiet_since = Instant::now();
        let unreadable = |reason| Error::Unreadable { key: self.key.clone(), reason };
        state.apply(record).map_err(unreadable)?;
        Ok(match SessionRecord::decode(record) {
            Ok(SessionRecord::InputTaken(input)) => {
                *is_taken |= *awaited == Awaited::Input(input.id);
                None
            }
            Ok(SessionRecord::OrderTaken(taken)) if *awaited == Awaited::Order(taken.order.id) => {
                *is_taken = true;
                let is_nothing = state.turn.is_none() && state.waiting.is_empty() && state.again.is_none();
                is_nothing.then_some(Became::Nothing)
            }
            Ok(SessionRecord::OrderTaken(taken)) if *awaited == Awaited::Compaction(taken.order.id) => {
                *is_taken = true;
                state.compaction.asked.is_none().then_some(Became::Nothing)
            }
            Ok(SessionRecord::CompactDone(done)) if *is_taken && awaited.is_compaction() => {
                Some(Became::Compacted(done))
            }
            Ok(SessionRecord::CompactFailed(failed)) if *is_taken && awaited.is_compaction() => {
                Some(Became::NotCompacted(failed.reason))
            }
            Ok(SessionRecord::TurnEnded(ended)) => {
                let later = state.waiting.iter().any(|input| *awaited == Awaited::Input(input.id));
                (*is_taken && !later && !awaited.is_compaction()).then_some(Became::Ended(ended))
            }
            _ => None,
        })
    }
}

/// How far what is awaited has come.
struct Course {
    state: State,
    awaited: Awaited,
    is_taken: bool,
    /// When the last record came.
    quiet_since: Instant,
}

impl Course {
    /// Whether it was awaited that nothing more happens in the session by itself, and nothing does; or not before somebody has
    /// answered a question. Which ends begin a turn only its holder knows, who may have another config: what has begun none for
    /// so long will begin none.
    fn rests(&self) -> bool {
        let Self { state, quiet_since, .. } = self;
        let is_busy = state.turn.is_some() || state.tasks.running().next().is_some();
        let may_begin = state.tasks.untold().next().is_some() && quiet_since.elapsed() < BEGINS_WITHIN;
        self.awaited == Awaited::Rest && (!(is_busy || may_begin) || !state.questions.is_empty())
    }
}
