//! The handle to one session.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longhaul_journal::{Blob, Holder, Journal, SessionEntry, check_size, name_session};
use longhaul_memory::{Extraction, PageEdited};
use longhaul_protocol::{
    CompactDone, EndedTask, InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, PermissionMode,
    Question, QuestionId, Seq, SessionId, StreamName, TaskId, TurnEnded,
};
use tokio::task::spawn_blocking;

use super::accepted::{Accepted, AcceptedOrder, RepeatCheck, accept_input, accept_order};
use super::begin::{SessionStart, begin_session};
use super::cancel::{CANCEL_GRACE, CancelOutcome, cancel_turn};
use super::events::{EventSources, SessionEvents};
use super::follow::{FollowSources, Follower};
use super::local::{LocalSession, run_here};
use super::overview::{SessionActivity, session_overview};
use super::questions::{answer_question, open_questions, recorded_answer};
use super::recorded_events::RecordedEvents;
use super::remote::{RemoteSession, is_running};
use super::request::{EventSink, PendingRequest, Request, RequestMark, RequestOutcome, Settled, UserMessage};
use super::status::{SessionStatus, session_status};
use super::watch::Watcher;
use crate::Redactor;
use crate::memory;
use crate::replay::{load, load_through};
use crate::session::state::State;
use crate::worker::WorkerStop;
use crate::{Error, Result};

/// One session. The same handle works whether this process or another one runs the session. Requests go to the
/// process that runs it. If that process ends, the handle's own runtime continues the session.
///
/// A handle from [`Runtime::session`](crate::Runtime::session) can run its session. A handle from [`Client::session`](crate::Client::session)
/// can't, so another process has to.
#[derive(Clone)]
pub struct Session {
    journal: Arc<dyn Journal>,
    redactor: Arc<Redactor>,
    link: Link,
}

#[derive(Clone)]
enum Link {
    Local(LocalSession),
    Detached { key: String, id: Arc<OnceLock<SessionId>> },
}

impl Session {
    pub(crate) fn local(local: LocalSession) -> Self {
        let (journal, redactor) = (local.runtime.journal.clone(), local.runtime.redactor.clone());
        Self { journal, redactor, link: Link::Local(local) }
    }

    /// A handle without a runtime.
    pub(super) fn detached(
        journal: Arc<dyn Journal>,
        redactor: Arc<Redactor>,
        key: &str,
        id: OnceLock<SessionId>,
    ) -> Self {
        let link = Link::Detached { key: key.to_owned(), id: Arc::new(id) };
        Self { journal, redactor, link }
    }

    /// The key by which people find the session.
    pub fn key(&self) -> &str {
        match &self.link {
            Link::Local(local) => &local.slot.key,
            Link::Detached { key, .. } => key,
        }
    }

    /// The session's id, if the session was ever used.
    pub fn id(&self) -> Option<SessionId> {
        match &self.link {
            Link::Local(local) => local.slot.id.get().copied(),
            Link::Detached { id, .. } => id.get().copied(),
        }
    }

    /// The journal that holds the session.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The session's id, looked up in the journal if this handle does not know it yet.
    pub(super) async fn known_id(&self) -> Result<Option<SessionId>> {
        match &self.link {
            Link::Local(local) => local.known_id().await,
            Link::Detached { key, id } => {
                if id.get().is_none()
                    && let Some(entry) = self.journal.session(key).await?
                {
                    let _ = id.set(entry.id);
                }
                Ok(id.get().copied())
            }
        }
    }

    /// The session in the list of sessions, also if it has got another key since this handle was made.
    pub(super) async fn entry(&self) -> Result<Option<SessionEntry>> {
        match self.known_id().await? {
            Some(id) => Ok(self.journal.session_with_id(id).await?),
            None => Ok(None),
        }
    }

    fn remote(&self, id: SessionId) -> RemoteSession {
        let (journal, redactor) = (self.journal.clone(), self.redactor.clone());
        RemoteSession { journal, redactor, key: self.key().to_owned(), id }
    }

    /// Sends a text and waits for the end of the turn that answers it.
    pub async fn send(&self, text: impl Into<String>) -> Result<TurnEnded> {
        match self.complete(Request::Send(text.into().into()), None).await? {
            RequestOutcome::Ended(ended) => Ok(ended),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Err(Error::Suspended),
        }
    }

