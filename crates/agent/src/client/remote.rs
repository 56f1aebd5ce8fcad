//! A session that another process runs: requests go into its inbox, and its records show the outcome.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Error as JournalError, Journal, put_with_blobs, records};
use longhaul_protocol::{
    At, Event, EventKind, InboxRecord, InputId, JoinMode, Order, OrderId, OrderKind, Record, Seq, SessionId,
    SessionRecord, StreamName, TurnEnded,
};
use tokio::time::{Instant, MissedTickBehavior};

use super::accepted::accept_order;
use super::follow::{Followed, Follower};
use super::request::{EventSink, Request, RequestMark, RequestOutcome, Settled, UserMessage};
use super::watch::Watched;
use crate::Redactor;
use crate::clock::now;
use crate::config::Wake;
use crate::replay::{load, load_through};
use crate::session::Work;
use crate::session::events::event_of;
use crate::session::state::State;
use crate::subagents::child::cost_of_subagents;
use crate::{Error, Result};

/// How often the client checks that a process still runs the session.
const HOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Checks in a row that find only expired leases, after which the session counts as abandoned. A process whose machine slept renews
/// its leases before the second check.
const MAX_EXPIRED_CHECKS: u32 = 2;
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
    /// Puts a request into the inbox and passes on what happens until its outcome. First passes on the events since the last record
    /// that the caller has.
    pub(super) async fn run(
        &self,
        request: &Request,
        mark: RequestMark,
        mut sink: Option<&mut EventSink<'_>>,
    ) -> Result<RequestOutcome> {
        let state = match sink.as_ref().and_then(|sink| sink.seen()) {
            Some(seen) => load_through(&*self.journal, &self.key, self.id, seen).await?,
            None => load(&*self.journal, &self.key, self.id).await?,
        };
        // Follow first, so that nothing of the answer is missed.
        let follower = Follower::from_state(self.journal.clone(), &self.key, self.id, state.clone());
        match request {
            Request::Send(message) => self.send(message, mark.input, sink.as_deref_mut()).await?,
            Request::Resume => self.order(OrderKind::Unknown, mark.order).await?,
            Request::Retry => self.order(OrderKind::Retry, mark.order).await?,
            Request::Continue => self.order(OrderKind::Continue, mark.order).await?,
            Request::Compact(focus) => {
                self.order(OrderKind::Compact { focus: focus.clone() }, mark.order).await?;
            }
            Request::Settle => {}
        }
        self.follow(follower, RequestProgress::new(state, request, mark), sink).await
    }

    /// The outcome of a request that is in the inbox, if the records have it already.
    pub(super) async fn recorded_outcome(
        &self,
        request: &Request,
        mark: RequestMark,
    ) -> Result<Option<RequestOutcome>> {
        let state = load_through(&*self.journal, &self.key, self.id, mark.before).await?;
        let mut progress = RequestProgress::new(state, request, mark);
        let stream = StreamName::session(self.id);
        let mut cursor = records(&*self.journal, &stream, mark.before + 1);
        while let Some(record) = cursor.next().await? {
            if let Some(outcome) = progress.apply(&self.key, &record)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Passes events on until the request is done, or until no process is left that would do it.
    async fn follow(
        &self,
        mut follower: Follower,
        mut progress: RequestProgress,
        mut sink: Option<&mut EventSink<'_>>,
    ) -> Result<RequestOutcome> {
        let mut holder_checks = tokio::time::interval(HOLDER_CHECK_INTERVAL);
        holder_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        holder_checks.reset();
        // The head of a session that no process runs: the request may have ended before it.
        let mut abandoned_at = None;
        let mut expired_checks = 0;
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
                    expired_checks = match running_process(&*self.journal, self.id).await? {
                        RunningProcess::Live => 0,
                        RunningProcess::Expired => expired_checks + 1,
                        RunningProcess::None => MAX_EXPIRED_CHECKS,
                    };
                    abandoned_at = match expired_checks < MAX_EXPIRED_CHECKS {
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
            if let (Some(event), Some(sink)) = (event, &mut sink) {
                sink.show(Watched::Event(*event)).await;
            }
            if let Some(record) = record
                && let Some(outcome) = progress.apply(&self.key, &record)?
            {
                return Ok(outcome);
            }
        }
    }

    async fn send(&self, message: &UserMessage, id: InputId, sink: Option<&mut EventSink<'_>>) -> Result<()> {
        let record = InboxRecord::Input(message.input(id, JoinMode::Join)).encode();
        let record = self.redactor.redact_record(record);
        let input_seq = put_with_blobs(&*self.journal, self.id, record, message.blobs()).await?;
        if let Some(sink) = sink {
            let kind = EventKind::InputAccepted { input_seq, id };
            let session = self.key.clone();
            sink.show(Watched::Event(Event { seq: None, at: now(), session, turn: None, kind })).await;
        }
        Ok(())
    }

    /// Puts an order into the inbox, and wakes the process that runs the session.
    pub(super) async fn order(&self, kind: OrderKind, id: OrderId) -> Result<()> {
        accept_order(&*self.journal, &self.redactor, self.id, Order { id, kind }, None).await?;
        // The holder finds the order even if this wake is lost.
        let _ = self.journal.wake_holder(&StreamName::session(self.id)).await;
        Ok(())
    }
}

impl RequestProgress {
    fn new(state: State, request: &Request, mark: RequestMark) -> Self {
        let awaited = match request {
            Request::Send(_) => WaitTarget::Input(mark.input),
            Request::Resume | Request::Retry | Request::Continue => WaitTarget::Order(mark.order),
            Request::Compact(_) => WaitTarget::Compaction(mark.order),
            Request::Settle => WaitTarget::Rest,
        };
        Self { state, awaited, is_taken: false, last_record_at: Instant::now() }
    }

    /// The outcome, if this record decides it.
    fn apply(&mut self, key: &str, record: &Record) -> Result<Option<RequestOutcome>> {
        let Self { state, awaited, is_taken, last_record_at } = self;
        *last_record_at = Instant::now();
        let unreadable = |reason| Error::Unreadable { key: key.to_owned(), reason };
        let event = event_of(state, key, record);
        state.apply(record).map_err(unreadable)?;
        if let Some(Event { kind: EventKind::InputWithdrawn { id }, .. }) = event
            && *awaited == WaitTarget::Input(id)
        {
            return Ok(Some(RequestOutcome::Nothing));
        }
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
        let work = Work::of_taken(state, Wake::Never);
        if work.question {
            return Some(Settled::WaitingForAnswer);
        }
        let may_begin = work.unannounced && last_record_at.elapsed() < TASK_END_GRACE;
        (work.is_settled() && !may_begin).then_some(Settled::Idle)
    }
}

/// What became of an input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputOutcome {
    /// It was taken back before a turn took it.
    Withdrawn { at: At },
    Ended {
        at: At,
        ended: TurnEnded,
        /// US dollars that the turn cost, with its subagents so far; `None` if a price is unknown.
        cost: Option<f64>,
    },
}

