//! What the handles of a session, its worker and the runtime share: the state of the worker, the callers that wait
//! for an outcome, and the session's watchers.

use std::sync::{Arc, Mutex, MutexGuard};

use longhaul_journal::{Lease, name_session};
use longhaul_protocol::{Event, EventKind, InputId, OrderId, SessionId, TaskId, TaskNews, TurnEnded};
use tokio::sync::{Notify, OnceCell, oneshot};

use crate::Result;
use crate::client::watch::EventHub;
use crate::clock::now;
use crate::runtime::{RuntimeShared, lock};
use crate::session::state::State;
use crate::worker::{self, WorkerResult, WorkerStop};

/// One session in memory.
pub(crate) struct SessionSlot {
    pub(crate) key: String,
    /// Set at the first use, because opening a key stores nothing.
    pub(crate) id: OnceCell<SessionId>,
    /// The watchers of this session. A session that was renamed keeps them in its next slot.
    pub(crate) hub: Arc<EventHub>,
    /// The watchers of all sessions.
    all_sessions_hub: Arc<EventHub>,
    /// Wakes a waiting worker: the inbox may have something new.
    pub(crate) wake_notify: Notify,
    /// Held while a client appends to the inbox and while the worker reads it.
    pub(crate) inbox_lock: tokio::sync::Mutex<()>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    worker: WorkerState,
    /// Set by a wake, cleared when the worker reads the inbox.
    wake_requested: bool,
    /// A lease that could not be released.
    unreleased_lease: Option<Lease>,
    awaiting_worker: Vec<oneshot::Sender<WorkerResult<()>>>,
    outcome_waiters: Vec<OutcomeWaiter>,
    /// Tasks that have ended, or whose end the worker should check.
    ended_tasks: Vec<TaskId>,
    /// Tasks that seem to wait for input, with the last line of their output.
    stalled_tasks: Vec<(TaskNews, String)>,
    /// Callers that wait until the session is released. Dropping a sender notifies its caller.
    release_waiters: Vec<oneshot::Sender<()>>,
    /// Callers that wait for the work that is done while the session is idle.
    idle_work_waiters: Vec<oneshot::Sender<WorkerResult<bool>>>,
}

#[derive(Default, PartialEq, Eq)]
enum WorkerState {
    #[default]
    Absent,
    Starting,
    Running,
    /// The worker is releasing its lease. If it is woken meanwhile, it starts again.
    Leaving,
}

struct OutcomeWaiter {
    request: AwaitedRequest,
    /// The worker has taken the request from the inbox.
    is_taken: bool,
    sender: oneshot::Sender<WorkerResult<Option<TurnEnded>>>,
}

/// A request whose outcome a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwaitedRequest {
    Input(InputId),
    Order(OrderId),
    /// The compaction that an order requests.
    Compaction(OrderId),
}

