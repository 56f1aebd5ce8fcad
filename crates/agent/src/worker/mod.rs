//! The worker of one session: takes what is in the inbox, decides, acts, appends what happened.
//!
//! It is the only one who writes the session's stream, under the session's lease. It carries an action to its end before it
//! asks what is next, and while it waits for something it attends to its inbox and its lease.

pub(crate) mod commit;
pub(crate) mod inbox;
pub(crate) mod task_monitor;
pub(crate) mod tasks;
pub(crate) mod toolset;
pub(crate) mod wait;

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use longhaul_journal::{Error as JournalError, Lease};
use longhaul_protocol::{EventKind, QuestionId, Seq, SessionId, StreamName};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::replay::load;
use crate::runtime::Inner;
use crate::runtime::slot::Shared;
use crate::session::decide::{Action, Policy, TurnEnding, decide};
use crate::session::state::State;
use crate::turn::request::Asking;
use crate::worker::toolset::Equipment;
use crate::worker::wait::{Attended, Heed};
use crate::{Error, Result};

/// How often the inbox is looked at if nobody rings, and the lease is renewed.
const PULSE: Duration = Duration::from_secs(1);
/// The first wait before what may pass is tried again; it doubles.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(250);
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    pub(crate) runtime: Arc<Inner>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) equipment: Equipment,
    pub(crate) asking: Asking,
    pub(crate) id: SessionId,
    pub(crate) lease: Lease,
    /// How far the inbox was read.
    pub(crate) inbox_read: Seq,
    pub(crate) suspend: watch::Receiver<bool>,
    /// When the ends of tasks that are not told yet begin a turn.
    pub(crate) gathers_until: Option<Instant>,
    /// When the time of the open turn is over.
    pub(crate) turn_ends_by: Option<Instant>,
    pub(crate) pulse: Interval,
    pub(crate) rests_since: Instant,
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

/// What something that a worker does comes to.
pub(crate) type Step<T> = std::result::Result<T, Stopped>;

/// Holds a session for as long as it has something to do.
pub(crate) async fn run(runtime: Arc<Inner>, shared: Arc<Shared>) {
    let mut suspension = runtime.suspension();
    let mut must_end = None;
    let mut wait = FIRST_RETRY;
    loop {
        let why = match hold(&runtime, &shared, must_end.take()).await {
            // Only now is the lease free: whoever sees that nobody is here can take it.
            Ok(()) if shared.may_leave() => {
                runtime.worker_backoff.clear(&shared);
                return;
            }
            Ok(()) => continue,
            Err(Stopped::Suspended) => Error::Suspended,
            Err(Stopped::Failed(error)) => named(error, &shared.key),
        };
        // Whoever watches should know, also where nobody waits for an outcome.
        if !matches!(why, Error::Suspended | Error::RunsElsewhere { .. }) {
            let warning = EventKind::Warning { code: "session_stopped".to_owned(), text: why.to_string() };
            shared.show(&shared.live(None, warning));
        }
        match &why {
            // It may work in a moment, and what was accepted must not wait for somebody to come by.
            Error::Journal(error) if error.may_pass() => {
                tokio::select! {
                    _ = suspension.wait_for(|suspended| *suspended) => {}
                    () = tokio::time::sleep(wait) => {
                        wait = (wait * 2).min(LONGEST_RETRY);
                        continue;
                    }
                }
            }
            // Whatever went wrong in this turn would go wrong again: once more, only to end it.
            Error::Worker { reason, .. } if runtime.worker_backoff.record_failure(&shared) == 1 => {
                must_end = Some(reason.clone());
                continue;
            }
            _ => {}
        }
        shared.left(&why);
        return;
    }
}

fn named(error: Error, key: &str) -> Error {
    match error {
        Error::Journal(JournalError::Fenced { holder, .. }) => {
            let by = holder.map(|holder| format!(" by {holder}")).unwrap_or_default();
            Error::TakenOver { key: key.to_owned(), by }
        }
        error => error,
    }
}