/// What became of an input, if the records after `after` have it: a record of the session before the one that takes the input.
pub(crate) async fn input_outcome(
    journal: &dyn Journal,
    key: &str,
    id: SessionId,
    input: InputId,
    after: Seq,
) -> Result<Option<InputOutcome>> {
    let state = load_through(journal, key, id, after).await?;
    let awaited = WaitTarget::Input(input);
    let mut progress = RequestProgress { state, awaited, is_taken: false, last_record_at: Instant::now() };
    let (mut turn, mut cost, mut children) = (None, Some(0.0), Vec::new());
    let stream = StreamName::session(id);
    let mut cursor = records(journal, &stream, after + 1);
    while let Some(record) = cursor.next().await? {
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::Usage(usage)) => {
                cost = cost.zip(usage.cost).map(|(sum, cost)| sum + cost);
            }
            Ok(SessionRecord::TaskStarted(task)) => children.extend(task.session),
            _ => {}
        }
        match progress.apply(key, &record)? {
            Some(RequestOutcome::Ended(ended)) => {
                let of_children = cost_of_subagents(journal, children).await?;
                let cost = cost.zip(of_children).map(|(own, of_children)| own + of_children);
                return Ok(Some(InputOutcome::Ended { at: record.at, ended, cost }));
            }
            Some(_) => return Ok(Some(InputOutcome::Withdrawn { at: record.at })),
            None => {}
        }
        let open_turn = progress.state.turn.as_ref().map(|turn| turn.number);
        if open_turn != turn {
            (turn, cost) = (open_turn, Some(0.0));
            children.clear();
        }
    }
    Ok(None)
}

/// The process that runs a session, or would run it because it hosts the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunningProcess {
    Live,
    /// It is not gone, but its lease has expired: it is stopped, or on another machine.
    Expired,
    None,
}

async fn running_process(journal: &dyn Journal, id: SessionId) -> Result<RunningProcess> {
    let mut found = RunningProcess::None;
    let stream = StreamName::session(id);
    for stream in [stream.clone(), journal.host_for(&stream).await?] {
        if journal.live_holder(&stream).await?.is_some() {
            return Ok(RunningProcess::Live);
        }
        if journal.holder(&stream).await?.is_some_and(|holder| !holder.is_gone()) {
            found = RunningProcess::Expired;
        }
    }
    Ok(found)
}

/// Whether a process holds the session, or hosts the home and would take it.
pub(super) async fn is_running(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    Ok(running_process(journal, id).await? == RunningProcess::Live)
}
