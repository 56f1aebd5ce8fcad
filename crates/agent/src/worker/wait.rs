//! How a worker waits: it takes what comes meanwhile, keeps its lease, and hears when it should wait no longer.

use std::future::Future;
use std::time::Duration;

use longhaul_protocol::QuestionId;
use tokio::time::Instant;

use crate::clock::now;
use crate::worker::{Step, Worker};

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
    /// That a wait should end: the same, or somebody is in a hurry, or has chosen another model.
    Hurry {
        /// How often somebody was when it began.
        hurried: u64,
    },
    /// That there is something to do.
    Input,
    /// The same as for a cancel, or that a question is settled.
    Answer(QuestionId),
    Nothing,
}

impl Worker {
    /// Waits for something, and meanwhile takes what is put into the inbox and keeps the lease.
    pub(crate) async fn attend<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        heed: Heed,
        due: Option<Instant>,
    ) -> Step<Attended<T>> {
        enum Came {
            Suspension,
            News,
            Pulse,
            Time,
        }
        self.look_at_the_time();
        loop {
            let called = match heed {
                Heed::Cancel => self.is_to_end(),
                Heed::Hurry { hurried } => {
                    let now = self.state.turn.as_ref().map_or(0, |turn| turn.retry_now_count);
                    self.is_to_end() || now > hurried || self.has_other_model()
                }
                Heed::Input => self.has_something_to_do() || self.is_to_part(),
                Heed::Answer(question) => self.is_to_end() || self.state.question(question).is_none(),
                Heed::Nothing => false,
            };
            if called {
                return Ok(Attended::Called);
            }
            let limit = match heed {
                Heed::Nothing => None,
                Heed::Input => self.gathers_until,
                Heed::Cancel | Heed::Hurry { .. } | Heed::Answer(_) => self.turn_ends_by,
            };
            let until = async {
                match due.into_iter().chain(limit).min() {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let came = tokio::select! {
                biased;
                _ = self.suspend.wait_for(|suspended| *suspended) => Came::Suspension,
                () = self.shared.came.notified() => Came::News,
                _ = self.pulse.tick() => Came::Pulse,
                () = until => Came::Time,
                done = &mut *work => return Ok(Attended::Done(done)),
            };
            match came {
                Came::Suspension => return Ok(Attended::Suspended),
                Came::Time => {
                    self.look_at_the_time();
                    self.look_at_the_ends();
                    if due.is_some_and(|due| due <= Instant::now()) {
                        return Ok(Attended::Due);
                    }
                }
                Came::News => {}
                Came::Pulse => self.renew().await?,
            }
            self.take_inbox().await?;
            self.take_ends().await?;
            self.look_at_the_time();
        }
    }

    /// Whether somebody or something wants the turn to end.
    pub(crate) fn is_to_end(&self) -> bool {
        let is_unwanted =
            self.state.turn.is_none() && self.state.pending_inputs.iter().any(|input| input.cancelled);
        self.state.is_cancelled() || is_unwanted || self.policy.must_end_turn()
    }

    /// When the open turn has to end. Its beginning is on record, so a restart gives it no more time.
    pub(crate) fn look_at_the_time(&mut self) {
        let seconds = self.runtime.config.settings.limits.seconds_per_turn;
        // While a person is awaited, no time passes.
        let turn = self.state.turn.as_ref().filter(|turn| turn.question_since.is_none());
        let began = turn.and_then(|turn| Some((turn.started_at?, turn.question_wait_ms)));
        let (Some((started, awaited)), 1..) = (began, seconds) else {
            self.turn_ends_by = None;
            self.policy.is_out_of_time = false;
            return;
        };
        let passed = u64::try_from(now().0.saturating_sub(started.0)).unwrap_or(0).saturating_sub(awaited);
        let passed = Duration::from_millis(passed);
        let left = Duration::from_secs(seconds).saturating_sub(passed);
        self.policy.is_out_of_time = left.is_zero();
        self.turn_ends_by = (!left.is_zero()).then(|| Instant::now() + left);
    }

    /// Keeps the lease. A disk that is full for a moment is no reason to stop: the next append decides.
    pub(crate) async fn renew(&self) -> Step<()> {
        match self.runtime.journal.renew(&self.lease).await {
            Err(error) if !error.may_pass() => Err(error.into()),
            _ => Ok(()),
        }
    }
}
