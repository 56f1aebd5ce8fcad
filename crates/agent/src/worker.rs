//! The worker of one session: takes what is in the inbox, decides, acts, appends what happened.
//!
//! It is the only one who writes the session's stream, under the session's lease. Everything that it does passes through
//! [`Worker::commit`], so what watchers see, what the state says and what is on disk are always the same.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Append, Blob, Error as JournalError, Lease, Page};
use longhaul_protocol::{
    EpochReason, EpochStarted, EventKind, InboxRecord, InputTaken, OrderTaken, Record, Seq, SessionCreated,
    SessionId, SessionRecord, StreamName, ToolFinished, TurnEnded,
};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::decide::{Action, Ending, Policy, decide};
use crate::equipment::Equipment;
use crate::events::event_of;
use crate::load::load;
use crate::runtime::Inner;
use crate::session::{Awaited, Shared};
use crate::state::State;
use crate::{Error, Result};

/// A session that has nothing to do leaves memory after this time.
const LEAVES_AFTER: Duration = Duration::from_secs(10);
/// How often the inbox is looked at if nobody rings, and the lease is renewed.
const PULSE: Duration = Duration::from_secs(1);
/// The first wait before what could not be saved is tried again; it doubles.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    pub(crate) runtime: Arc<Inner>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) equipment: Equipment,
    id: SessionId,
    lease: Lease,
    /// How far the inbox was read, which is further than it was taken where a body is gone.
    inbox_read: Seq,
    suspend: watch::Receiver<bool>,
    pulse: Interval,
    rests_since: Instant,
}

/// Why a worker stops in the middle of what it does.
pub(crate) enum Stopped {
    /// The runtime ends. What is open stays open.
    Suspended,
    /// Nothing more can be appended, or what is there can't be read.
    Failed(Error),
}

impl From<JournalError> for Stopped {
    fn from(error: JournalError) -> Self {
        Self::Failed(error.into())
    }
}

/// What became of something that was waited for.
pub(crate) enum Attended<T> {
    Done(T),
    /// What was to be heeded has come.
    Called,
    Suspended,
    /// The time that was set has come.
    Due,
}

/// What ends a wait besides what is waited for and a suspension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heed {
    /// That the turn should end.
    Cancel,
    /// That there is something to do.
    Input,
    Nothing,
}

/// Holds a session for as long as it has something to do.
pub(crate) async fn run(runtime: Arc<Inner>, shared: Arc<Shared>) {
    let guard = Guard(Some(&shared));
    let why = match Worker::begin(&runtime, &shared).await {
        Ok(mut worker) => {
            shared.arrived();
            let stopped = worker.work().await;
            // A lease that was taken over is left alone by this; one that can't be given back expires.
            let _ = runtime.journal.release(&worker.lease).await;
            match stopped {
                None => None,
                Some(Stopped::Suspended) => Some(Error::Suspended),
                Some(Stopped::Failed(error)) => Some(error),
            }
        }
        Err(error) => Some(error),
    };
    if let Some(why) = why {
        // Whoever watches should know, also where nobody waits for an outcome.
        if !matches!(why, Error::Suspended | Error::RunsElsewhere { .. }) {
            let warning = EventKind::Warning { code: "session_stopped".to_owned(), text: why.to_string() };
            shared.show(&shared.live(None, warning));
        }
        shared.left(&why);
    }
    runtime.forget(&shared);
    guard.disarm();
}

/// A worker that panics leaves like any other: whoever waits is told, and the session can be woken again.
struct Guard<'a>(Option<&'a Shared>);

impl Guard<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            let reason = "it was cut short".to_owned();
            shared.left(&Error::Worker { key: shared.key.clone(), reason });
        }
    }
}