impl SessionSlot {
    pub(crate) fn new(
        key: &str,
        id: Option<SessionId>,
        hub: Arc<EventHub>,
        all_sessions_hub: Arc<EventHub>,
    ) -> Self {
        Self {
            key: key.to_owned(),
            id: OnceCell::new_with(id),
            hub,
            all_sessions_hub,
            wake_notify: Notify::new(),
            inbox_lock: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Whether a client that could answer watches this session or waits for its outcome, so that a question is seen.
    pub(crate) fn is_attended(&self) -> bool {
        self.hub.is_attended() || !self.state().outcome_waiters.is_empty()
    }

    /// Shows an event to the watchers of this session and of all sessions.
    pub(crate) fn show(&self, event: &Event) {
        let id = self.id.get().copied();
        self.hub.show(event, id);
        self.all_sessions_hub.show(event, id);
    }

    /// An event that is not recorded.
    pub(crate) fn live_event(&self, turn: Option<u64>, kind: EventKind) -> Event {
        Event { seq: None, at: now(), session: self.key.clone(), turn, kind }
    }

    /// The session's id. Creates the session if its key is new.
    pub(crate) async fn ensure_id(self: &Arc<Self>, runtime: &Arc<RuntimeShared>) -> Result<SessionId> {
        let id = self.id.get_or_try_init(|| name_session(&*runtime.journal, &self.key)).await?;
        runtime.index_slot(*id, self);
        Ok(*id)
    }

    /// Makes a worker read the inbox. Starts one if there is none.
    pub(crate) fn wake(self: &Arc<Self>, runtime: &Arc<RuntimeShared>) {
        let mut state = self.state();
        state.wake_requested = true;
        match state.worker {
            WorkerState::Absent => {
                state.worker = WorkerState::Starting;
                drop(state);
                if !runtime.spawn(worker::run(runtime.clone(), self.clone())) {
                    self.remove_worker(&WorkerStop::Suspended);
                }
            }
            WorkerState::Starting | WorkerState::Running | WorkerState::Leaving => {
                self.wake_notify.notify_one();
            }
        }
    }

    /// Wakes the worker and waits until it holds the session's lease.
    pub(crate) async fn wake_and_wait(self: &Arc<Self>, runtime: &Arc<RuntimeShared>) -> WorkerResult<()> {
        self.ensure_id(runtime).await?;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if state.worker == WorkerState::Running {
                return Ok(());
            }
            state.awaiting_worker.push(sender);
        }
        self.wake(runtime);
        receiver.await.unwrap_or(Err(WorkerStop::Suspended))
    }

    pub(crate) fn has_worker(&self) -> bool {
        self.state().worker != WorkerState::Absent
    }

    /// Whether a worker of this process holds the session's lease.
    pub(crate) fn has_lease(&self) -> bool {
        self.state().worker == WorkerState::Running
    }

    /// Records that the worker holds the lease and has loaded the session.
    pub(crate) fn mark_worker_running(&self) {
        let mut state = self.state();
        state.worker = WorkerState::Running;
        for sender in state.awaiting_worker.drain(..) {
            let _ = sender.send(Ok(()));
        }
    }

    /// Records that the worker is about to read the inbox. A later wake makes it read again.
    pub(crate) fn clear_wake_request(&self) {
        self.state().wake_requested = false;
    }

    /// Records that the worker is done and about to release its lease.
    pub(crate) fn mark_worker_leaving(&self) {
        self.state().worker = WorkerState::Leaving;
    }

    /// Keeps a lease that could not be released, for the next worker.
    pub(crate) fn keep_lease(&self, lease: Lease) {
        self.state().unreleased_lease = Some(lease);
    }

    pub(crate) fn take_kept_lease(&self) -> Option<Lease> {
        self.state().unreleased_lease.take()
    }

    /// Marks the worker as gone. If the worker was woken after it last read the inbox, returns `false`, and the
    /// worker starts again.
    pub(crate) fn try_remove_worker(&self) -> bool {
        let mut state = self.state();
        state.worker = if state.wake_requested { WorkerState::Starting } else { WorkerState::Absent };
        if !state.wake_requested {
            state.release_waiters.clear();
        }
        !state.wake_requested
    }

    /// Makes the worker leave as soon as the session is at rest, and waits until it has released the lease.
    pub(crate) async fn release(&self) {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if state.worker == WorkerState::Absent {
                return;
            }
            state.release_waiters.push(sender);
        }
        self.wake_notify.notify_one();
        // The sender is dropped without a message.
        let _ = receiver.await;
    }

    /// Whether a caller waits for the worker to leave.
    pub(crate) fn is_release_requested(&self) -> bool {
        let mut state = self.state();
        state.release_waiters.retain(|sender| !sender.is_closed());
        !state.release_waiters.is_empty()
    }

    /// The worker has stopped before its time: every waiting caller is told why.
    pub(crate) fn remove_worker(&self, stop: &WorkerStop) {
        let (awaiting_worker, outcomes, idle_work) = {
            let mut state = self.state();
            state.worker = WorkerState::Absent;
            state.release_waiters.clear();
            let awaiting_worker = std::mem::take(&mut state.awaiting_worker);
            let outcomes = std::mem::take(&mut state.outcome_waiters);
            (awaiting_worker, outcomes, std::mem::take(&mut state.idle_work_waiters))
        };
        for sender in idle_work {
            let _ = sender.send(Err(stop.clone()));
        }
        for sender in awaiting_worker {
            let _ = sender.send(Err(stop.clone()));
        }
        for waiter in outcomes {
            let _ = waiter.sender.send(Err(stop.clone()));
        }
    }