/// Takes the session, works, and gives it back. `must_end`: why the turn that is open may only be ended.
async fn hold(runtime: &Arc<Inner>, shared: &Arc<Shared>, must_end: Option<String>) -> Step<()> {
    let id = shared.named(runtime).await.map_err(Stopped::Failed)?;
    let lease = take(runtime, shared, id).await?;
    let working = whole(&shared.key, async {
        let mut worker = Worker::new(runtime, shared, id, lease.clone()).await.map_err(Stopped::Failed)?;
        worker.policy.forced_end = must_end.filter(|_| worker.state.turn.is_some());
        shared.hub.recorded(worker.state.head);
        shared.arrived();
        // An order that waits may end the turn.
        worker.take_inbox().await?;
        if let Some(turn) = worker.state.turn.as_ref().filter(|turn| !turn.cancelled) {
            let text =
                format!("turn {} was open, and goes on: {}", turn.number, worker.state.describe_open_work());
            worker.show(EventKind::Warning { code: "resumed".to_owned(), text });
        }
        worker.adopt_tasks();
        worker.work().await
    });
    let ended = working.await;
    shared.hub.end();
    shared.leaving();
    // A lease that was taken over is left alone by this; one that can't be given back now is kept for the next time.
    if runtime.journal.release(&lease).await.is_err() {
        shared.keep(lease);
    }
    ended
}

/// Takes the session's lease, or the one that could not be given back the last time.
async fn take(runtime: &Inner, shared: &Shared, id: SessionId) -> Step<Lease> {
    if let Some(kept) = shared.kept() {
        match runtime.journal.renew(&kept).await {
            Ok(()) => return Ok(kept),
            Err(error) if error.may_pass() => {
                shared.keep(kept);
                return Err(error.into());
            }
            Err(_) => {}
        }
    }
    match runtime.journal.acquire(&StreamName::session(id)).await {
        Ok(lease) => Ok(lease),
        Err(JournalError::Held { holder, .. }) => {
            Err(Stopped::Failed(Error::RunsElsewhere { key: shared.key.clone(), holder }))
        }
        Err(error) => Err(error.into()),
    }
}

/// A worker that panics leaves like any other: its lease is given back, and whoever waits is told.
async fn whole(key: &str, work: impl Future<Output = Step<()>>) -> Step<()> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let (key, reason) = (key.to_owned(), "it panicked".to_owned());
            Poll::Ready(Err(Stopped::Failed(Error::Worker { key, reason })))
        })
    })
    .await
}

