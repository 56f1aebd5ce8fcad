//! The session's log. The worker records everything through [`SessionLog::commit`]. So the stream on disk, the state
//! in memory and the events that watchers see always agree.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Append, Blob, Error as JournalError, Lease, Page};
use longhaul_protocol::{Event, EventKind, Record, SessionId, SessionRecord, StreamName};

use crate::housekeeping::backoff::RetryDelay;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::runtime::slot::{AwaitedRequest, SessionSlot};
use crate::session::events::event_of;
use crate::session::state::State;
use crate::session::tasks::TaskState;
use crate::worker::task_monitor;
use crate::worker::{WorkerResult, WorkerStop};
use crate::{Error, Result};

/// The delays before the retries of a journal operation that failed temporarily.
pub(super) const JOURNAL_RETRY_DELAY: RetryDelay =
    RetryDelay::new(Duration::from_millis(250), Duration::from_secs(5));

/// The stream of one session, the state that its records fold into, and the lease that allows appending to it.
pub(super) struct SessionLog {
    runtime: Arc<RuntimeShared>,
    slot: Arc<SessionSlot>,
    id: SessionId,
    lease: Lease,
    state: State,
    /// Why the last commit needed more than one try.
    delay_reason: Option<String>,
}

impl SessionLog {
    /// Replays the session's records.
    pub(super) async fn open(
        runtime: &Arc<RuntimeShared>,
        slot: &Arc<SessionSlot>,
        id: SessionId,
        lease: Lease,
    ) -> Result<Self> {
        let state = load(&*runtime.journal, &slot.key, id).await?;
        Ok(Self { runtime: runtime.clone(), slot: slot.clone(), id, lease, state, delay_reason: None })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn slot(&self) -> &Arc<SessionSlot> {
        &self.slot
    }

    /// Appends facts and blobs. When this returns, they are on disk, in the state, and shown to every watcher.
    ///
    /// If the journal refuses an append temporarily (a full disk), the append is retried with back-off until it
    /// succeeds or the runtime is suspended. [`Self::take_delay_reason`] tells the caller that this happened.
    pub(super) async fn commit(&mut self, facts: &[SessionRecord], blobs: Vec<Blob>) -> WorkerResult<()> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut append = Append::under(&self.lease).expecting(self.state.head);
        let redactor = &self.runtime.redactor;
        append =
            facts.iter().fold(append, |append, fact| append.record(redactor.redact_record(fact.encode())));
        append = blobs.into_iter().fold(append, Append::blob);
        let records = match self.runtime.journal.append(append.clone()).await {
            Ok(records) => records,
            Err(error) if error.may_pass() => self.retry_append(append, facts.len(), &error).await?,
            Err(error) => return Err(error.into()),
        };
        for record in &records {
            self.apply(record)?;
        }
        Ok(())
    }

    /// Takes the reason why the last commit needed more than one try.
    pub(super) fn take_delay_reason(&mut self) -> Option<String> {
        self.delay_reason.take()
    }

