//! The worker of one session: the loop `decide → act → commit`.
//!
//! A worker is the only writer of its session's stream, and holds the session's lease while it runs. It finishes one
//! action before it decides on the next. While an action waits, the worker continues to take its inbox and to renew
//! its lease.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `lifecycle` | `run`: take the lease, work, release it; retry after failures |
//! | `commit` | `SessionLog`: the state, the lease, appends with retry and back-off |
//! | `inbox` | `Inbox`: reading and taking inputs, orders and answers |
//! | `wait` | `Waiter`: suspension, heartbeat, turn deadline, gather timer |
//! | `toolset`, `tool_profile` | `Toolset`: work folder, tools, system prompt; what they are made of |
//! | `server_tools` | which tools of MCP servers an epoch has |
//! | `tasks`, `task_monitor` | background tasks: recording their ends; monitoring them and waking the session |
//!
//! The actions themselves are functions over the worker's interface, in `turn` and `compaction`.

mod commit;
mod inbox;
mod lifecycle;
pub(crate) mod server_tools;
pub(crate) mod task_monitor;
pub(crate) mod tasks;
pub(crate) mod tool_profile;
pub(crate) mod toolset;
pub(crate) mod wait;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use longhaul_journal::{Blob, Error as JournalError, Lease};
use longhaul_protocol::{
    EventKind, InboxRecord, OrderKind, OrderTaken, PermissionMode, Question, QuestionKind, SessionId,
    SessionRecord, Warning,
};
use tokio::time::Instant;

use crate::Error;
use crate::compaction::plan::ContextLimits;
use crate::compaction::{close_compaction, compact, drop_quiet_turns, stub_tool_output};
use crate::memory::{extract_now, remember_ordered};
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;
use crate::session::decide::{Action, BudgetCheck, Policy, TurnEnding, decide};
use crate::session::state::State;
use crate::subagents::lineage::stop_if_unwanted;
use crate::subagents::questions::forward_answers;
use crate::turn::attempt::{begin_turn, close_open_attempt, make_model_call};
use crate::turn::budget::{ask_about_budget, await_answer, check_budget};
use crate::turn::end::end_turn;
use crate::turn::epoch::{first_epoch_records, start_epoch};
use crate::turn::fallback::{ModelChain, ModelSelection};
use crate::turn::request::check_context_room;
use crate::turn::tool_calls::run_tool_calls;
use crate::worker::commit::SessionLog;
use crate::worker::inbox::{Inbox, InboxBatch};
pub(crate) use crate::worker::lifecycle::run;
use crate::worker::server_tools::{choose_tools, first_tools, recorded_tools, tools_for_next_epoch};
use crate::worker::tasks::record_task_news;
use crate::worker::toolset::{OfferedTools, Toolset};
use crate::worker::wait::{WaitOutcome, Waiter, WakeOn, Wakeup};

/// Works on one session.
pub(crate) struct Worker {
    runtime: Arc<RuntimeShared>,
    log: SessionLog,
    inbox: Inbox,
    waiter: Waiter,
    toolset: Toolset,
    models: ModelSelection,
    policy: Policy,
    /// Why the ledger refused the last call.
    refused_call: Option<BudgetCheck>,
    /// No other node may run the session.
    is_bound: bool,
}

/// Why the worker of this process stops in the middle of an action, or does not run the session at all.
#[derive(Debug, Clone)]
pub(crate) enum WorkerStop {
    /// The runtime shuts down. The turn stays open and is resumed later.
    Suspended,
    /// Another process holds the session's lease.
    HeldElsewhere(JournalError),
    /// Another process holds the lease by now, and what was sent is in the inbox: it goes on there.
    TakenOver(JournalError),
    /// Mostly, the journal can't be written or read.
    Failed(Error),
}

impl WorkerStop {
    /// The same for a request that is in the inbox: whichever process runs the session, it goes on there.
    pub(crate) fn into_taken_over(self) -> Self {
        match self {
            Self::HeldElsewhere(error) => Self::TakenOver(error),
            stop => stop,
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Suspended => Error::Suspended,
            Self::HeldElsewhere(error) | Self::TakenOver(error) => error.into(),
            Self::Failed(error) => error,
        }
    }
}

impl From<Error> for WorkerStop {
    fn from(error: Error) -> Self {
        match error {
            Error::Suspended => Self::Suspended,
            error => Self::Failed(error),
        }
    }
}

