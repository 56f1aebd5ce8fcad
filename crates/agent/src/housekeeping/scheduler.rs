//! The scheduler: one loop that runs background jobs when they are due, while no user waits for them.
//!
//! | job | runs | for |
//! | --- | --- | --- |
//! | idle compaction, idle extraction, consolidation, embeddings | at every check interval, and extraction also after a turn | each session that needs it |
//! | retention | once an hour, after a check; it acts once a day for all processes | the home |
//! | cleanup | once an hour, if the runtime hosts sessions; it acts once an hour for all processes | the home |
//!
//! A check only lists sessions. The jobs run in separate tasks, a few in parallel, so that a slow one delays neither
//! the checks nor most of the others. Sessions whose jobs fail back off. Nothing of this is stored: after a restart,
//! each recent session is checked once. To add a kind of periodic work, add a [`HomeJob`] or a [`SessionJob`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Result as JournalResult, all_sessions};
use longhaul_protocol::SessionId;
use tokio::sync::watch;
use tokio::task::{Id as TaskId, JoinError, JoinSet};
use tokio::time::Instant;

use super::activity::ClockReading;
use super::backoff::Backoff;
use super::session_check::{CheckResult, Idleness, StreamHeads, idleness, run_after_turn, run_session_jobs};
use super::{cleanup, retention};
use crate::compaction::compact_if_idle;
use crate::memory::{consolidate_if_due, embed_if_idle, extract_if_idle};
use crate::runtime::slot::SessionSlot;
use crate::runtime::{RuntimeShared, lock};
use crate::session::state::State;
use crate::worker::WorkerResult;

/// How many sessions are checked in parallel. Each may wait for a model, and none is urgent.
const MAX_PARALLEL_CHECKS: usize = 4;
/// The latest time at which a home job that is due but may not run yet is checked again.
const HOME_JOB_RECHECK: Duration = Duration::from_secs(60 * 60);
/// The longest backoff of a session. A model that never gives a usable answer costs money at each try, and a session
/// is checked for a week.
const MAX_SESSION_DELAY: Duration = Duration::from_secs(6 * 60 * 60);
/// Sessions that were active within this time are compacted while idle. Older ones are compacted when the user comes
/// back, so that starting the program costs nothing for abandoned sessions.
pub(super) const COMPACT_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
/// Sessions that were active within this time are extracted while idle. Older ones are extracted when the user comes
/// back.
pub(super) const EXTRACT_WITHIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A job that runs for an idle session.
pub(crate) struct SessionJob {
    /// The job runs for sessions that were active within this time.
    pub(super) within: Duration,
    /// Returns when the job is done or was not due. True if it did something.
    pub(super) run: SessionJobFn,
}

pub(super) type SessionJobFn = Box<
    dyn for<'a> Fn(&'a Arc<RuntimeShared>, &'a Arc<SessionSlot>, &'a State) -> SessionJobFuture<'a>
        + Send
        + Sync,
>;
pub(super) type SessionJobFuture<'a> = Pin<Box<dyn Future<Output = WorkerResult<bool>> + Send + 'a>>;

/// The jobs of idle sessions, in this order. Each gets the state from before the first job.
pub(crate) fn session_jobs() -> Arc<[SessionJob]> {
    let compact: SessionJobFn =
        Box::new(|runtime, slot, state| Box::pin(compact_if_idle(runtime, slot, state)));
    let extract: SessionJobFn =
        Box::new(|runtime, slot, _| Box::pin(async move { Ok(extract_if_idle(runtime, slot).await?) }));
    let consolidate: SessionJobFn =
        Box::new(|runtime, slot, _| Box::pin(async move { Ok(consolidate_if_due(runtime, slot).await?) }));
    let embed: SessionJobFn =
        Box::new(|runtime, slot, _| Box::pin(async move { Ok(embed_if_idle(runtime, slot).await?) }));
    Arc::new([
        SessionJob { within: COMPACT_WITHIN, run: compact },
        SessionJob { within: EXTRACT_WITHIN, run: extract },
        SessionJob { within: EXTRACT_WITHIN, run: consolidate },
        SessionJob { within: EXTRACT_WITHIN, run: embed },
    ])
}

/// A periodic job of the whole home.
pub(crate) struct HomeJob {
    every: Duration,
    due_at: Instant,
    condition: HomeJobCondition,
    run: fn(Arc<RuntimeShared>) -> HomeJobFuture,
}

/// When a home job may run.
#[derive(Debug, Clone, Copy)]
enum HomeJobCondition {
    /// The last check of this scheduler could list the sessions.
    SessionsListed,
    /// The runtime hosts sessions.
    Hosting,
}

type HomeJobFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl HomeJob {
    /// S5: moves sessions over the limits to the trash. Runs only if the sessions could be listed.
    fn retention() -> Self {
        let run = |runtime: Arc<RuntimeShared>| -> HomeJobFuture {
            Box::pin(async move { retention::prune_daily(&runtime).await })
        };
        let condition = HomeJobCondition::SessionsListed;
        Self { every: retention::CHECK_INTERVAL, due_at: Instant::now(), condition, run }
    }

    /// K16: removes the leftovers of commands. Runs only if the runtime hosts sessions.
    fn cleanup() -> Self {
        let run = |runtime: Arc<RuntimeShared>| -> HomeJobFuture {
            Box::pin(async move { cleanup::remove_leftovers(&runtime).await })
        };
        let condition = HomeJobCondition::Hosting;
        Self { every: cleanup::CLEANUP_INTERVAL, due_at: Instant::now(), condition, run }
    }

    /// Starts the job in a separate task.
    fn start(&mut self, runtime: &Arc<RuntimeShared>, now: Instant) {
        self.due_at = now + self.every;
        runtime.spawn((self.run)(runtime.clone()));
    }
}

/// Runs jobs until it is stopped or the runtime ends. Then cancels the jobs of sessions that still run.
pub(super) async fn run(
    runtime: Arc<RuntimeShared>,
    session_jobs: Arc<[SessionJob]>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut suspension = runtime.suspension();
    let mut scheduler = Scheduler {
        runtime,
        session_jobs,
        home_jobs: vec![HomeJob::retention(), HomeJob::cleanup()],
        has_listed_sessions: false,
        up_to_date: HashMap::new(),
        backoff: Backoff::new(MAX_SESSION_DELAY),
        queues: SessionQueues::default(),
        running_sessions: HashMap::new(),
        running: JoinSet::new(),
    };
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopped| *stopped) => {}
        _ = suspension.wait_for(|suspended| *suspended) => {}
        () = scheduler.run_jobs() => {}
    }
    scheduler.running.shutdown().await;
    drop(scheduler);
    // `SchedulerHandle::stop` waits for this.
    drop(stopped);
}

struct Scheduler {
    runtime: Arc<RuntimeShared>,
    session_jobs: Arc<[SessionJob]>,
    home_jobs: Vec<HomeJob>,
    /// Whether the last check could list the sessions. False before the first one.
    has_listed_sessions: bool,
    /// Y5: sessions that need no check until their streams grow.
    up_to_date: HashMap<SessionId, StreamHeads>,
    backoff: Backoff<SessionId>,
    queues: SessionQueues,
    running_sessions: HashMap<TaskId, QueuedSession>,
    running: JoinSet<CheckResult>,
}

/// A session whose jobs may be due.
#[derive(Debug)]
struct QueuedSession {
    id: SessionId,
    key: String,
    /// When it was queued.
    at: Instant,
}

/// The queued sessions. The two queues take turns, so that neither busy nor idle sessions starve the others.
#[derive(Debug, Default)]
struct SessionQueues {
    /// The idle sessions of the last check.
    idle: VecDeque<QueuedSession>,
    /// Sessions in which a turn has ended since the last check, each once.
    after_turn: VecDeque<QueuedSession>,
    last: Option<CheckReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckReason {
    Idle,
    TurnEnded,
}

impl SessionQueues {
    fn push_after_turn(&mut self, session: QueuedSession) {
        if self.after_turn.iter().all(|queued| queued.id != session.id) {
            self.after_turn.push_back(session);
        }
    }

    fn pop(&mut self) -> Option<(CheckReason, QueuedSession)> {
        let is_idle_next = self.after_turn.is_empty() || self.last == Some(CheckReason::TurnEnded);
        let reason =
            if is_idle_next && !self.idle.is_empty() { CheckReason::Idle } else { CheckReason::TurnEnded };
        self.last = Some(reason);
        let queue = if reason == CheckReason::Idle { &mut self.idle } else { &mut self.after_turn };
        Some((reason, queue.pop_front()?))
    }
}

impl Scheduler {
    async fn run_jobs(&mut self) {
        let runtime = self.runtime.clone();
        let mut interval = runtime.idle.interval.subscribe();
        loop {
            let mut due = pin!(wait_interval(Instant::now(), &mut interval));
            loop {
                let next_home_job = self.start_home_jobs();
                tokio::select! {
                    biased;
                    Some(ended) = self.running.join_next_with_id() => self.finish_check(ended),
                    () = &mut due => break,
                    () = runtime.idle.ended_turns.notify.notified() => self.queue_ended_turns(),
                    () = tokio::time::sleep_until(next_home_job) => {}
                }
            }
            self.check_sessions().await;
            self.start_queued();
        }
    }

