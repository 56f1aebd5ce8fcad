//! A session that another process runs: requests go into its inbox, and its records show the outcome.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Error as JournalError, Journal, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Record, Seq, SessionId, SessionRecord,
    StreamName,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, MissedTickBehavior};

use super::follow::{Followed, Follower};
use super::request::{Request, RequestOutcome};
use super::session::Settled;
use super::watch::Watched;
use crate::Redactor;
use crate::replay::{load, load_through};
use crate::session::state::State;
use crate::{Error, Result};

/// How often the client checks that a process still runs the session.
const HOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A runtime begins a turn within a few hundred milliseconds after the end of a task, or not at all. On a busy
/// machine it takes some seconds.
const TASK_END_GRACE: Duration = Duration::from_secs(5);

/// A session that another process runs.
pub(super) struct RemoteSession {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) key: String,
    pub(super) id: SessionId,
}

/// What the client waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitTarget {
    Input(InputId),
    Order(OrderId),
    Compaction(OrderId),
    /// No turn is open and no task runs.
    Rest,
}

/// The progress of a request, according to the records so far.
struct RequestProgress {
    state: State,
    awaited: WaitTarget,
    is_taken: bool,
    last_record_at: Instant,
}

impl RemoteSession {
    /// Puts a request into the inbox and passes on events until its outcome is known. `seen` is the last record that
    /// the caller knows. Events after it are passed on first.
    pub(super) async fn run(
        &self,
        request: &Request,
        seen: Option<Seq>,
        events: Option<&UnboundedSender<Watched>>,
    ) -> Result<RequestOutcome> {
        let state = match seen {
            Some(seen) => load_through(&*self.journal, &self.key, self.id, seen).await?,
            None => load(&*self.journal, &self.key, self.id).await?,
        };
        // Follow first, so that no part of the answer is missed.
        let follower = Follower::from_state(self.journal.clone(), &self.key, self.id, state.clone());
        let awaited = match request {
            Request::Send(text) => self.send(text).await?,
            Request::Resume => WaitTarget::Order(self.order(OrderKind::Unknown).await?),
            Request::Retry => WaitTarget::Order(self.order(OrderKind::Retry).await?),
            Request::Continue => WaitTarget::Order(self.order(OrderKind::Continue).await?),
            Request::Settle => WaitTarget::Rest,
            Request::Compact(focus) => {
                WaitTarget::Compaction(self.order(OrderKind::Compact { focus: focus.clone() }).await?)
            }
        };
        let progress = RequestProgress { state, awaited, is_taken: false, last_record_at: Instant::now() };
        self.follow(follower, progress, events).await
    }

    /// Passes events on until the request is done, or until no process is left that would carry it out.
    async fn follow(
        &self,
        mut follower: Follower,
        mut progress: RequestProgress,
        events: Option<&UnboundedSender<Watched>>,
    ) -> Result<RequestOutcome> {
        let mut holder_checks = tokio::time::interval(HOLDER_CHECK_INTERVAL);
        holder_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        holder_checks.reset();
        // The head of the session when no process was found to run it. The request may have ended before it.
        let mut abandoned_at = None;
        loop {
            if let Some(settled) = progress.settled() {
                return Ok(RequestOutcome::Settled(settled));
            }
            if abandoned_at.is_some_and(|head| progress.state.head >= head) {
                return Ok(RequestOutcome::Abandoned);
            }
            let step = tokio::select! {
                step = follower.step() => step?.ok_or(JournalError::Closed)?,
                _ = holder_checks.tick() => {
                    abandoned_at = match is_running(&*self.journal, self.id).await? {
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
            if let (Some(event), Some(events)) = (event, events) {
                let _ = events.send(Watched::Event(*event));
            }
            if let Some(record) = record
                && let Some(outcome) = progress.apply(&self.key, &record)?
            {
                return Ok(outcome);
            }
        }
    }

    async fn send(&self, text: &str) -> Result<WaitTarget> {
        let id = InputId::generate();
        let input = Input { id, text: text.to_owned(), images: vec![], mode: JoinMode::Join };
        self.put(InboxRecord::Input(input)).await?;
        Ok(WaitTarget::Input(id))
    }

    /// Puts an order into the inbox.
    pub(super) async fn order(&self, kind: OrderKind) -> Result<OrderId> {
        let id = OrderId::generate();
        self.put(InboxRecord::Order(Order { id, kind })).await?;
        Ok(id)
    }

    async fn put(&self, record: InboxRecord) -> Result<Seq> {
        Ok(put(&*self.journal, self.id, self.redactor.redact_record(record.encode())).await?)
    }
}

impl RequestProgress {
    /// The outcome, if this record decides it.
    fn apply(&mut self, key: &str, record: &Record) -> Result<Option<RequestOutcome>> {
        let Self { state, awaited, is_taken, last_record_at } = self;
        *last_record_at = Instant::now();
        let unreadable = |reason| Error::Unreadable { key: key.to_owned(), reason };
        state.apply(record).map_err(unreadable)?;
        let compacts = matches!(awaited, WaitTarget::Compaction(_));
        Ok(match SessionRecord::decode(record) {
            Ok(SessionRecord::InputTaken(input)) => {
                *is_taken |= *awaited == WaitTarget::Input(input.id);
                None
            }
            Ok(SessionRecord::OrderTaken(taken)) if *awaited == WaitTarget::Order(taken.order.id) => {
                *is_taken = true;
                let is_idle =
                    state.turn.is_none() && state.pending_inputs.is_empty() && state.turn_request.is_none();
                is_idle.then_some(RequestOutcome::Nothing)
            }
            Ok(SessionRecord::OrderTaken(taken)) if *awaited == WaitTarget::Compaction(taken.order.id) => {
                *is_taken = true;
                state.compaction.requested.is_none().then_some(RequestOutcome::Nothing)
            }
            Ok(SessionRecord::CompactDone(done)) if *is_taken && compacts => {
                Some(RequestOutcome::Compacted(done))
            }
            Ok(SessionRecord::CompactFailed(failed)) if *is_taken && compacts => {
                Some(RequestOutcome::NotCompacted(failed.reason))
            }
            Ok(SessionRecord::TurnEnded(ended)) => {
                let waits = state.pending_inputs.iter().any(|input| *awaited == WaitTarget::Input(input.id));
                (*is_taken && !waits && !compacts).then_some(RequestOutcome::Ended(ended))
            }
            _ => None,
        })
    }

    /// How the session has settled, if the client waits for that. Whether the end of a task begins a turn depends on
    /// the config of the process that runs the session. If no turn has begun within the grace period, none will.
    fn settled(&self) -> Option<Settled> {
        let Self { state, last_record_at, .. } = self;
        if self.awaited != WaitTarget::Rest {
            return None;
        }
        if !state.questions.is_empty() {
            return Some(Settled::Asks);
        }
        let is_busy = state.turn.is_some() || state.tasks.running().next().is_some();
        let may_begin =
            state.tasks.unannounced_ends().next().is_some() && last_record_at.elapsed() < TASK_END_GRACE;
        (!is_busy && !may_begin).then_some(Settled::Rests)
    }
}

/// Whether a process holds the session, or hosts the home and would take it.
pub(super) async fn is_running(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    for stream in [StreamName::session(id), StreamName::host()] {
        if journal.holder(&stream).await?.is_some_and(|holder| !holder.is_gone()) {
            return Ok(true);
        }
    }
    Ok(false)
}
