//! The task: waits for the next check, lists the sessions, and has those that are idle looked at.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Result as JournalResult, all_sessions};
use longhaul_protocol::SessionId;
use tokio::sync::watch;
use tokio::task::{Id as TaskId, JoinError, JoinSet};
use tokio::time::Instant;

use super::Job;
use super::activity::Moment;
use super::backoff::{Delays, News};
use super::check::{Ends, Looked, Standing, look, look_after_turn, standing};
use crate::housekeeping::retention;
use crate::runtime::{Inner, lock};

/// So many sessions are looked at side by side: each may wait for a model, and none of that is urgent.
const AT_ONCE: usize = 4;

/// Looks at idle sessions until it is stopped or the runtime ends; what is under way then is cut.
pub(super) async fn run(runtime: Arc<Inner>, jobs: Arc<[Job]>, mut stopped: watch::Receiver<bool>) {
    let mut suspension = runtime.suspension();
    let mut rounds = Rounds {
        runtime,
        jobs,
        settled: HashMap::new(),
        delays: Delays::default(),
        queues: Queues::default(),
        looked_at: HashMap::new(),
        looks: JoinSet::new(),
        retention_at: Instant::now(),
    };
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopped| *stopped) => {}
        _ = suspension.wait_for(|suspended| *suspended) => {}
        () = rounds.go_on() => {}
    }
    rounds.looks.shutdown().await;
    drop(rounds);
    // Whoever waits for the end sees it by this.
    drop(stopped);
}

struct Rounds {
    runtime: Arc<Inner>,
    jobs: Arc<[Job]>,
    /// Y5: those that need not be looked at before something is new.
    settled: HashMap<SessionId, Ends>,
    delays: Delays,
    queues: Queues,
    looked_at: HashMap<TaskId, Found>,
    looks: JoinSet<Looked>,
    /// When it is next looked whether sessions have to be put away.
    retention_at: Instant,
}

/// A session that seems idle.
#[derive(Debug)]
struct Found {
    id: SessionId,
    key: String,
    /// When the check began that has found it.
    at: Instant,
}

/// Those that are not looked at yet. Both get their turn, whatever the other has: neither a busy day nor many idle sessions keep the
/// others from being looked at.
#[derive(Debug, Default)]
struct Queues {
    /// Those that the last check has found.
    idle: VecDeque<Found>,
    /// Those in which a turn has ended since, each once.
    after_turn: VecDeque<Found>,
    last: Option<Why>,
}

/// Why a session is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Idle,
    TurnEnded,
}

impl Queues {
    /// A turn has ended.
    fn push(&mut self, found: Found) {
        if self.after_turn.iter().all(|waiting| waiting.id != found.id) {
            self.after_turn.push_back(found);
        }
    }

    /// Who is next.
    fn pop(&mut self) -> Option<(Why, Found)> {
        let is_idle_next = self.after_turn.is_empty() || self.last == Some(Why::TurnEnded);
        let why = if is_idle_next && !self.idle.is_empty() { Why::Idle } else { Why::TurnEnded };
        self.last = Some(why);
        let queue = if why == Why::Idle { &mut self.idle } else { &mut self.after_turn };
        Some((why, queue.pop_front()?))
    }
}

impl Rounds {
    async fn go_on(&mut self) {
        let runtime = self.runtime.clone();
        let mut interval = runtime.idle.interval.subscribe();
        loop {
            let mut due = pin!(due(Instant::now(), &mut interval));
            loop {
                tokio::select! {
                    biased;
                    Some(ended) = self.looks.join_next_with_id() => self.take_in(ended),
                    () = &mut due => break,
                    () = runtime.idle.turns.came.notified() => self.turns_ended(),
                }
            }
            self.check().await;
            self.keep_in_bounds();
            self.begin_looks();
        }
    }

    /// Looks which sessions are idle.
    async fn check(&mut self) {
        let moment = Moment::now();
        let listed = self.list(moment).await;
        let trouble = listed.err().map(|error| error.to_string());
        let known = {
            let mut seen = lock(&self.runtime.idle.seen);
            seen.last_check = Some(moment.wall);
            std::mem::replace(&mut seen.trouble, trouble.clone())
        };
        if let Some(reason) = trouble.filter(|reason| known.as_ref() != Some(reason)) {
            self.runtime.warn("", "sessions_unlisted", &format!("the sessions can't be listed: {reason}"));
        }
    }