    /// Waits for the end of the open turn, or of the turn that the inbox begins. `None` if there is neither.
    pub async fn resume(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Resume).await
    }

    /// Ends the wait before a retry. If the last turn failed, runs it again. `None` if there was nothing to do.
    pub async fn retry(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Retry).await
    }

    /// Continues an answer that a failure, a crash or the user interrupted. Otherwise waits for the open turn. `None`
    /// if there was neither.
    pub async fn go_on(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Continue).await
    }

    /// Returns when no task runs and no turn is open, or when a question waits for an answer.
    pub async fn settle(&self) -> Result<Settled> {
        match self.complete(Request::Settle, None).await? {
            RequestOutcome::Settled(settled) => Ok(settled),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(Settled::Rests),
        }
    }

    /// Compacts the context, at once or between two steps of the open turn. `None` if nothing has happened since the
    /// last compaction.
    pub async fn compact(&self) -> Result<Option<CompactDone>> {
        self.compact_with(None).await
    }

    /// Like [`compact`](Self::compact). `focus` says what the summary should focus on.
    pub async fn compact_with(&self, focus: Option<String>) -> Result<Option<CompactDone>> {
        match self.complete(Request::Compact(focus), None).await? {
            RequestOutcome::Compacted(done) => Ok(Some(done)),
            RequestOutcome::NotCompacted(reason) => Err(Error::NotCompacted { reason }),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(None),
        }
    }

    async fn complete_turn(&self, request: Request) -> Result<Option<TurnEnded>> {
        match self.complete(request, None).await? {
            RequestOutcome::Ended(ended) => Ok(Some(ended)),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(None),
        }
    }

    /// Starts a request. The returned value has its events and its outcome.
    pub fn begin(&self, request: Request) -> PendingRequest {
        PendingRequest::start(self, request, self.watcher(), None)
    }

    /// Carries out a request in the process that runs the session. If no other process does, this one takes the
    /// session.
    pub(super) async fn complete(
        &self,
        mut request: Request,
        mut sink: Option<EventSink<'_>>,
    ) -> Result<RequestOutcome> {
        let asked = request.clone();
        let mark = RequestMark::new(self.head().await?);
        let (mut current, mut is_handed_over) = (mark, false);
        loop {
            let here = match &self.link {
                Link::Local(local) => run_here(local, &request, current, sink.as_mut()).await,
                Link::Detached { .. } => Ok(RequestOutcome::Abandoned),
            };
            let outcome = match (here, self.known_id().await?) {
                (Ok(RequestOutcome::Abandoned) | Err(WorkerStop::HeldElsewhere(_)), Some(id)) => {
                    self.remote(id).run(&request, current, sink.as_mut()).await?
                }
                (Ok(RequestOutcome::Abandoned), None) => RequestOutcome::Nothing,
                (Err(WorkerStop::TakenOver(_)), _) => RequestOutcome::Abandoned,
                (outcome, _) => outcome.map_err(WorkerStop::into_error)?,
            };
            match outcome {
                RequestOutcome::Abandoned if self.can_run() => {}
                RequestOutcome::Nothing if is_handed_over => {
                    return Ok(self.recorded_outcome(&asked, mark).await?.unwrap_or(outcome));
                }
                outcome => return Ok(outcome),
            }
            // The request is in the inbox. Its outcome may be on record already; otherwise it is resumed.
            if let Some(outcome) = self.recorded_outcome(&asked, mark).await? {
                return Ok(outcome);
            }
            is_handed_over = true;
            request = request.after_handover();
            current = RequestMark::new(self.head().await?);
        }
    }

    /// The last record of the session; 0 if it was never used.
    async fn head(&self) -> Result<Seq> {
        match self.known_id().await? {
            Some(id) => Ok(self.journal.head(&StreamName::session(id)).await?.seq),
            None => Ok(0),
        }
    }

    /// Whether this handle has a runtime that can run the session.
    fn can_run(&self) -> bool {
        matches!(self.link, Link::Local(_))
    }

    async fn recorded_outcome(&self, request: &Request, mark: RequestMark) -> Result<Option<RequestOutcome>> {
        match self.known_id().await? {
            Some(id) => self.remote(id).recorded_outcome(request, mark).await,
            None => Ok(None),
        }
    }

    /// Puts an input into the inbox. When this returns, the input is on disk, and the process that runs the session
    /// answers it. Two inputs with the same idempotency key count as one.
    pub async fn put(&self, input: Input, idempotency_key: Option<&str>) -> Result<Accepted> {
        self.put_with_blobs(input, vec![], idempotency_key.map(|key| (key, RepeatCheck::Key))).await
    }

    /// Like [`put`](Self::put), for a message that may have images. The same key with another message is
    /// [`Error::KeyReused`].
    pub async fn put_message(
        &self,
        message: &UserMessage,
        mode: JoinMode,
        idempotency_key: Option<&str>,
    ) -> Result<Accepted> {
        let input = message.input(InputId::generate(), mode);
        let key = idempotency_key.map(|key| (key, RepeatCheck::KeyAndContent));
        self.put_with_blobs(input, message.blobs(), key).await
    }

    /// Like [`put`](Self::put), with the bytes of the input's images.
    pub async fn put_with_images(&self, input: Input, images: Vec<Blob>, key: &str) -> Result<Accepted> {
        self.put_with_blobs(input, images, Some((key, RepeatCheck::Key))).await
    }

    async fn put_with_blobs(
        &self,
        input: Input,
        blobs: Vec<Blob>,
        key: Option<(&str, RepeatCheck)>,
    ) -> Result<Accepted> {
        if let Link::Local(local) = &self.link {
            return local.put(input, blobs, key).await;
        }
        let record = self.redactor.redact_record(InboxRecord::Input(input).encode());
        // An input that can't be accepted must not create a session.
        check_size(&record)?;
        let id = self.named().await?;
        let accepted = accept_input(&*self.journal, id, record, blobs, key).await?;
        let _ = self.journal.wake_holder(&StreamName::session(id)).await;
        Ok(accepted)
    }

    /// The session's id. Registers the key if it is new.
    async fn named(&self) -> Result<SessionId> {
        match &self.link {
            Link::Local(local) => local.slot.ensure_id(&local.runtime).await,
            Link::Detached { key, id } => {
                let named = name_session(&*self.journal, key).await?;
                let _ = id.set(named);
                Ok(named)
            }
        }
    }

    /// Begins the session in this work folder, unless it has already begun: a session's work folder never changes. The
    /// path is canonical: the turns of a session whose folder lies behind a link are refused.
    pub async fn begin_in(&self, work_dir: &Path) -> Result<SessionStart> {
        begin_session(&*self.journal, self.key(), self.named().await?, Some(work_dir)).await
    }

    /// Begins the session without a work folder, unless it has already begun. It has no file tools and no commands.
    pub async fn begin_without_folder(&self) -> Result<SessionStart> {
        begin_session(&*self.journal, self.key(), self.named().await?, None).await
    }

    /// Puts an order into the inbox without waiting for its outcome. Does nothing for a session that was never used.
    pub async fn order(&self, kind: OrderKind) -> Result<()> {
        match self.known_id().await? {
            Some(_) => self.put_order(kind, None).await.map(drop),
            None => Ok(()),
        }
    }

    /// Puts an order into the inbox. When this returns, the order is on disk, and the process that runs the session
    /// carries it out. Two orders with the same idempotency key count as one.
    pub async fn put_order(&self, kind: OrderKind, idempotency_key: Option<&str>) -> Result<AcceptedOrder> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let order = InboxRecord::Order(Order { id: OrderId::generate(), kind });
        let record = self.redactor.redact_record(order.encode());
        let key = idempotency_key.map(|key| (key, RepeatCheck::KeyAndContent));
        let accepted = accept_order(&*self.journal, id, record, key).await?;
        self.ring(id).await;
        Ok(accepted)
    }

    /// Wakes the process that runs the session. The inbox has something new.
    async fn ring(&self, id: SessionId) {
        match &self.link {
            Link::Local(local) => local.ring(id).await,
            // The holder finds the record even if this wake is lost.
            Link::Detached { .. } => drop(self.journal.wake_holder(&StreamName::session(id)).await),
        }
    }

    /// Adds a text to the context without starting a turn: the model sees it with the next request. When this returns, the
    /// text is on disk, and the worker takes it at once. It counts as data (P8), never as the user's words.
    pub async fn add_context(&self, text: impl Into<String>) -> Result<()> {
        self.named().await?;
        self.order(OrderKind::AddContext { text: text.into() }).await?;
        if let Link::Local(local) = &self.link {
            let _ = local.wake().await;
        }
        Ok(())
    }

    /// Changes the permission mode. It applies to every call that begins once the process that runs the session has recorded it.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<()> {
        self.named().await?;
        self.order(OrderKind::Mode { mode }).await
    }

    /// Cancels the running turn and waits until its end is recorded. `None` if no turn was running.
    pub async fn cancel(&self) -> Result<Option<TurnEnded>> {
        match self.cancel_within(CANCEL_GRACE).await? {
            CancelOutcome::Ended(ended) => Ok(Some(ended)),
            CancelOutcome::NoTurn => Ok(None),
            CancelOutcome::Pending => Err(Error::CancelPending { key: self.key().to_owned() }),
        }
    }

    /// Cancels the running turn. If another process runs it, waits at most this long for its end.
    pub async fn cancel_within(&self, grace: Duration) -> Result<CancelOutcome> {
        let Some(id) = self.known_id().await? else { return Ok(CancelOutcome::NoTurn) };
        if let Link::Local(local) = &self.link {
            match local.order(OrderKind::Cancel, OrderId::generate()).await {
                Ok(ended) => return Ok(ended.map_or(CancelOutcome::NoTurn, CancelOutcome::Ended)),
                Err(WorkerStop::HeldElsewhere(_) | WorkerStop::TakenOver(_)) => {}
                Err(stop) => return Err(stop.into_error()),
            }
        }
        cancel_turn(self.journal.clone(), self.key(), id, grace).await
    }

    /// The questions that wait for an answer.
    pub async fn open_questions(&self) -> Result<Vec<Question>> {
        self.open_questions_of(&self.state().await?).await
    }

    /// The questions of this state that wait for an answer.
    pub(super) async fn open_questions_of(&self, state: &State) -> Result<Vec<Question>> {
        match self.known_id().await? {
            Some(id) => open_questions(&*self.journal, id, state).await,
            None => Ok(vec![]),
        }
    }

    /// Answers an open question. `yes` allows the action and `no` refuses it. Any other text refuses it too, and the
    /// model reads the text as the reason.
    pub async fn answer(&self, question: QuestionId, answer: &str) -> Result<()> {
        self.put_answer(question, answer).await.map(drop)
    }

    /// Like [`answer`](Self::answer). Returns the order that answers the question.
    pub async fn put_answer(&self, question: QuestionId, answer: &str) -> Result<AcceptedOrder> {
        let missing = || Error::NoSuchQuestion {
            key: self.key().to_owned(),
            question: question.to_string(),
            known: "the session is empty".to_owned(),
        };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let answer = self.redactor.redact(answer);
        let accepted = answer_question(&*self.journal, self.key(), id, question, &answer).await?;
        self.ring(id).await;
        Ok(accepted)
    }

    /// The order that gave this answer to this question, if one did.
    pub async fn recorded_answer(&self, question: QuestionId, answer: &str) -> Result<Option<AcceptedOrder>> {
        match self.known_id().await? {
            Some(id) => recorded_answer(&*self.journal, id, question, &self.redactor.redact(answer)).await,
            None => Ok(None),
        }
    }

    /// The events of the session from now on: those of this process, and during requests those of the process that
    /// works on them.
    pub fn events(&self, sources: EventSources) -> SessionEvents {
        SessionEvents::new(self, sources)
    }

    /// Everything that happens after this record, without a gap and wherever the session runs. 0 means from the
    /// beginning.
    pub async fn follow(&self, after: Seq) -> Result<Follower> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let state = load_through(&*self.journal, self.key(), id, after).await?;
        let sources = match &self.link {
            Link::Local(local) => FollowSources::with_runtime(self.journal.clone(), &local.runtime),
            Link::Detached { .. } => FollowSources::journal(self.journal.clone()),
        };
        Ok(Follower::start(sources, self.key(), id, state))
    }

    /// The events of the records after `after`, up to the record `through`. 0 means from the beginning.
    pub async fn recorded_events(&self, after: Seq, through: Seq) -> Result<RecordedEvents> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let state = load_through(&*self.journal, self.key(), id, after).await?;
        Ok(RecordedEvents::new(self.journal.clone(), self.key(), id, state, through))
    }

    /// The events of the session in this process from now on. A detached handle sees nothing.
    pub fn watch(&self) -> Watcher {
        self.watcher().unwrap_or_else(Watcher::closed)
    }

    pub(super) fn watcher(&self) -> Option<Watcher> {
        match &self.link {
            Link::Local(local) => Some(local.watch()),
            Link::Detached { .. } => None,
        }
    }

    /// The session's state, folded from its records.
    pub async fn state(&self) -> Result<State> {
        match self.known_id().await? {
            Some(id) => load(&*self.journal, self.key(), id).await,
            None => Ok(State::default()),
        }
    }

    /// What the session is doing and how far it has come.
    pub async fn status(&self) -> Result<SessionStatus> {
        session_status(self).await
    }

    /// What the session is doing, in short.
    pub async fn activity(&self) -> Result<SessionActivity> {
        match self.entry().await? {
            Some(entry) => Ok(session_overview(&*self.journal, &entry).await?.activity),
            None => Ok(SessionActivity::Idle),
        }
    }

    /// Whether a turn is open, or an accepted input waits for its turn.
    pub async fn is_unfinished(&self) -> Result<bool> {
        let Some(entry) = self.entry().await? else { return Ok(false) };
        let state = self.state().await?;
        let wake = match &self.link {
            Link::Local(local) => local.runtime.wake(),
            Link::Detached { .. } => crate::config::Wake::Never,
        };
        Ok(crate::session::Work::of(&state, entry.inbox_head, wake).is_unfinished())
    }

    /// The other process that holds the session, if one does.
    pub async fn other_holder(&self) -> Result<Option<Holder>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        Ok(self.journal.live_holder(&StreamName::session(id)).await?.filter(Holder::is_another))
    }

    /// Whether a worker of this process runs the session right now.
    pub(super) fn has_worker_here(&self) -> bool {
        matches!(&self.link, Link::Local(local) if local.slot.has_worker())
    }

    /// Whether this process holds the session.
    pub async fn is_held_here(&self) -> Result<bool> {
        let Some(id) = self.known_id().await? else { return Ok(false) };
        let holder = self.journal.holder(&StreamName::session(id)).await?;
        Ok(holder.is_some_and(|holder| !holder.is_another()))
    }

    /// Whether a process holds the session, or hosts its home and would take it.
    pub async fn is_running(&self) -> Result<bool> {
        match self.known_id().await? {
            Some(id) => is_running(&*self.journal, id).await,
            None => Ok(false),
        }
    }

    pub(super) fn runtime_handle(&self) -> Result<&LocalSession> {
        match &self.link {
            Link::Local(local) => Ok(local),
            Link::Detached { key, .. } => Err(Error::NotRunning { key: key.clone() }),
        }
    }

    /// Records that the user is active, so that the session does not count as idle.
    pub fn touch(&self) {
        if let (Link::Local(local), Some(id)) = (&self.link, self.id()) {
            local.runtime.activity.record_activity(id);
        }
    }

    /// Uses this model from the session's next request on, with the configured fallbacks. The choice is recorded with that
    /// request and belongs to the session from then on: a later runtime calls this model, unless `--model` names another.
    pub fn use_model(&self, name: &str) -> Result<()> {
        let local = self.runtime_handle()?;
        local.runtime.set_session_model(self.key(), name)?;
        local.slot.wake_notify.notify_one();
        Ok(())
    }

    /// Releases the session's lease as soon as nothing runs in it, and returns when this process no longer holds it.
    /// The next input acquires it again.
    pub async fn release(&self) {
        if let Link::Local(local) = &self.link {
            local.slot.release().await;
        }
    }

    /// Takes the session's lease: the worker records what became of tasks and watches those that run. An open turn goes on. An error
    /// if another process holds the lease.
    pub async fn wake(&self) -> Result<()> {
        self.runtime_handle()?.wake().await.map_err(WorkerStop::into_error)
    }

    /// Ended tasks whose end the model does not know yet.
    pub async fn notifications(&self) -> Result<Vec<EndedTask>> {
        let state = self.state().await?;
        let unannounced = state.tasks.unannounced_ends();
        Ok(unannounced
            .map(|(task, end)| EndedTask { task: task.clone(), end: end.clone(), told: false })
            .collect())
    }

    /// Kills a task and returns when none of its processes runs any more.
    pub async fn kill_task(&self, task: TaskId) -> Result<()> {
        let state = self.state().await?;
        if state.tasks.get(task).is_none() {
            let ids: Vec<String> = state.tasks.all().iter().map(|task| task.id().to_string()).collect();
            let known = if ids.is_empty() {
                "there are none".to_owned()
            } else {
                format!("it has {}", ids.join(", "))
            };
            return Err(Error::NoSuchTask { key: self.key().to_owned(), task: task.to_string(), known });
        }
        let tasks = Arc::clone(&self.runtime_handle()?.runtime.tasks);
        let killed = spawn_blocking(move || tasks.kill(task)).await.unwrap_or(Ok(()));
        killed.map_err(|error| Error::Keeper(Arc::new(error)))
    }

    /// Extracts what is worth remembering since the last extract. `None` if memory is off or the session was never used.
    pub async fn extract(&self) -> Result<Option<Extraction>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        let local = self.runtime_handle()?;
        memory::extract_session(&local.runtime, &local.slot, id).await
    }

    /// The last record that memory has read; 0 if none.
    pub async fn extracted_through(&self) -> Result<Seq> {
        match self.known_id().await? {
            Some(id) => Ok(longhaul_memory::extracted_through(&*self.journal, id).await?),
            None => Ok(0),
        }
    }

    /// Adds a text to the core page of the session's memory.
    pub async fn remember(&self, text: &str) -> Result<PageEdited> {
        let id = self.known_id().await?;
        memory::remember(&self.runtime_handle()?.runtime, self.key(), id, text).await
    }
}