impl From<JournalError> for WorkerStop {
    fn from(error: JournalError) -> Self {
        Self::Failed(error.into())
    }
}

pub(crate) type WorkerResult<T> = Result<T, WorkerStop>;

/// The loop.
impl Worker {
    async fn open(
        runtime: &Arc<RuntimeShared>,
        slot: &Arc<SessionSlot>,
        id: SessionId,
        lease: Lease,
    ) -> WorkerResult<Self> {
        let log = SessionLog::open(runtime, slot, id, lease).await?;
        let state = log.state();
        let is_bound = runtime.bind_to_node(id, state).await?;
        runtime.restore_session_model(&slot.key, state);
        let chain = runtime.model_chain_of(&slot.key);
        let tools = recorded_tools(runtime, id, state).await.or_else(|| first_tools(runtime, id, state));
        let toolset = Toolset::new(runtime, state, chain.primary().name(), tools);
        Ok(Self {
            policy: toolset.policy(runtime),
            models: ModelSelection::resume(chain, state),
            inbox: Inbox::new(id, state.inbox_through),
            waiter: Waiter::new(runtime.suspension()),
            runtime: runtime.clone(),
            toolset,
            log,
            refused_call: None,
            is_bound,
        })
    }

    /// Works until the session has been idle for a while, or something stops the worker. `forced_end` says why the open
    /// turn may only be ended.
    async fn run(mut self, forced_end: Option<String>) -> WorkerResult<()> {
        self.policy.forced_end = forced_end.filter(|_| self.state().turn.is_some());
        self.slot().hub.advance_head(self.state().head);
        self.slot().mark_worker_running();
        stop_if_unwanted(&self).await?;
        // The inbox may contain an order to cancel, and then there is nothing to resume.
        self.take_inbox().await?;
        if let Some(turn) = self.state().turn.as_ref().filter(|turn| !turn.cancelled) {
            let text = format!("resuming turn {}: {}", turn.number, self.state().describe_open_work());
            self.show(EventKind::Warning { code: "resumed".to_owned(), text });
        }
        self.log.monitor_running_tasks();
        loop {
            match self.act().await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(WorkerStop::Failed(error))
                    if is_record_refused(&error) && self.state().turn.is_some() =>
                {
                    self.give_up_turn(&error).await?;
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Decides on the next action and carries it out. Returns false if there is none and the session should leave
    /// memory.
    async fn act(&mut self) -> WorkerResult<bool> {
        self.take_inbox().await?;
        record_task_news(self).await?;
        if self.waiter.is_suspended() {
            return Err(WorkerStop::Suspended);
        }
        if !self.is_bound && self.runtime.is_draining() {
            // Refused if another node is there to take the session.
            self.runtime.check_run_permission(self.id()).await.map_err(WorkerStop::into_taken_over)?;
        }
        self.update_deadline();
        if self.state().turn.is_none() && self.wants_turn() {
            let tools = choose_tools(self).await?;
            self.reload_toolset(tools);
        }
        if self.state().turn.is_some() || self.wants_turn() {
            // A turn takes precedence over idle work.
            self.slot().report_idle_work(&Ok(false));
        }
        self.policy.context.is_idle = self.slot().is_idle_work_requested();
        if self.state().turn.is_some() || self.has_work() {
            check_context_room(self).await?;
            check_budget(self).await?;
        }
        match decide(self.state(), &self.policy) {
            Action::Rest => {
                self.slot().report_idle_work(&Ok(false));
                return self.rest().await;
            }
            Action::StartEpoch => start_epoch(self).await?,
            Action::CloseCompaction => close_compaction(self).await?,
            Action::DropQuietTurns => drop_quiet_turns(self).await?,
            Action::Stub(calls) => stub_tool_output(self, calls).await?,
            Action::Compact(trigger) => compact(self, trigger).await?,
            Action::BeginTurn(turn) => begin_turn(self, turn).await?,
            Action::CallModel { turn, step } => make_model_call(self, turn, step).await?,
            Action::CloseAttempt { kept } => close_open_attempt(self, kept).await?,
            Action::RunTools(calls) => run_tool_calls(self, &calls).await?,
            Action::AskBudget(soft) => ask_about_budget(self, soft).await?,
            Action::AwaitAnswer(question) => await_answer(self, question).await?,
            Action::EndTurn(ending) => end_turn(self, vec![], ending).await?,
        }
        self.mark_active();
        Ok(true)
    }

    /// Waits for something to do. Returns false if nothing came and the session should leave memory.
    async fn rest(&mut self) -> WorkerResult<bool> {
        if self.should_leave() {
            return Ok(false);
        }
        let rest_time = self.runtime.config.rest_time;
        let mut idle = pin!(tokio::time::sleep_until(self.waiter.idle_deadline(rest_time)));
        match self.wait_for(&mut idle, WakeOn::Input, None).await?.into_done()? {
            None => Ok(true),
            Some(()) => Ok(self.waiter.should_stay(rest_time)),
        }
    }

    /// Ends a turn if the journal refuses one of its records. Otherwise it would be tried forever, and each try costs
    /// a model call.
    ///
    /// The first time, open calls may still get their results. If the journal refuses one of those too, the turn ends
    /// without them.
    async fn give_up_turn(&mut self, error: &Error) -> WorkerResult<()> {
        if self.policy.forced_end.replace(error.to_string()).is_none() {
            return Ok(());
        }
        close_open_attempt(self, 0).await?;
        end_turn(self, vec![], TurnEnding::failed(error.to_string())).await
    }

    /// Takes everything in the inbox, in its order, with one commit for each page.
    async fn take_inbox(&mut self) -> WorkerResult<()> {
        self.slot().clear_wake_request();
        loop {
            let InboxBatch { mut facts, through } = {
                // The client shows that its input was accepted before the worker can take it.
                let _inbox_lock = self.slot().inbox_lock.lock().await;
                let mode = self.permission_mode();
                self.inbox.next_batch(&*self.runtime.journal, self.state(), mode).await?
            };
            if facts.is_empty() {
                return Ok(());
            }
            forward_answers(self, &facts).await?;
            self.remember_ordered(&mut facts).await;
            let mut blobs = vec![];
            if self.state().epoch.is_none() {
                let (opening, content) = first_epoch_records(self).await;
                facts.splice(..0, opening);
                blobs = content;
            }
            self.commit(facts, blobs).await?;
            self.inbox.mark_taken(through);
        }
    }

    /// Carries out the orders of a batch to remember something, before they are taken: after a crash they are carried out
    /// again, and a note that memory has already is not added twice. A failure is told, and is not tried again.
    async fn remember_ordered(&self, facts: &mut Vec<SessionRecord>) {
        let mut failures = Vec::new();
        for fact in &*facts {
            let SessionRecord::OrderTaken(OrderTaken { order, .. }) = fact else { continue };
            let OrderKind::Remember { text, token } = &order.kind else { continue };
            let remembered = match text {
                Some(text) => remember_ordered(&self.runtime, self.log.slot(), text, token.as_deref()).await,
                None => extract_now(&self.runtime, self.log.slot()).await,
            };
            if let Err(error) = remembered {
                let text = format!("could not remember it: {error}");
                failures.push(SessionRecord::Warning(Warning::new("not_remembered", text)));
            }
        }
        facts.extend(failures);
    }

    /// Loads the toolset and the policy for a new turn.
    fn reload_toolset(&mut self, tools: Arc<OfferedTools>) {
        let model = self.model_chain().primary();
        self.toolset = Toolset::new(&self.runtime, self.log.state(), model.name(), Some(tools));
        self.policy = self.toolset.policy(&self.runtime);
    }

    fn wants_turn(&self) -> bool {
        let state = self.state();
        crate::session::decide::should_start_turn(state, &self.policy)
    }

    /// Whether there is something to do although no turn is open.
    fn has_work(&self) -> bool {
        self.wants_turn()
            || self.state().compaction.requested.is_some()
            || self.slot().is_idle_work_requested()
    }

    /// Whether a client waits for this worker to leave, and no task's end is about to begin a turn.
    fn should_leave(&self) -> bool {
        !self.waiter.has_gathered() && self.slot().is_release_requested()
    }

    fn should_wake(&self, wake_on: WakeOn) -> bool {
        match wake_on {
            WakeOn::Cancel => self.should_end_turn(),
            WakeOn::RetryNow { seen } => {
                let requests = self.state().turn.as_ref().map_or(0, |turn| turn.retry_now_count);
                self.should_end_turn() || requests > seen || self.has_new_model_choice()
            }
            WakeOn::Input => self.has_work() || self.should_leave(),
            WakeOn::Answer(question) => self.should_end_turn() || self.state().question(question).is_none(),
            WakeOn::Elicitations { open } => {
                let questions = self.state().questions.iter();
                let is_elicitation = |question: &&Question| question.kind == QuestionKind::Elicitation;
                self.should_end_turn() || questions.filter(is_elicitation).count() < open
            }
            WakeOn::Nothing => false,
        }
    }
}

/// The interface for actions.
impl Worker {
    pub(crate) fn runtime(&self) -> &Arc<RuntimeShared> {
        &self.runtime
    }

    pub(crate) fn slot(&self) -> &SessionSlot {
        self.log.slot()
    }

    pub(crate) fn id(&self) -> SessionId {
        self.log.id()
    }

    pub(crate) fn key(&self) -> &str {
        &self.slot().key
    }

    pub(crate) fn state(&self) -> &State {
        self.log.state()
    }

    /// The permission mode: the session's own, or else that of its parent, or else the configured one.
    pub(crate) fn permission_mode(&self) -> PermissionMode {
        let state = self.state();
        let of_parent = state.parent().map(|parent| parent.mode);
        state.permission.mode.or(of_parent).unwrap_or(self.runtime.config.settings.approval.mode)
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    pub(crate) fn models(&self) -> &ModelSelection {
        &self.models
    }

    pub(crate) fn models_mut(&mut self) -> &mut ModelSelection {
        &mut self.models
    }

    /// Appends facts and blobs. When this returns, they are on disk, in the state, and shown to every watcher.
    ///
    /// If that took more than one try, the turn must end (`policy.forced_end`), and nothing new may begin before it
    /// has.
    pub(crate) async fn commit(&mut self, facts: Vec<SessionRecord>, blobs: Vec<Blob>) -> WorkerResult<()> {
        let committed = self.log.commit(&facts, blobs).await;
        if let Some(reason) = self.log.take_delay_reason() {
            self.policy.forced_end = Some(reason);
        }
        committed
    }

    /// Done when it is certain that no other process runs the session. An effect on the world waits for this.
    pub(crate) fn confirm_alone(&self) -> impl Future<Output = ()> + Send + use<> {
        let (runtime, lease) = (self.runtime.clone(), self.log.lease().clone());
        async move { runtime.confirm_lease(&lease).await }
    }

    /// Shows watchers an event that is not recorded.
    pub(crate) fn show(&self, kind: EventKind) {
        self.log.show(kind);
    }

    /// Waits for work to finish. Meanwhile takes the inbox, records ended tasks and renews the lease.
    pub(crate) async fn wait_for<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        wake_on: WakeOn,
        deadline: Option<Instant>,
    ) -> WorkerResult<WaitOutcome<T>> {
        self.update_deadline();
        loop {
            if self.should_wake(wake_on) {
                return Ok(WaitOutcome::Interrupted);
            }
            let timer = deadline.into_iter().chain(self.waiter.timer_for(wake_on)).min();
            match self.next_wakeup(work, timer).await? {
                Wakeup::Done(done) => return Ok(WaitOutcome::Done(done)),
                Wakeup::Suspended => return Ok(WaitOutcome::Suspended),
                Wakeup::Timer => {
                    self.update_deadline();
                    self.update_gather_timer();
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Ok(WaitOutcome::Deadline);
                    }
                }
                Wakeup::Notified | Wakeup::Heartbeat => {}
            }
            self.take_inbox().await?;
            record_task_news(self).await?;
            self.update_deadline();
        }
    }

    /// Waits until the work is done or something else wakes the worker. Takes nothing from the inbox. Renews the
    /// lease.
    pub(crate) async fn next_wakeup<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        timer: Option<Instant>,
    ) -> WorkerResult<Wakeup<T>> {
        let wakeup = self.waiter.next_wakeup(&self.log.slot().wake_notify, work, timer).await;
        if matches!(wakeup, Wakeup::Heartbeat) {
            self.log.renew_lease().await?;
        }
        Ok(wakeup)
    }

    /// The records that wait in the inbox, without taking them.
    pub(crate) async fn peek_inbox(&self) -> Vec<InboxRecord> {
        self.inbox.peek(&*self.runtime.journal).await
    }

    /// Whether the turn should end: the user cancelled it, its time is over, or the journal refused a record.
    pub(crate) fn should_end_turn(&self) -> bool {
        let state = self.state();
        let is_input_cancelled =
            state.turn.is_none() && state.pending_inputs.iter().any(|input| input.cancelled);
        state.is_cancelled() || is_input_cancelled || self.policy.must_end_turn()
    }

    /// The models of this session.
    pub(crate) fn model_chain(&self) -> Arc<ModelChain> {
        self.runtime.model_chain_of(&self.slot().key)
    }

    /// Uses the model that a client asked for with the inputs of the turn that begins. They are on record, so a turn that
    /// a killed process could not begin gets the same model.
    pub(crate) fn use_requested_model(&self) {
        let inputs = self.state().pending_inputs.iter().rev().filter(|input| !input.cancelled);
        let requested = inputs.filter_map(|input| input.client.as_ref()?.model.as_deref()).next();
        if let Some(name) = requested {
            self.runtime.use_requested_model(&self.slot().key, name);
        }
    }

    /// Whether the user has chosen another model since this worker last called one.
    pub(crate) fn has_new_model_choice(&self) -> bool {
        !self.models.is_of_chain(&self.model_chain())
    }

    /// Computes the deadline of the open turn (`limits.seconds_per_turn`).
    pub(crate) fn update_deadline(&mut self) -> Option<Instant> {
        let seconds = self.runtime.config.settings.limits.seconds_per_turn;
        self.policy.is_out_of_time = self.waiter.update_deadline(self.log.state().turn.as_ref(), seconds);
        self.waiter.turn_deadline()
    }

    /// Starts the gather timer if a task's end should wake the session and no turn is open.
    pub(crate) fn update_gather_timer(&mut self) {
        let state = self.log.state();
        let has_waking_end = state.turn.is_none() && state.tasks.should_wake(self.policy.wake);
        self.policy.is_batching_task_ends = self.waiter.update_gather_timer(has_waking_end);
    }

    /// Whether a client that could answer watches this session, or one above it: a subagent's question shows there.
    pub(crate) fn is_attended(&self) -> bool {
        let above = self.state().parent().map(|parent| parent.ancestors.clone()).unwrap_or_default();
        let slots = above.iter().filter_map(|above| self.runtime.session_in_memory(above.session));
        self.slot().is_attended() || slots.into_iter().any(|slot| slot.is_attended())
    }

    /// Restarts the time after which an idle session leaves memory.
    pub(crate) fn mark_active(&mut self) {
        self.waiter.mark_active();
    }

    /// Sets whether the next model call fits the limits on spending.
    pub(crate) fn set_budget(&mut self, check: BudgetCheck) {
        self.policy.limits.budget = check;
    }

    /// Keeps why the ledger refused a call, for the next decision.
    pub(crate) fn refuse_call(&mut self, check: BudgetCheck) {
        self.refused_call = Some(check);
    }

    /// Takes why the ledger refused the last call.
    pub(crate) fn take_refused_call(&mut self) -> Option<BudgetCheck> {
        self.refused_call.take()
    }

    /// Sets the context limits of the next model.
    pub(crate) fn set_context_room(&mut self, space: ContextLimits) {
        self.policy.context = space;
    }

    /// Forgets the failures of a turn that has ended.
    pub(crate) fn clear_failures(&mut self) {
        self.policy.forced_end = None;
        self.runtime.worker_backoff.clear(self.log.slot());
    }

    /// Replays the session's records again, before a compaction writes their text anew.
    pub(crate) async fn reload_state(&mut self) {
        self.log.reload_state().await;
    }

    /// Between turns, loads the toolset for a new turn. Within a turn, the toolset of the epoch stays in use.
    pub(crate) async fn reload_toolset_between_turns(&mut self) -> WorkerResult<()> {
        if self.state().turn.is_none() {
            let (space, limits) = (self.policy.context.clone(), self.policy.limits.clone());
            let tools = tools_for_next_epoch(self).await;
            self.reload_toolset(tools);
            (self.policy.context, self.policy.limits) = (space, limits);
            self.update_gather_timer();
        }
        Ok(())
    }
}

/// Whether the journal refused only these records and can still append others.
pub(crate) fn is_record_refused(error: &Error) -> bool {
    matches!(
        error,
        Error::Journal(
            JournalError::TooLarge { .. } | JournalError::BadRecord { .. } | JournalError::MissingBlob { .. }
        )
    )
}