    /// S5: now and then sessions are put away, in a task of its own.
    fn keep_in_bounds(&mut self) {
        let now = Instant::now();
        let is_listed = lock(&self.runtime.idle.seen).trouble.is_none();
        if is_listed && now >= self.retention_at {
            self.retention_at = now + retention::LOOKS_EVERY;
            let runtime = self.runtime.clone();
            self.runtime.spawn(async move { retention::daily(&runtime).await });
        }
    }

    async fn list(&mut self, moment: Moment) -> JournalResult<()> {
        let mut found = VecDeque::new();
        let mut recent = HashSet::new();
        let mut sessions = all_sessions(&*self.runtime.journal);
        while let Some(entry) = sessions.next().await? {
            let standing = standing(&self.runtime, &entry, moment);
            if standing != Standing::Left {
                recent.insert(entry.id);
            }
            let is_settled = self.settled.get(&entry.id) == Some(&Ends::of(&entry));
            if standing == Standing::Idle
                && !is_settled
                && !self.delays.is_too_early(entry.id, moment.steady)
                && !self.looked_at.values().any(|looked_at| looked_at.id == entry.id)
            {
                found.push_back(Found { id: entry.id, key: entry.key, at: moment.steady });
            }
        }
        self.settled.retain(|id, _| recent.contains(id));
        self.delays.keep(|id| recent.contains(&id));
        self.queues.idle = found;
        Ok(())
    }

    /// Turns have ended. A session that is looked at right now, or has failed lately, is looked at once it is idle.
    fn turns_ended(&mut self) {
        let ended = std::mem::take(&mut *lock(&self.runtime.idle.turns.ended));
        let at = Instant::now();
        for (id, key) in ended {
            let is_looked_at = self.looked_at.values().any(|looked_at| looked_at.id == id);
            if !is_looked_at && !self.delays.is_too_early(id, at) {
                self.queues.push(Found { id, key, at });
            }
        }
        self.begin_looks();
    }

    /// Looks at those that wait, as many as may be looked at side by side.
    fn begin_looks(&mut self) {
        while self.looks.len() < AT_ONCE {
            let runtime = self.runtime.clone();
            let Some((why, found)) = self.queues.pop() else { return };
            let task = match why {
                Why::TurnEnded => self.looks.spawn(look_after_turn(runtime, found.id, found.key.clone())),
                Why::Idle => self.looks.spawn(look(runtime, self.jobs.clone(), found.id)),
            };
            self.looked_at.insert(task.id(), found);
        }
    }

    /// A look has ended.
    fn take_in(&mut self, ended: Result<(TaskId, Looked), JoinError>) {
        let (task, looked) = match ended {
            Ok((task, looked)) => (task, Ok(looked)),
            Err(error) => (error.id(), Err(error)),
        };
        if let Some(found) = self.looked_at.remove(&task) {
            match looked {
                Ok(Looked::Settled(ends)) => {
                    self.settled.insert(found.id, ends);
                    self.delays.forget(found.id);
                }
                Ok(Looked::NotNow) => {}
                Ok(Looked::Failed(error)) => self.failed(&found, error.to_string()),
                Err(_) => self.failed(&found, "it panicked".to_owned()),
            }
        }
        self.begin_looks();
    }

    fn failed(&mut self, found: &Found, reason: String) {
        let text = format!("what is done while it is idle failed, and is tried again later: {reason}");
        let interval = self.runtime.idle.interval();
        if self.delays.failed(found.id, reason, found.at, interval) == News::New {
            self.runtime.warn(&found.key, "idle_failed", &text);
        }
    }
}

/// Waits until an interval has passed since then. One that is changed meanwhile holds for this wait, too.
pub(super) async fn due(since: Instant, interval: &mut watch::Receiver<Duration>) {
    loop {
        // What is too long for a clock is waited for all the same.
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
#[path = "rounds_tests.rs"]
mod tests;
