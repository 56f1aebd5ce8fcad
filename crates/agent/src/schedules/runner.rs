//! All schedules of the home. The process that hosts the home runs them: it sleeps until the next slot of any schedule is due, until
//! a turn ends, or until a process changes a schedule. A thousand schedules at rest cost one timer.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_journal::records;
use longhaul_protocol::{At, ScheduleSpec, Seq, SessionId, SlotAction, StreamName};
use longhaul_schedule::{Timing, Wait};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::action::{ActionReport, ScheduleStore, act, schedule_stream};
use super::catalog::{CatalogEntry, CatalogFold};
use super::state::{ScheduleState, load_state};
use super::work::{Next, Situation, Work, has_begun, next_step};
use crate::clock::now;
use crate::housekeeping::activity::ClockReading;
use crate::runtime::{RuntimeShared, lock};
use crate::{Error, Result};

/// How often to check open runs. A turn that ends in this process is noticed at once.
const RUN_CHECK_MS: i64 = 2_000;
/// The first wait after a failed action. It doubles up to the longest one.
const FIRST_RETRY_MS: i64 = 1_000;
const LONGEST_RETRY_MS: i64 = 60_000;
/// If the wall clock has moved this much more or less than the steady clock, it was set, or the machine slept.
const CLOCK_JUMP: Duration = Duration::from_secs(2);

/// How the rest of the runtime tells the runner that something has changed.
#[derive(Default)]
pub(crate) struct RunnerHandle {
    notify: Notify,
    /// Whether this process hosts the home.
    is_host: AtomicBool,
    ended_turns: Mutex<HashSet<SessionId>>,
    /// The clocks and the head of `schedules` at the host's last scan.
    last_scan: Mutex<Option<(ClockReading, Seq)>>,
}

impl RunnerHandle {
    /// A process has appended to the stream `schedules`.
    pub(crate) fn catalog_changed(&self) {
        self.notify.notify_one();
    }

    /// A turn has ended in this process.
    pub(crate) fn turn_ended(&self, session: SessionId) {
        if self.is_host.load(Ordering::SeqCst) {
            lock(&self.ended_turns).insert(session);
            self.notify.notify_one();
        }
    }

    /// The host has scanned its sessions, as it does once a second: a change that no signal announced is noticed here, and so is a
    /// clock that was set.
    pub(crate) fn host_scanned(&self, is_host: bool, clock: ClockReading, head: Seq) {
        let was_host = self.is_host.swap(is_host, Ordering::SeqCst);
        let last = lock(&self.last_scan).replace((clock, head));
        let has_changed =
            last.is_none_or(|(before, last_head)| last_head != head || has_jumped(before, clock));
        if was_host != is_host || (is_host && has_changed) {
            self.notify.notify_one();
        }
    }
}

fn has_jumped(before: ClockReading, after: ClockReading) -> bool {
    let passed = after.steady.saturating_duration_since(before.steady).as_millis();
    let by_wall = i128::from(after.wall.0) - i128::from(before.wall.0);
    let difference = by_wall - i128::try_from(passed).unwrap_or(i128::MAX);
    difference.unsigned_abs() > CLOCK_JUMP.as_millis()
}