    /// Retries an append that the journal refused, with back-off. Watchers and waiting callers are notified at once.
    async fn retry_append(
        &mut self,
        append: Append,
        count: usize,
        error: &JournalError,
    ) -> WorkerResult<Vec<Record>> {
        let message = error.to_string();
        let reason = message.strip_prefix("not saved: ").unwrap_or(&message).to_owned();
        self.delay_reason = Some(format!("what happened could not be saved for a while: {reason}"));
        let (code, text) = ("not_saved".to_owned(), format!("not saved: {reason}"));
        self.show(EventKind::Warning { code, text });
        self.slot.fail_waiters(&Error::NotSaved { reason }.into());
        let mut suspension = self.runtime.suspension();
        let mut delay = JOURNAL_RETRY_DELAY;
        loop {
            tokio::select! {
                _ = suspension.wait_for(|suspended| *suspended) => return Err(WorkerStop::Suspended),
                () = tokio::time::sleep(delay.next()) => {}
            }
            match self.runtime.journal.append(append.clone()).await {
                Ok(records) => return Ok(records),
                Err(error) if error.may_pass() => {}
                // An earlier try was committed, although the journal reported an error.
                Err(JournalError::Conflict { .. }) => {
                    let page = Page { records: count, bytes: usize::MAX };
                    let stream = StreamName::session(self.id);
                    return Ok(self.runtime.journal.read(&stream, self.state.head + 1, page).await?);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Applies a committed record to the state and notifies everything in this process that depends on it.
    fn apply(&mut self, record: &Record) -> WorkerResult<()> {
        let event = event_of(&self.state, &self.slot.key, record);
        let unreadable =
            |reason| WorkerStop::Failed(Error::Unreadable { key: self.slot.key.clone(), reason });
        let fact = SessionRecord::decode(record).map_err(unreadable)?;
        // A watcher that joins after this gets the whole message instead of the text so far.
        if matches!(fact, SessionRecord::AttemptEnded(_)) {
            self.slot.hub.end_partial();
        }
        self.state.apply(record).map_err(unreadable)?;
        self.runtime.activity.record_append(self.id, record.at, &fact, &self.state);
        match &event {
            Some(event) => self.slot.show(event),
            None => self.slot.hub.advance_head(record.seq),
        }
        if let Some(Event { kind: EventKind::InputWithdrawn { id }, .. }) = event {
            self.slot.report_withdrawal(id);
        }
        match &fact {
            SessionRecord::AttemptStarted(started) => {
                let turn = self.state.turn.as_ref().map(|turn| turn.number);
                self.slot
                    .hub
                    .begin_partial(started.attempt, &self.slot.live_event(turn, EventKind::StepStarted));
            }
            SessionRecord::TaskStarted(task) => {
                task_monitor::monitor_task(&self.runtime, &self.slot, task.into());
            }
            SessionRecord::TaskEnded(_) => self.stop_monitoring_ended_tasks(),
            SessionRecord::InputTaken(input) => self.slot.mark_taken(AwaitedRequest::Input(input.id)),
            SessionRecord::OrderTaken(order) => {
                self.slot.mark_taken(AwaitedRequest::Order(order.order.id));
                self.slot.mark_taken(AwaitedRequest::Compaction(order.order.id));
                if self.state.compaction.requested.is_none() {
                    self.slot.report_compaction();
                }
                if !crate::session::Work::of_taken(&self.state, self.runtime.wake()).is_unfinished() {
                    self.slot.report_outcome(None, &self.state);
                }
            }
            SessionRecord::CompactDone(_) | SessionRecord::CompactFailed(_) => self.slot.report_compaction(),
            SessionRecord::TurnEnded(ended) => {
                self.runtime.idle.turn_ended(self.id, &self.slot.key);
                self.runtime.schedules.turn_ended(self.id);
                self.slot.report_outcome(Some(ended), &self.state);
            }
            _ => {}
        }
        Ok(())
    }

    /// Monitors the tasks that run according to the records, and checks each once, because one may have ended while
    /// there was no worker.
    pub(super) fn monitor_running_tasks(&self) {
        self.stop_monitoring_ended_tasks();
        for task in self.state.tasks.running() {
            self.slot.queue_task_check(task.id());
            task_monitor::monitor_task(&self.runtime, &self.slot, (&task.started).into());
        }
    }

    fn stop_monitoring_ended_tasks(&self) {
        let is_running = |id| self.state.tasks.get(id).is_some_and(TaskState::is_running);
        self.runtime.task_monitor.retain_session_tasks(&self.slot.key, is_running);
    }

    /// Replays the records again, so that a compaction does not write text that was erased since they were first
    /// read. If they can't be read, the state stays unchanged.
    pub(super) async fn reload_state(&mut self) {
        let loaded = load(&*self.runtime.journal, &self.slot.key, self.id).await;
        if let Some(state) = loaded.ok().filter(|state| state.head == self.state.head) {
            self.state = state;
        }
    }

    /// Renews the session's lease. Ignores a temporary failure (a full disk): the next append decides.
    pub(super) async fn renew_lease(&self) -> WorkerResult<()> {
        match self.runtime.journal.renew_lease(&self.lease).await {
            Err(error) if !error.may_pass() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Shows watchers an event that is not recorded.
    pub(super) fn show(&self, kind: EventKind) {
        let turn = self.state.turn.as_ref().map(|turn| turn.number);
        self.slot.show(&self.slot.live_event(turn, kind));
    }
}