    /// Subscribes to the outcome of a request. Call this before the request is appended to the inbox.
    pub(crate) fn subscribe_outcome(
        &self,
        request: AwaitedRequest,
    ) -> oneshot::Receiver<WorkerResult<Option<TurnEnded>>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.outcome_waiters.retain(|waiter| !waiter.sender.is_closed());
        state.outcome_waiters.push(OutcomeWaiter { request, is_taken: false, sender });
        receiver
    }

    /// Records that the worker has taken a request from the inbox.
    pub(crate) fn mark_taken(&self, request: AwaitedRequest) {
        for waiter in self.state().outcome_waiters.iter_mut().filter(|waiter| waiter.request == request) {
            waiter.is_taken = true;
        }
    }

    /// Reports that a turn has ended, or that none was needed, to the callers whose input or order was taken. Leaves
    /// out inputs that wait for a later turn.
    pub(crate) fn report_outcome(&self, ended: Option<&TurnEnded>, state: &State) {
        let is_pending = |request: AwaitedRequest| {
            state.pending_inputs.iter().any(|input| request == AwaitedRequest::Input(input.id))
        };
        let is_settled = |request: AwaitedRequest| {
            !matches!(request, AwaitedRequest::Compaction(_)) && !is_pending(request)
        };
        self.notify_waiters(|waiter| waiter.is_taken && is_settled(waiter.request), || Ok(ended.cloned()));
    }

    /// Reports to the caller whose input was taken back that no turn answers it.
    pub(crate) fn report_withdrawal(&self, input: InputId) {
        self.notify_waiters(|waiter| waiter.request == AwaitedRequest::Input(input), || Ok(None));
    }

    /// Asks the worker to check whether a task has ended.
    pub(crate) fn queue_task_check(&self, id: TaskId) {
        let mut state = self.state();
        if !state.ended_tasks.contains(&id) {
            state.ended_tasks.push(id);
        }
    }

    /// Tells the worker that a task seems to wait for input. `line` is the last line of its output.
    pub(crate) fn queue_stalled_task(&self, news: TaskNews, line: String) {
        self.state().stalled_tasks.push((news, line));
    }

    /// Whether a task of this session has something to report.
    pub(crate) fn has_task_reports(&self) -> bool {
        let state = self.state();
        !state.ended_tasks.is_empty() || !state.stalled_tasks.is_empty()
    }

    /// The ended and the stalled tasks since the last call.
    pub(crate) fn take_task_reports(&self) -> (Vec<TaskId>, Vec<(TaskNews, String)>) {
        let mut state = self.state();
        (std::mem::take(&mut state.ended_tasks), std::mem::take(&mut state.stalled_tasks))
    }

    /// Has the worker do what is due while the session is idle. `false` if nothing was.
    pub(crate) async fn run_idle_work(self: &Arc<Self>, runtime: &Arc<RuntimeShared>) -> WorkerResult<bool> {
        self.wake_and_wait(runtime).await?;
        let (sender, receiver) = oneshot::channel();
        self.state().idle_work_waiters.push(sender);
        self.wake(runtime);
        receiver.await.unwrap_or(Err(WorkerStop::Suspended))
    }

    pub(crate) fn is_idle_work_requested(&self) -> bool {
        let mut state = self.state();
        state.idle_work_waiters.retain(|sender| !sender.is_closed());
        !state.idle_work_waiters.is_empty()
    }

    /// Reports the result of idle work: whether there was any.
    pub(crate) fn report_idle_work(&self, result: &WorkerResult<bool>) {
        let waiters = std::mem::take(&mut self.state().idle_work_waiters);
        for sender in waiters {
            let _ = sender.send(result.clone());
        }
    }

    /// Tells the callers that requested a compaction that it has ended.
    pub(crate) fn report_compaction(&self) {
        let is_compaction = |waiter: &OutcomeWaiter| matches!(waiter.request, AwaitedRequest::Compaction(_));
        self.notify_waiters(|waiter| waiter.is_taken && is_compaction(waiter), || Ok(None));
    }

    /// Tells every caller that waits for an outcome why there is none.
    pub(crate) fn fail_waiters(&self, stop: &WorkerStop) {
        self.notify_waiters(|_| true, || Err(stop.clone()));
    }

    fn notify_waiters(
        &self,
        filter: impl Fn(&OutcomeWaiter) -> bool,
        outcome: impl Fn() -> WorkerResult<Option<TurnEnded>>,
    ) {
        let waiters: Vec<OutcomeWaiter> =
            self.state().outcome_waiters.extract_if(.., |waiter| filter(waiter)).collect();
        for waiter in waiters {
            let _ = waiter.sender.send(outcome());
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.state)
    }
}