/// Runs the schedules of the home while this process hosts it, until the runtime ends.
pub(crate) async fn run(runtime: Arc<RuntimeShared>) {
    let mut suspension = runtime.suspension();
    let store = ScheduleStore { journal: runtime.journal.clone(), redactor: runtime.redactor.clone() };
    let settings = &runtime.config.settings;
    let (config, at_once) = (settings.schedule.clone(), settings.schedules.at_once);
    let new_runner = || ScheduleRunner::new(store.clone(), config.clone(), at_once);
    let mut runner = new_runner();
    loop {
        let handle = &runtime.schedules;
        let mut next = None;
        if handle.is_host.load(Ordering::SeqCst) {
            let ended = std::mem::take(&mut *lock(&handle.ended_turns));
            // Not cancelled by the suspension: an action that has begun is over within a few appends.
            next = runner.step(now(), &ended).await;
            for (code, text) in runner.take_warnings() {
                runtime.warn("", code, &text);
            }
        } else {
            // Another process may run them now. Its records are read when this process is the host again.
            runner = new_runner();
        }
        let due = async {
            match next {
                Some(at) => {
                    let wait = u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => return,
            () = handle.notify.notified() => {}
            () = due => {}
        }
    }
}

/// All schedules of the home with their states.
pub(crate) struct ScheduleRunner {
    store: ScheduleStore,
    config: Vec<ScheduleSpec>,
    /// How many late runs go on at once.
    at_once: usize,
    catalog: CatalogFold,
    jobs: BTreeMap<String, ScheduleJob>,
    is_loaded: bool,
    runs_checked_at: At,
    warnings: Vec<(&'static str, String)>,
    /// The last error in reading the schedules that was reported.
    reported: Option<String>,
}

/// One schedule in memory.
struct ScheduleJob {
    entry: Arc<CatalogEntry>,
    state: ScheduleState,
    /// Absent until it has begun with its present terms.
    timing: Option<Arc<Timing>>,
    /// What it waits for. `None`: its next action has to be found.
    wait: Option<Wait>,
    check_runs: bool,
    failure: Option<JobFailure>,
    /// The last problem that was reported.
    reported: Option<String>,
    /// Whether an action is running. It has the state meanwhile.
    is_busy: bool,
}

struct JobFailure {
    count: u32,
    retry_at: At,
}

/// A finished action of a schedule.
struct ActionResult {
    id: String,
    state: ScheduleState,
    report: Result<ActionReport>,
}

impl ScheduleRunner {
    pub(crate) fn new(store: ScheduleStore, config: Vec<ScheduleSpec>, at_once: u64) -> Self {
        Self {
            store,
            config,
            at_once: usize::try_from(at_once.max(1)).unwrap_or(usize::MAX),
            catalog: CatalogFold::default(),
            jobs: BTreeMap::new(),
            is_loaded: false,
            runs_checked_at: At(i64::MIN),
            warnings: Vec::new(),
            reported: None,
        }
    }

    /// The warnings for people since the last call: code and text.
    pub(crate) fn take_warnings(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.warnings)
    }

    /// Does everything that is due, and returns when to look again. `ended` are sessions in which a turn has ended.
    pub(crate) async fn step(&mut self, now: At, ended: &HashSet<SessionId>) -> Option<At> {
        if let Err(error) = self.refresh(now).await {
            let text = format!("can't read the schedules: {error}");
            if self.reported.as_ref() != Some(&text) {
                self.warnings.push(("schedules_unreadable", text.clone()));
                self.reported = Some(text);
            }
            return Some(At(now.0 + FIRST_RETRY_MS));
        }
        self.reported = None;
        self.mark_runs(now, ended);
        loop {
            let mut batch = self.start_due(now);
            if batch.is_empty() {
                break;
            }
            while let Some(done) = batch.join_next().await {
                match done {
                    Ok(done) => self.finish(done, now),
                    // The task panicked, and the state is lost with it.
                    Err(_) => self.unload_busy(),
                }
            }
            if self.refresh(now).await.is_err() {
                return Some(At(now.0 + FIRST_RETRY_MS));
            }
        }
        self.next_due(now)
    }

    /// Reads what is new in the stream `schedules`, and loads the schedules that are new.
    async fn refresh(&mut self, now: At) -> Result<()> {
        let journal = self.store.journal.clone();
        let stream = StreamName::schedules();
        let head = journal.head(&stream).await?.seq;
        if self.is_loaded && head == self.catalog.head {
            return Ok(());
        }
        let mut new = records(&*journal, &stream, self.catalog.head + 1).through(head);
        while let Some(record) = new.next().await? {
            self.catalog.apply(&record);
        }
        let entries = self.catalog.entries(&self.config);
        self.jobs.retain(|id, _| entries.contains_key(id));
        for (id, entry) in entries {
            match self.jobs.get_mut(&id) {
                Some(job) => job.update(entry),
                None => {
                    let state = load_state(&*journal, &schedule_stream(&id)?).await?;
                    self.jobs.insert(id, ScheduleJob::new(entry, state));
                }
            }
        }
        self.is_loaded = true;
        self.report_problems(now);
        Ok(())
    }

    /// Reports what is wrong with schedules, once for each.
    fn report_problems(&mut self, now: At) {
        for job in self.jobs.values_mut() {
            let check = || match &job.state.began {
                Some(_) => Timing::parse(&job.entry.id, &job.entry.spec, now),
                None => Timing::check_new(&job.entry.spec, job.entry.since.unwrap_or(now)),
            };
            let problem = job.entry.problem.clone().or_else(|| check().err().map(|error| error.to_string()));
            let text = problem.map(|problem| format!("schedule {}: {problem}", job.entry.spec.name));
            if text.is_some() && job.reported != text {
                self.warnings.extend(text.clone().map(|text| ("schedule_invalid", text)));
                job.reported = text;
            }
        }
    }

    /// Marks the runs whose turns may have ended.
    fn mark_runs(&mut self, now: At, ended: &HashSet<SessionId>) {
        let since = now.0.saturating_sub(self.runs_checked_at.0);
        let check_all = !(0..RUN_CHECK_MS).contains(&since);
        if check_all {
            self.runs_checked_at = now;
        }
        for job in self.jobs.values_mut().filter(|job| job.state.is_running()) {
            let is_ended = job.state.runs.iter().any(|run| ended.contains(&run.session));
            if check_all || is_ended {
                (job.check_runs, job.wait) = (true, None);
            }
        }
    }

    /// Starts the next action of each schedule that has one.
    fn start_due(&mut self, now: At) -> JoinSet<ActionResult> {
        let mut batch = JoinSet::new();
        let mut late_runs: usize = self.jobs.values().map(ScheduleJob::late_runs).sum();
        for (id, job) in &mut self.jobs {
            let has_room = late_runs < self.at_once;
            if !job.is_due(now, has_room) {
                continue;
            }
            let situation = Situation { now, has_room, check_runs: job.check_runs };
            let timing = job.timing();
            match next_step(&job.entry, timing.as_deref(), &job.state, situation) {
                Next::Wait(wait) => (job.wait, job.failure) = (Some(wait), None),
                Next::Work(work) => {
                    late_runs += usize::from(starts_late_run(&work));
                    job.check_runs &= work != Work::CheckRuns;
                    job.is_busy = true;
                    let (store, entry, id) = (self.store.clone(), job.entry.clone(), id.clone());
                    let mut state = std::mem::take(&mut job.state);
                    batch.spawn(async move {
                        let report = act(&store, &entry, &mut state, work, now).await;
                        ActionResult { id, state, report }
                    });
                }
            }
        }
        batch
    }

    /// Takes over the result of an action.
    fn finish(&mut self, done: ActionResult, now: At) {
        let Some(job) = self.jobs.get_mut(&done.id) else { return };
        (job.state, job.wait, job.is_busy) = (done.state, None, false);
        match done.report {
            Ok(report) => {
                job.failure = None;
                self.warnings.extend(report.warning);
            }
            Err(error) => {
                let text = format!("schedule {}: {error}", job.entry.spec.name);
                job.record_failure(now);
                if should_report(&error) && job.reported.as_ref() != Some(&text) {
                    self.warnings.push(("schedule_failed", text.clone()));
                    job.reported = Some(text);
                }
            }
        }
    }

    /// Forgets the schedules whose state is lost. They are loaded again.
    fn unload_busy(&mut self) {
        self.jobs.retain(|_, job| !job.is_busy);
        self.is_loaded = false;
    }

    /// When the next action is due.
    fn next_due(&self, now: At) -> Option<At> {
        let next = |job: &ScheduleJob| {
            let retry = job.failure.as_ref().map(|failure| failure.retry_at);
            let slot = match job.wait {
                Some(Wait::Until(at)) => Some(at),
                _ => None,
            };
            let check =
                job.state.is_running().then(|| At(self.runs_checked_at.0.saturating_add(RUN_CHECK_MS)));
            // A failed action is tried again before anything else.
            retry.or_else(|| slot.into_iter().chain(check).min())
        };
        self.jobs.values().filter_map(next).min().map(|at| at.max(now))
    }
}

/// Whether people should hear of an error. Another process that takes over, or a runtime that ends, is no problem.
fn should_report(error: &Error) -> bool {
    use longhaul_journal::Error as JournalError;
    !matches!(
        error,
        Error::Journal(
            JournalError::Held { .. }
                | JournalError::Fenced { .. }
                | JournalError::Conflict { .. }
                | JournalError::Closed
        )
    )
}

fn starts_late_run(work: &Work) -> bool {
    let Work::Decide(decisions) = work else { return false };
    decisions.last().is_some_and(|last| last.action == SlotAction::Fire && last.is_late)
}

impl ScheduleJob {
    fn new(entry: CatalogEntry, state: ScheduleState) -> Self {
        Self {
            entry: Arc::new(entry),
            check_runs: state.is_running(),
            state,
            timing: None,
            wait: None,
            failure: None,
            reported: None,
            is_busy: false,
        }
    }

    /// Takes over what the stream `schedules` says now.
    fn update(&mut self, entry: CatalogEntry) {
        self.entry = Arc::new(entry);
        (self.timing, self.wait) = (None, None);
    }

    fn is_due(&self, now: At, has_room: bool) -> bool {
        if let Some(failure) = &self.failure {
            // A clock that was set back must not make the wait longer.
            return now >= failure.retry_at || failure.retry_at.0 - now.0 > LONGEST_RETRY_MS;
        }
        match self.wait {
            None => true,
            Some(Wait::Until(at)) => now >= at,
            Some(Wait::Room) => has_room,
            Some(Wait::RunEnd | Wait::Never) => false,
        }
    }

    fn late_runs(&self) -> usize {
        self.state.runs.iter().filter(|run| run.is_late).count()
    }

    /// The parsed times, once the schedule has begun with its present terms.
    fn timing(&mut self) -> Option<Arc<Timing>> {
        if !has_begun(&self.entry, &self.state) {
            return None;
        }
        if self.timing.is_none() {
            let from = self.state.began.as_ref()?.from;
            self.timing = Timing::parse(&self.entry.id, &self.entry.spec, from).ok().map(Arc::new);
        }
        self.timing.clone()
    }

    fn record_failure(&mut self, now: At) {
        let count = self.failure.as_ref().map_or(0, |failure| failure.count);
        let wait = FIRST_RETRY_MS.saturating_mul(1 << count.min(10)).min(LONGEST_RETRY_MS);
        self.failure = Some(JobFailure { count: count + 1, retry_at: At(now.0.saturating_add(wait)) });
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