    /// Starts the home jobs that are due. Returns when to check again.
    fn start_home_jobs(&mut self) -> Instant {
        let now = Instant::now();
        for job in self.home_jobs.iter_mut().filter(|job| now >= job.due_at) {
            let may_run = match job.condition {
                HomeJobCondition::SessionsListed => self.has_listed_sessions,
                HomeJobCondition::Hosting => self.runtime.is_hosting(),
            };
            if may_run {
                job.start(&self.runtime, now);
            }
        }
        let later = self.home_jobs.iter().map(|job| job.due_at).filter(|due_at| *due_at > now);
        later.min().unwrap_or(now + HOME_JOB_RECHECK)
    }

    /// Lists the sessions and queues the idle ones.
    async fn check_sessions(&mut self) {
        let clock = ClockReading::now();
        let error = self.queue_idle_sessions(clock).await.err().map(|error| error.to_string());
        self.has_listed_sessions = error.is_none();
        let last_error = {
            let mut last_check = lock(&self.runtime.idle.last_check);
            last_check.at = Some(clock.wall);
            std::mem::replace(&mut last_check.error, error.clone())
        };
        if let Some(reason) = error.filter(|reason| last_error.as_ref() != Some(reason)) {
            self.runtime.warn("", "sessions_unlisted", &format!("can't list the sessions: {reason}"));
        }
    }

    async fn queue_idle_sessions(&mut self, clock: ClockReading) -> JournalResult<()> {
        let mut idle = VecDeque::new();
        let mut recent = HashSet::new();
        let runtime = self.runtime.clone();
        let mut sessions = all_sessions(&*runtime.journal);
        while let Some(entry) = sessions.next().await? {
            let idleness = idleness(&runtime, &entry, clock);
            if idleness != Idleness::Dormant {
                recent.insert(entry.id);
            }
            let is_up_to_date = self.up_to_date.get(&entry.id) == Some(&StreamHeads::of(&entry));
            if idleness == Idleness::Idle && !is_up_to_date && self.may_start(entry.id, clock.steady) {
                idle.push_back(QueuedSession { id: entry.id, key: entry.key, at: clock.steady });
            }
        }
        self.up_to_date.retain(|id, _| recent.contains(id));
        self.backoff.retain(|id| recent.contains(id));
        self.queues.idle = idle;
        Ok(())
    }

    /// Queues the sessions whose turns have ended. A session whose jobs run now, or that backs off, is checked when
    /// it is idle.
    fn queue_ended_turns(&mut self) {
        let ended = std::mem::take(&mut *lock(&self.runtime.idle.ended_turns.sessions));
        let at = Instant::now();
        for (id, key) in ended {
            if self.may_start(id, at) {
                self.queues.push_after_turn(QueuedSession { id, key, at });
            }
        }
        self.start_queued();
    }

    fn may_start(&self, id: SessionId, now: Instant) -> bool {
        let is_running = self.running_sessions.values().any(|running| running.id == id);
        !is_running && !self.backoff.is_backing_off(&id, now)
    }

    /// Starts the jobs of queued sessions, up to the limit of parallel ones.
    fn start_queued(&mut self) {
        while self.running.len() < MAX_PARALLEL_CHECKS {
            let runtime = self.runtime.clone();
            let Some((reason, session)) = self.queues.pop() else { return };
            let task = match reason {
                CheckReason::TurnEnded => {
                    self.running.spawn(run_after_turn(runtime, session.id, session.key.clone()))
                }
                CheckReason::Idle => {
                    self.running.spawn(run_session_jobs(runtime, self.session_jobs.clone(), session.id))
                }
            };
            self.running_sessions.insert(task.id(), session);
        }
    }

    fn finish_check(&mut self, ended: Result<(TaskId, CheckResult), JoinError>) {
        let (task, result) = match ended {
            Ok((task, result)) => (task, Ok(result)),
            Err(error) => (error.id(), Err(error)),
        };
        if let Some(session) = self.running_sessions.remove(&task) {
            match result {
                Ok(CheckResult::UpToDate(heads)) => {
                    self.up_to_date.insert(session.id, heads);
                    self.backoff.clear(&session.id);
                }
                Ok(CheckResult::Busy) => {}
                Ok(CheckResult::Failed(error)) => self.record_failure(&session, error.to_string()),
                Err(_) => self.record_failure(&session, "it panicked".to_owned()),
            }
        }
        self.start_queued();
    }

    fn record_failure(&mut self, session: &QueuedSession, reason: String) {
        let text = format!("background work failed: {reason}; will retry later");
        let interval = self.runtime.idle.interval();
        if self.backoff.record_failure(session.id, reason, session.at, interval).is_new_reason {
            self.runtime.warn(&session.key, "idle_failed", &text);
        }
    }
}

/// Waits until an interval has passed since then. A change of the interval also applies to this wait.
async fn wait_interval(since: Instant, interval: &mut watch::Receiver<Duration>) {
    loop {
        // An interval beyond the clock's range never passes.
        let at = since.checked_add(*interval.borrow_and_update());
        let passed = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = passed => return,
            Ok(()) = interval.changed() => {}
        }
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
