//! Waits: the events that can end one, and the worker's clocks (heartbeat, turn deadline, gather timer, idle time).

use std::future::Future;
use std::time::Duration;

use longhaul_protocol::QuestionId;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::clock::now;
use crate::session::state::Turn;
use crate::worker::{WorkerResult, WorkerStop};

/// How often a waiting worker renews its lease and reads its inbox, even if it gets no notification.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long an idle session waits after a task has ended, so that one turn can announce the ends of several tasks.
const TASK_END_GATHER_TIME: Duration = Duration::from_millis(300);

/// The result of [`Worker::wait_for`](crate::worker::Worker::wait_for).
pub(crate) enum WaitOutcome<T> {
    Done(T),
    /// The condition of [`WakeOn`] is met.
    Interrupted,
    Suspended,
    /// The caller's deadline has passed.
    Deadline,
}

impl<T> WaitOutcome<T> {
    /// The result, or `None` if the wait ended before there was one. A suspension stops the worker.
    pub(crate) fn into_done(self) -> WorkerResult<Option<T>> {
        match self {
            Self::Done(done) => Ok(Some(done)),
            Self::Interrupted | Self::Deadline => Ok(None),
            Self::Suspended => Err(WorkerStop::Suspended),
        }
    }
}

/// What interrupts a wait, besides a suspension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeOn {
    /// The turn should end: the user cancelled it, or a limit is reached.
    Cancel,
    /// Like `Cancel`, or the user wants the retry now or has chosen another model.
    RetryNow {
        /// How many such requests the turn had when the wait began.
        seen: u64,
    },
    /// The session has something to do, or should leave memory.
    Input,
    /// The turn should end, or the question has its answer.
    Answer(QuestionId),
    /// The turn should end, or fewer questions of MCP servers than this are open: one has its answer.
    Elicitations {
        open: usize,
    },
    Nothing,
}

/// What ended one round of waiting.
pub(crate) enum Wakeup<T> {
    Done(T),
    Suspended,
    /// Something may be in the inbox, or a task has news.
    Notified,
    Heartbeat,
    Timer,
}

/// The worker's clocks and the runtime's suspension.
pub(super) struct Waiter {
    suspension: watch::Receiver<bool>,
    heartbeat: Interval,
    /// When the time of the open turn is used up.
    turn_deadline: Option<Instant>,
    /// When unannounced ends of tasks begin a turn.
    gather_deadline: Option<Instant>,
    idle_since: Instant,
}

impl Waiter {
    pub(super) fn new(suspension: watch::Receiver<bool>) -> Self {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { suspension, heartbeat, turn_deadline: None, gather_deadline: None, idle_since: Instant::now() }
    }

    pub(super) fn is_suspended(&self) -> bool {
        *self.suspension.borrow()
    }

    /// Waits until the work is done or something else happens first.
    pub(super) async fn next_wakeup<T>(
        &mut self,
        notify: &Notify,
        work: &mut (impl Future<Output = T> + Unpin),
        timer: Option<Instant>,
    ) -> Wakeup<T> {
        let timer = async {
            match timer {
                Some(timer) => tokio::time::sleep_until(timer).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.suspension.wait_for(|suspended| *suspended) => Wakeup::Suspended,
            () = notify.notified() => Wakeup::Notified,
            _ = self.heartbeat.tick() => Wakeup::Heartbeat,
            () = timer => Wakeup::Timer,
            done = work => Wakeup::Done(done),
        }
    }

    /// The worker's own timer for a wait.
    pub(super) fn timer_for(&self, wake_on: WakeOn) -> Option<Instant> {
        match wake_on {
            WakeOn::Nothing => None,
            WakeOn::Input => self.gather_deadline,
            WakeOn::Cancel | WakeOn::RetryNow { .. } | WakeOn::Answer(_) | WakeOn::Elicitations { .. } => {
                self.turn_deadline
            }
        }
    }

    /// Computes the deadline of the open turn and returns whether it has passed. `seconds` is the limit for a turn; 0
    /// means none.
    ///
    /// The time runs from the recorded start of the turn, so a restart does not extend it. Time in which the turn
    /// waits for the user's answer does not count.
    pub(super) fn update_deadline(&mut self, turn: Option<&Turn>, seconds: u64) -> bool {
        let turn = turn.filter(|turn| turn.question_since.is_none());
        let started = turn.and_then(|turn| Some((turn.started_at?, turn.question_wait_ms)));
        let (Some((started, awaited_ms)), 1..) = (started, seconds) else {
            self.turn_deadline = None;
            return false;
        };
        let elapsed_ms = u64::try_from(now().0.saturating_sub(started.0)).unwrap_or(0);
        let elapsed = Duration::from_millis(elapsed_ms.saturating_sub(awaited_ms));
        let left = Duration::from_secs(seconds).saturating_sub(elapsed);
        self.turn_deadline = (!left.is_zero()).then(|| Instant::now() + left);
        left.is_zero()
    }

    /// The deadline of the turn, as last computed.
    pub(super) fn turn_deadline(&self) -> Option<Instant> {
        self.turn_deadline
    }

    /// Starts or stops the gather timer and returns whether it is running. `has_waking_end` says that the session is
    /// idle and a task's end should wake it.
    pub(super) fn update_gather_timer(&mut self, has_waking_end: bool) -> bool {
        if !has_waking_end {
            self.gather_deadline = None;
        } else if self.gather_deadline.is_none() {
            self.gather_deadline = Some(Instant::now() + TASK_END_GATHER_TIME);
        }
        self.gather_deadline.is_some_and(|deadline| Instant::now() < deadline)
    }

    /// Whether a task's end is about to begin a turn.
    pub(super) fn has_gathered(&self) -> bool {
        self.gather_deadline.is_some()
    }

    /// Restarts the idle time.
    pub(super) fn mark_active(&mut self) {
        self.idle_since = Instant::now();
    }

    /// When an idle worker leaves memory. That is not before the gathered ends of tasks have begun their turn.
    pub(super) fn idle_deadline(&self, rest_time: Duration) -> Instant {
        let deadline = self.idle_since + rest_time;
        self.gather_deadline.map_or(deadline, |gathered| deadline.max(gathered))
    }

    /// Whether the worker should stay although its idle deadline has passed: it was active since, or a task has
    /// ended.
    pub(super) fn should_stay(&self, rest_time: Duration) -> bool {
        self.gather_deadline.is_some() || Instant::now() < self.idle_since + rest_time
    }
}
