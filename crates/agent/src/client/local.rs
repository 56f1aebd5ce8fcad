//! A session in the runtime of this process: requests go to its worker, which reports the outcome.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Blob, SessionEntry, check_size};
use longhaul_protocol::{
    EventKind, InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Seq, SessionId,
    SessionRecord, StreamName, TurnEnded,
};
use tokio::sync::oneshot;

use super::accepted::{Accepted, RepeatCheck, accept_input, accept_order};
use super::request::{EventSink, Request, RequestMark, RequestOutcome, Settled, UserMessage};
use super::watch::{Watched, Watcher};
use crate::Result;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::runtime::slot::{AwaitedRequest, SessionSlot};
use crate::session::Work;
use crate::session::state::State;
use crate::worker::{WorkerResult, WorkerStop};

/// How often a settling session is checked while no event comes, because another process may have taken it.
const SETTLE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A session and the runtime that can run it. Its methods stop with `HeldElsewhere` or `TakenOver` where
/// another process runs it; [`super::Session`] then goes on there.
#[derive(Clone)]
pub(crate) struct LocalSession {
    pub(crate) runtime: Arc<RuntimeShared>,
    pub(crate) slot: Arc<SessionSlot>,
}

impl LocalSession {
    fn key(&self) -> &str {
        &self.slot.key
    }

    /// The session's id, if the session was ever used.
    pub(super) async fn known_id(&self) -> Result<Option<SessionId>> {
        if let Some(id) = self.slot.id.get() {
            return Ok(Some(*id));
        }
        match self.runtime.journal.session(self.key()).await? {
            Some(_) => Ok(Some(self.slot.ensure_id(&self.runtime).await?)),
            None => Ok(None),
        }
    }

    pub(super) fn watch(&self) -> Watcher {
        self.slot.hub.watch(self.slot.clone(), self.runtime.journal.clone())
    }

    /// Wakes the worker and waits until it holds the session's lease. Where it was taken over, nothing of the caller's is in the
    /// inbox yet.
    pub(super) async fn wake(&self) -> WorkerResult<()> {
        self.slot.wake_and_wait(&self.runtime).await.map_err(|stop| match stop {
            WorkerStop::TakenOver(error) => WorkerStop::HeldElsewhere(error),
            stop => stop,
        })
    }

    /// Lets the worker of this process carry out a request.
    pub(super) async fn run(&self, request: &Request, mark: RequestMark) -> WorkerResult<RequestOutcome> {
        let ended = match request {
            Request::Send(message) => self.send(message, mark.input).await,
            Request::Resume => self.resume(mark.order).await,
            Request::Retry => self.order(OrderKind::Retry, mark.order).await,
            Request::Continue => self.continue_answer(mark.order).await,
            Request::Settle => return self.settle().await.map(RequestOutcome::Settled),
            Request::Compact(focus) => return self.compact(focus.clone(), mark.order).await,
        };
        ended.map(RequestOutcome::from)
    }

    /// Sends a message and waits for the end of its turn. `None` if the message was taken back before a turn took it.
    async fn send(&self, message: &UserMessage, id: InputId) -> WorkerResult<Option<TurnEnded>> {
        let input = message.input(id, JoinMode::Join);
        check_size(&InboxRecord::Input(input.clone()).encode())?;
        self.refuse_deleted().await?;
        // The worker must run before the input is sent, because it reports the outcome.
        self.wake().await?;
        let outcome = self.slot.subscribe_outcome(AwaitedRequest::Input(input.id));
        self.put(input, message.blobs(), None).await?;
        outcome_of_accepted(outcome).await
    }

    pub(super) async fn put(
        &self,
        input: Input,
        blobs: Vec<Blob>,
        key: Option<(&str, RepeatCheck)>,
    ) -> Result<Accepted> {
        let record = self.runtime.redactor.redact_record(InboxRecord::Input(input).encode());
        check_size(&record)?;
        let session = self.slot.ensure_id(&self.runtime).await?;
        let after = self.entry_of(session).await?.head.seq;
        let accepted = {
            // The worker takes the input only after watchers have seen that it was accepted.
            let _inbox_lock = self.slot.inbox_lock.lock().await;
            let accepted = accept_input(&*self.runtime.journal, session, after, record, blobs, key).await?;
            let kind = EventKind::InputAccepted { input_seq: accepted.seq, id: accepted.id };
            self.slot.show(&self.slot.live_event(None, kind));
            accepted
        };
        self.runtime.activity.record_activity(session);
        self.wake_holder(session).await;
        Ok(accepted)
    }