impl Worker {
    async fn new(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: SessionId, lease: Lease) -> Result<Self> {
        let state = load(&*runtime.journal, &shared.key, id).await?;
        let equipment = Equipment::new(runtime, &state);
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            policy: equipment.policy(runtime),
            asking: Asking::new(runtime.lineup(), &state),
            inbox_read: state.inbox_through,
            runtime: runtime.clone(),
            shared: shared.clone(),
            suspend: runtime.suspension(),
            rests_since: Instant::now(),
            turn_ends_by: None,
            gathers_until: None,
            state,
            equipment,
            id,
            lease,
            pulse,
        })
    }

    /// Works until there is nothing to do for a while, or something stops it.
    async fn work(&mut self) -> Step<()> {
        loop {
            match self.act().await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Stopped::Failed(error)) if self.can_end_turn(&error) => self.give_up(&error).await?,
                Err(stopped) => return Err(stopped),
            }
        }
    }

    /// Does the next thing; false if there is none and the session may leave memory.
    async fn act(&mut self) -> Step<bool> {
        self.take_inbox().await?;
        self.take_ends().await?;
        if *self.suspend.borrow() {
            return Err(Stopped::Suspended);
        }
        self.look_at_the_time();
        if self.state.turn.is_none() && crate::session::decide::should_start_turn(&self.state, &self.policy) {
            self.equipment = Equipment::new(&self.runtime, &self.state);
            self.policy = self.equipment.policy(&self.runtime);
        }
        if self.state.turn.is_some() || crate::session::decide::should_start_turn(&self.state, &self.policy) {
            // Somebody came first.
            self.shared.was_idle(&Ok(false));
        }
        self.policy.context.is_idle = self.shared.is_asked_as_idle();
        if self.state.turn.is_some() || self.has_something_to_do() {
            self.look_at_the_money().await?;
            self.look_at_the_space().await?;
        }
        match decide(&self.state, &self.policy) {
            Action::Rest => {
                self.shared.was_idle(&Ok(false));
                return self.rest().await;
            }
            Action::StartEpoch => self.start_epoch().await?,
            Action::CloseCompaction => self.close_compaction().await?,
            Action::Stub(calls) => self.stub(calls).await?,
            Action::Compact(trigger) => self.compact(trigger).await?,
            Action::BeginTurn(turn) => self.begin_turn(turn).await?,
            Action::CallModel { turn, step } => self.call_model(turn, step).await?,
            Action::CloseAttempt { kept } => self.close_attempt(kept).await?,
            Action::RunTools(calls) => self.run_tools(&calls).await?,
            Action::AwaitAnswer(question) => self.await_answer(question).await?,
            Action::EndTurn(ending) => self.end_turn(vec![], ending).await?,
        }
        self.rests_since = Instant::now();
        Ok(true)
    }

    /// Whether there is something to do although no turn is open.
    pub(crate) fn has_something_to_do(&self) -> bool {
        crate::session::decide::should_start_turn(&self.state, &self.policy)
            || self.state.compaction.requested.is_some()
            || self.shared.is_asked_as_idle()
    }

    async fn rest(&mut self) -> Step<bool> {
        if self.is_to_part() {
            return Ok(false);
        }
        let leaves_at = self.rests_since + self.runtime.config.rest_time;
        // Not before what has come has begun its turn.
        let leaves_at = self.gathers_until.map_or(leaves_at, |until| leaves_at.max(until));
        let mut leave = pin!(tokio::time::sleep_until(leaves_at));
        match self.attend(&mut leave, Heed::Input, None).await? {
            Attended::Suspended => Err(Stopped::Suspended),
            Attended::Called | Attended::Due => Ok(true),
            // It may have heard something meanwhile, and then it stays for longer.
            Attended::Done(()) => Ok(self.gathers_until.is_some()
                || Instant::now() < self.rests_since + self.runtime.config.rest_time),
        }
    }

    /// Whether somebody waits for this to leave, and nothing that came speaks against it.
    pub(crate) fn is_to_part(&self) -> bool {
        self.gathers_until.is_none() && self.shared.is_to_part()
    }

    /// Waits for a person, for as long as the turn may.
    async fn await_answer(&mut self, question: QuestionId) -> Step<()> {
        let mut never = pin!(std::future::pending::<()>());
        match self.attend(&mut never, Heed::Answer(question), None).await? {
            Attended::Suspended => Err(Stopped::Suspended),
            Attended::Called | Attended::Due | Attended::Done(()) => Ok(()),
        }
    }

    /// Whether the end of the turn can be recorded although something else can't.
    fn can_end_turn(&self, error: &Error) -> bool {
        concerns_only_this(error) && self.state.turn.is_some()
    }

    /// Ends a turn of which something can't be recorded: it would be tried again for ever, at the cost of a model call each
    /// time. What is running is brought to its end first; if that can't be recorded either, it is told as unknown.
    async fn give_up(&mut self, error: &Error) -> Step<()> {
        let tried = self.policy.forced_end.replace(error.to_string());
        if tried.is_none() {
            return Ok(());
        }
        self.close_attempt(0).await?;
        self.end_turn(vec![], TurnEnding::failed(error.to_string())).await
    }
}

/// Whether a failure concerns only what was to be recorded, so that something else can be.
pub(crate) fn concerns_only_this(error: &Error) -> bool {
    matches!(
        error,
        Error::Journal(
            JournalError::TooLarge { .. } | JournalError::BadRecord { .. } | JournalError::MissingBlob { .. }
        )
    )
}