impl Worker {
    async fn begin(runtime: &Arc<Inner>, shared: &Arc<Shared>) -> Result<Self> {
        let id = shared.named(runtime).await?;
        let lease = match runtime.journal.acquire(&StreamName::session(id)).await {
            Ok(lease) => lease,
            Err(JournalError::Held { holder, .. }) => {
                return Err(Error::RunsElsewhere { key: shared.key.clone(), holder });
            }
            Err(error) => return Err(error.into()),
        };
        match Self::with_lease(runtime, shared, id, lease.clone()).await {
            Ok(worker) => Ok(worker),
            Err(error) => {
                let _ = runtime.journal.release(&lease).await;
                Err(error)
            }
        }
    }

    async fn with_lease(
        runtime: &Arc<Inner>,
        shared: &Arc<Shared>,
        id: SessionId,
        lease: Lease,
    ) -> Result<Self> {
        let state = load(&*runtime.journal, &shared.key, id).await?;
        let equipment = Equipment::new(runtime, &state);
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            policy: equipment.policy(runtime),
            inbox_read: state.inbox_through,
            runtime: runtime.clone(),
            shared: shared.clone(),
            suspend: runtime.suspension(),
            rests_since: Instant::now(),
            state,
            equipment,
            id,
            lease,
            pulse,
        })
    }

    /// Works until there is nothing to do for a while, or something stops it.
    async fn work(&mut self) -> Option<Stopped> {
        loop {
            match self.act().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(Stopped::Failed(error)) if self.may_end_turn(&error) => {
                    if let Err(stopped) = self.give_up(&error).await {
                        return Some(stopped);
                    }
                }
                Err(stopped) => return Some(stopped),
            }
        }
    }

    /// Ends a turn of which something can't be recorded: it would be tried again for ever, at the cost of a model call each
    /// time.
    async fn give_up(&mut self, error: &Error) -> std::result::Result<(), Stopped> {
        self.close_attempt(0).await?;
        self.end_turn(vec![], Ending::failed(error.to_string())).await
    }

    /// Whether a failure concerns only what was to be recorded, so that the end of the turn can be.
    fn may_end_turn(&self, error: &Error) -> bool {
        let only_that = matches!(
            error,
            Error::Journal(
                JournalError::TooLarge { .. }
                    | JournalError::BadRecord { .. }
                    | JournalError::MissingBlob { .. }
            )
        );
        only_that && self.state.turn.is_some()
    }

    /// Does the next thing; false if there is none and the session may leave memory.
    async fn act(&mut self) -> std::result::Result<bool, Stopped> {
        self.take_inbox().await?;
        if *self.suspend.borrow() {
            return Err(Stopped::Suspended);
        }
        if self.state.turn.is_none() && !self.state.waiting.is_empty() {
            self.equipment = Equipment::new(&self.runtime, &self.state);
            self.policy = self.equipment.policy(&self.runtime);
        }
        match decide(&self.state, &self.policy) {
            Action::Rest => return self.rest().await,
            Action::StartEpoch => {
                let (facts, blobs) = self.new_epoch();
                self.commit(facts, blobs).await?;
            }
            Action::CallModel { turn, step } => self.call_model(turn, step).await?,
            Action::CloseAttempt { kept } => self.close_attempt(kept).await?,
            Action::RunTools(calls) => self.run_tools(calls).await?,
            Action::EndTurn(ending) => self.end_turn(vec![], ending).await?,
        }
        self.rests_since = Instant::now();
        Ok(true)
    }

    async fn rest(&mut self) -> std::result::Result<bool, Stopped> {
        let leave = tokio::time::sleep_until(self.rests_since + LEAVES_AFTER);
        tokio::pin!(leave);
        match self.attend(&mut leave, Heed::Input, None).await? {
            Attended::Suspended => Err(Stopped::Suspended),
            Attended::Called | Attended::Due => Ok(true),
            Attended::Done(()) => Ok(!self.shared.may_leave()),
        }
    }

    /// Waits for something, and meanwhile takes what is put into the inbox and keeps the lease.
    pub(crate) async fn attend<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        heed: Heed,
        due: Option<Instant>,
    ) -> std::result::Result<Attended<T>, Stopped> {
        enum Came {
            Suspension,
            News,
            Pulse,
        }
        loop {
            let called = match heed {
                Heed::Cancel => self.state.cancelled(),
                Heed::Input => !self.state.waiting.is_empty(),
                Heed::Nothing => false,
            };
            if called {
                return Ok(Attended::Called);
            }
            let until = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let came = tokio::select! {
                biased;
                _ = self.suspend.wait_for(|suspended| *suspended) => Came::Suspension,
                () = self.shared.came.notified() => Came::News,
                _ = self.pulse.tick() => Came::Pulse,
                () = until => return Ok(Attended::Due),
                done = &mut *work => return Ok(Attended::Done(done)),
            };
            match came {
                Came::Suspension => return Ok(Attended::Suspended),
                Came::News => {}
                Came::Pulse => self.runtime.journal.renew(&self.lease).await?,
            }
            self.take_inbox().await?;
        }
    }

    /// Takes everything that is in the inbox, in its order, in one append.
    async fn take_inbox(&mut self) -> std::result::Result<(), Stopped> {
        self.shared.looking();
        let inbox = StreamName::inbox(self.id);
        loop {
            let records = self.runtime.journal.read(&inbox, self.inbox_read + 1, Page::default()).await?;
            let Some(last) = records.last() else { return Ok(()) };
            let read = last.seq;
            let mut facts: Vec<SessionRecord> = records.iter().filter_map(taken).collect();
            let mut blobs = vec![];
            if self.state.created.is_none() && !facts.is_empty() {
                let (begin, content) = self.new_epoch();
                facts.splice(..0, begin);
                blobs = content;
            }
            self.commit(facts, blobs).await?;
            self.inbox_read = read;
        }
    }

    /// The facts that begin an epoch, and the session too if it has not begun.
    fn new_epoch(&self) -> (Vec<SessionRecord>, Vec<Blob>) {
        let mut facts = Vec::new();
        if self.state.created.is_none() {
            facts.push(SessionRecord::SessionCreated(SessionCreated {
                id: self.id,
                key: self.shared.key.clone(),
                work_dir: Some(self.equipment.work_dir.display().to_string()),
                origin: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }));
        }
        let (system, tools) = (&self.equipment.system, &self.equipment.tools.content);
        let before = self.state.epoch.as_ref();
        let number = before.map_or(1, |epoch| epoch.number + 1);
        let reason = if before.is_none() { EpochReason::Created } else { EpochReason::Changed };
        facts.push(SessionRecord::EpochStarted(EpochStarted {
            turns: self.state.turns,
            inbox_through: self.state.inbox_through,
            pins: self.state.pins.clone(),
            todo: self.state.todo.clone(),
            folds_from: before.map(|epoch| epoch.folds_from),
            tasks: self.state.tasks.clone(),
            questions: self.state.questions.clone(),
            ..EpochStarted::new(number, reason, system.reference.clone(), tools.reference.clone())
        }));
        (facts, vec![system.blob(), tools.blob()])
    }

    /// Ends the turn. Calls that nobody ran get a result that says so.
    pub(crate) async fn end_turn(
        &mut self,
        mut facts: Vec<SessionRecord>,
        ending: Ending,
    ) -> std::result::Result<(), Stopped> {
        let Some(turn) = &self.state.turn else { return Ok(()) };
        let waiting = turn.calls.iter().filter(|call| call.result.is_none());
        facts.extend(waiting.map(|call| {
            let content = match call.started {
                None => "not run: the turn had ended before",
                Some(_) => "unknown: the turn ended before its result could be recorded",
            };
            let result = ToolFinished::new(call.id, &call.name, content);
            SessionRecord::ToolFinished(ToolFinished { is_error: true, ..result })
        }));
        let Ending { outcome, limit, error } = ending;
        let (turn, text) = (turn.number, turn.text.clone());
        facts.push(SessionRecord::TurnEnded(TurnEnded { turn, outcome, limit, text, error }));
        self.commit(facts, vec![]).await?;
        self.policy.not_saved = None;
        Ok(())
    }

    /// Appends what happened. When this returns it is on disk, in the state, and shown to every watcher.
    pub(crate) async fn commit(
        &mut self,
        facts: Vec<SessionRecord>,
        blobs: Vec<Blob>,
    ) -> std::result::Result<(), Stopped> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut append = Append::under(&self.lease).expecting(self.state.head);
        append = facts.iter().fold(append, |append, fact| append.record(fact.encode()));
        append = blobs.into_iter().fold(append, Append::blob);
        let records = match self.runtime.journal.append(append.clone()).await {
            Ok(records) => records,
            Err(error) if error.may_pass() => self.save_later(append, facts.len(), &error).await?,
            Err(error) => return Err(error.into()),
        };
        for record in &records {
            self.fold(record)?;
        }
        Ok(())
    }

    /// The journal refuses: everybody is told, what happened is kept here and tried again, and the turn will end.
    async fn save_later(
        &mut self,
        append: Append,
        count: usize,
        error: &JournalError,
    ) -> std::result::Result<Vec<Record>, Stopped> {
        let said = error.to_string();
        let reason = said.strip_prefix("not saved: ").unwrap_or(&said).to_owned();
        let text = format!("not saved: {reason}");
        self.policy.not_saved = Some(format!("what happened could not be saved for a while: {reason}"));
        let turn = self.state.turn.as_ref().map(|turn| turn.number);
        let warning = EventKind::Warning { code: "not_saved".to_owned(), text };
        self.shared.show(&self.shared.live(turn, warning));
        self.shared.trouble(&Error::NotSaved { reason });
        let mut wait = FIRST_RETRY;
        loop {
            tokio::select! {
                _ = self.suspend.wait_for(|suspended| *suspended) => return Err(Stopped::Suspended),
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_RETRY),
            }
            match self.runtime.journal.append(append.clone()).await {
                Ok(records) => return Ok(records),
                Err(error) if error.may_pass() => {}
                // It was there after all: the refusal came after the commit.
                Err(JournalError::Conflict { .. }) => {
                    let page = Page { records: count, ..Page::default() };
                    let stream = StreamName::session(self.id);
                    return Ok(self.runtime.journal.read(&stream, self.state.head + 1, page).await?);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn fold(&mut self, record: &Record) -> std::result::Result<(), Stopped> {
        let event = event_of(&self.state, &self.shared.key, record);
        let unreadable = |reason| Error::Unreadable { key: self.shared.key.clone(), reason };
        let fact = SessionRecord::decode(record).map_err(unreadable).map_err(Stopped::Failed)?;
        let had_turn = self.state.turn.is_some();
        self.state.apply(record).map_err(unreadable).map_err(Stopped::Failed)?;
        if let Some(event) = &event {
            self.shared.show(event);
        }
        match &fact {
            SessionRecord::AttemptStarted(started) => {
                let turn = self.state.turn.as_ref().map(|turn| turn.number);
                self.shared.hub.begin(started.attempt, &self.shared.live(turn, EventKind::StepStarted));
            }
            SessionRecord::AttemptEnded(_) => self.shared.hub.end(),
            SessionRecord::InputTaken(input) => self.shared.taken(Awaited::Input(input.id)),
            SessionRecord::OrderTaken(order) => {
                self.shared.taken(Awaited::Order(order.order.id));
                if !had_turn {
                    self.shared.settled(None, &self.state);
                }
            }
            SessionRecord::TurnEnded(ended) => self.shared.settled(Some(ended), &self.state),
            _ => {}
        }
        Ok(())
    }
}

/// What taking a record of the inbox is recorded as; nothing, if its body is gone.
fn taken(record: &Record) -> Option<SessionRecord> {
    let inbox_through = record.seq;
    match InboxRecord::decode(record).ok()? {
        InboxRecord::Input(input) => Some(SessionRecord::InputTaken(InputTaken {
            id: input.id,
            inbox_through,
            text: input.text,
            images: input.images,
            mode: input.mode,
        })),
        InboxRecord::Order(order) => Some(SessionRecord::OrderTaken(OrderTaken { inbox_through, order })),
        InboxRecord::Unknown { .. } => None,
    }
}