    /// Refuses input to a session that was deleted since this handle was created, because no key leads to it any
    /// more.
    async fn refuse_deleted(&self) -> Result<()> {
        match self.slot.id.get() {
            Some(id) => self.entry_of(*id).await.map(drop),
            None => Ok(()),
        }
    }

    /// The session as it is now. An error if it was deleted.
    async fn entry_of(&self, id: SessionId) -> Result<SessionEntry> {
        let entry = self.runtime.journal.session_with_id(id).await?;
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.slot.key.clone() };
        Ok(entry.ok_or_else(missing)?)
    }

    async fn continue_answer(&self, order: OrderId) -> WorkerResult<Option<TurnEnded>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        if self.runtime.journal.live_holder(&StreamName::session(id)).await?.is_some() {
            return self.order(OrderKind::Continue, order).await;
        }
        // After a crash the order has to be on disk before a worker opens the session. Otherwise the worker would
        // repeat the request.
        let outcome = self.slot.subscribe_outcome(AwaitedRequest::Order(order));
        self.put_order(id, Order { id: order, kind: OrderKind::Continue }).await?;
        self.wake().await.map_err(WorkerStop::into_taken_over)?;
        self.wake_holder(id).await;
        outcome_of_accepted(outcome).await
    }

    async fn resume(&self, order: OrderId) -> WorkerResult<Option<TurnEnded>> {
        let Some(entry) = self.runtime.journal.session(self.key()).await? else { return Ok(None) };
        let before = self.state().await?;
        if !Work::of(&before, entry.inbox_head, self.runtime.wake()).is_unfinished() {
            return Ok(None);
        }
        match self.order(OrderKind::Unknown, order).await? {
            Some(ended) => Ok(Some(ended)),
            // The turn may have ended before the worker saw the order.
            None => {
                let turn = before.turn.map_or(before.turn_count.saturating_add(1), |turn| turn.number);
                Ok(self.end_of(entry.id, turn, before.head).await?)
            }
        }
    }

    /// How a turn ended, according to the records after `after`.
    async fn end_of(&self, id: SessionId, turn: u64, after: Seq) -> Result<Option<TurnEnded>> {
        let stream = StreamName::session(id);
        let mut records = longhaul_journal::records(&*self.runtime.journal, &stream, after + 1);
        while let Some(record) = records.next().await? {
            if let Ok(SessionRecord::TurnEnded(ended)) = SessionRecord::decode(&record)
                && ended.turn == turn
            {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    /// Puts an order into the inbox, without waking the worker.
    async fn put_order(&self, id: SessionId, order: Order) -> Result<()> {
        let (journal, redactor) = (&*self.runtime.journal, &self.runtime.redactor);
        accept_order(journal, redactor, id, order, None).await.map(drop)
    }

    /// Puts an order into the inbox and waits for the turn that it concerns.
    pub(super) async fn order(&self, kind: OrderKind, order: OrderId) -> WorkerResult<Option<TurnEnded>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        self.wake().await?;
        let outcome = self.slot.subscribe_outcome(AwaitedRequest::Order(order));
        self.put_order(id, Order { id: order, kind }).await?;
        self.wake_holder(id).await;
        outcome_of_accepted(outcome).await
    }

    async fn compact(&self, focus: Option<String>, order: OrderId) -> WorkerResult<RequestOutcome> {
        let Some(id) = self.known_id().await? else { return Ok(RequestOutcome::Nothing) };
        self.wake().await?;
        let after = self.runtime.journal.head(&StreamName::session(id)).await?.seq;
        let ended = self.slot.subscribe_outcome(AwaitedRequest::Compaction(order));
        self.put_order(id, Order { id: order, kind: OrderKind::Compact { focus } }).await?;
        self.wake_holder(id).await;
        outcome_of_accepted(ended).await?;
        Ok(self.compaction_of(id, order, after).await?)
    }

    /// The outcome of the compaction that an order requested, according to the records after `after`.
    async fn compaction_of(&self, id: SessionId, order: OrderId, after: Seq) -> Result<RequestOutcome> {
        let (stream, mut is_taken) = (StreamName::session(id), false);
        let mut records = longhaul_journal::records(&*self.runtime.journal, &stream, after + 1);
        while let Some(record) = records.next().await? {
            match SessionRecord::decode(&record) {
                Ok(SessionRecord::OrderTaken(taken)) => is_taken |= taken.order.id == order,
                Ok(SessionRecord::CompactDone(done)) if is_taken => {
                    return Ok(RequestOutcome::Compacted(done));
                }
                Ok(SessionRecord::CompactFailed(failed)) if is_taken => {
                    return Ok(RequestOutcome::NotCompacted(failed.reason));
                }
                _ => {}
            }
        }
        Ok(RequestOutcome::Nothing)
    }

    /// Returns when no task runs, no task's end is about to begin a turn, and no turn is open; or when a question is open.
    async fn settle(&self) -> WorkerResult<Settled> {
        let mut watcher = self.watch();
        let mut state = State::default();
        loop {
            let id = self.known_id().await?;
            // A session that failed repeatedly is not woken until its back-off has passed.
            if !id.is_some_and(|id| self.runtime.worker_backoff.is_backing_off(id)) {
                self.wake().await?;
            }
            let head = match id {
                Some(id) => self.runtime.journal.head(&StreamName::session(id)).await?.seq,
                None => 0,
            };
            if state.head != head || head == 0 {
                state = self.state().await?;
            }
            let work = Work::of_taken(&state, self.runtime.wake());
            if work.question {
                return Ok(Settled::WaitingForAnswer);
            }
            if work.is_settled() {
                return Ok(Settled::Idle);
            }
            let news = async {
                loop {
                    let watched = watcher.next().await.ok_or(WorkerStop::Suspended)?;
                    if may_have_settled(&watched) {
                        return WorkerResult::Ok(());
                    }
                }
            };
            tokio::time::timeout(SETTLE_CHECK_INTERVAL, news).await.unwrap_or(Ok(()))?;
        }
    }

    pub(super) async fn state(&self) -> Result<State> {
        match self.known_id().await? {
            Some(id) => load(&*self.runtime.journal, self.key(), id).await,
            None => Ok(State::default()),
        }
    }

    /// Wakes the worker of this process, and also the process that holds the session if that is another one.
    pub(super) async fn wake_holder(&self, id: SessionId) {
        self.slot.wake(&self.runtime);
        if self.slot.has_lease() {
            return;
        }
        // The input is on disk, so the holder finds it at its next check even if this wake is lost.
        let _ = self.runtime.journal.wake_holder(&StreamName::session(id)).await;
    }
}

/// Lets the worker of this process carry out a request, and passes its events on.
pub(super) async fn run_here(
    local: &LocalSession,
    request: &Request,
    mark: RequestMark,
    sink: Option<&mut EventSink<'_>>,
) -> WorkerResult<RequestOutcome> {
    let Some(sink) = sink else { return local.run(request, mark).await };
    let mut watcher = sink.watcher.take().unwrap_or_else(|| local.watch());
    let mut work = std::pin::pin!(local.run(request, mark));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(watched) = watcher.next() => sink.show(watched).await,
            outcome = &mut work => break outcome,
        }
    };
    while let Some(watched) = watcher.next_waiting().await {
        sink.show(watched).await;
    }
    *sink.watcher = Some(watcher);
    outcome
}

/// The outcome of a request that is in the inbox. Whichever process holds the session, it goes on there.
async fn outcome_of_accepted(
    outcome: oneshot::Receiver<WorkerResult<Option<TurnEnded>>>,
) -> WorkerResult<Option<TurnEnded>> {
    outcome.await.unwrap_or(Err(WorkerStop::Suspended)).map_err(WorkerStop::into_taken_over)
}

fn may_have_settled(watched: &Watched) -> bool {
    let Watched::Event(event) = watched else { return true };
    matches!(
        event.kind,
        EventKind::TaskEnded { .. }
            | EventKind::ChildEnded { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::Question { .. }
    )
}
