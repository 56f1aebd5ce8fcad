//! What follows a failed attempt: wait (back-off or Retry-After) and retry, fall back to another model, or give up
//! and end the turn.

use std::pin::pin;
use std::time::Duration;

use longhaul_model::{
    FailureClass, LongDelayPolicy, ModelFailure, OfflinePolicy, RetriesExhausted, RetryDecision, RetryDelay,
    RetryLimit, RetryPolicy,
};
use longhaul_protocol::{At, EventKind, ModelChanged, SessionRecord};

use crate::clock::now;
use crate::config::RetrySettings;
use crate::session::decide::TurnEnding;
use crate::turn::end::end_turn;
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult};

/// How long to retry a model call. This depends on whether a user watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetryMode {
    /// A user can see the wait and end it, so waits may be long.
    #[default]
    Interactive,
    /// A program waits for one answer, or for the reason why there is none.
    OneShot,
}

impl RetryMode {
    /// The retry policy for a model call.
    pub(crate) fn policy(self, settings: &RetrySettings) -> RetryPolicy {
        let offline = match (settings.offline_wait_s, self) {
            (0, _) => OfflinePolicy::CountsAsTry,
            (_, Self::Interactive) => OfflinePolicy::WaitForever,
            (seconds, Self::OneShot) => OfflinePolicy::WaitFor(Duration::from_secs(seconds)),
        };
        RetryPolicy {
            max_retries: settings.max_retries,
            base: Duration::from_millis(settings.base_ms),
            cap: Duration::from_millis(settings.cap_ms),
            budget: Duration::from_secs(settings.budget_s),
            offline,
            max_server_delay: Duration::from_secs(settings.max_server_delay_s),
            long_delays: match self {
                Self::Interactive => LongDelayPolicy::Wait,
                Self::OneShot => LongDelayPolicy::GiveUp,
            },
        }
    }
}

/// Waits so that the step can be tried again, falls back to the next model, or ends the turn. `records` close the
/// failed attempt, of which nothing is kept.
pub(super) async fn retry_or_fall_back(
    worker: &mut Worker,
    failure: &ModelFailure,
    mut records: Vec<SessionRecord>,
) -> WorkerResult<()> {
    let config = &worker.runtime().config;
    let policy = config.retry_mode.policy(&config.settings.retry);
    let spent = match worker.models_mut().record_failure(policy, failure) {
        RetryDecision::Wait(wait) => {
            worker.commit(records, vec![]).await?;
            return wait_before_retry(worker, wait).await;
        }
        RetryDecision::GiveUp(spent) => spent,
    };
    if may_fall_back(&spent)
        && let Some((from, to)) = worker.models_mut().fall_back()
    {
        let reason = spent.to_string();
        records.push(SessionRecord::ModelChanged(ModelChanged { from, to, reason, chosen: false }));
        return worker.commit(records, vec![]).await;
    }
    let mut error = spent.to_string();
    let class = match spent.limit {
        Some(RetryLimit::ServerDelay(delay)) => {
            let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            error += &format!(" ({})", At(now().0.saturating_add(delay)));
            FailureClass::Throttled
        }
        _ => spent.last.class,
    };
    let code = Some(class.code().to_owned());
    // One append: the record of a final failure is never on disk without the end of its turn.
    end_turn(worker, records, TurnEnding { code, ..TurnEnding::failed(error) }).await
}

/// Waits before the next try. Watchers see the wait before it begins, and the user can end it early.
async fn wait_before_retry(worker: &mut Worker, wait: RetryDelay) -> WorkerResult<()> {
    if worker.should_end_turn() {
        return Ok(());
    }
    let seen = worker.state().turn.as_ref().map_or(0, |turn| turn.retry_now_count);
    let mut sleep = pin!(tokio::time::sleep(wait.delay));
    worker.show(retry_event(wait));
    worker.wait_for(&mut sleep, WakeOn::RetryNow { seen }, None).await?.into_done()?;
    Ok(())
}

/// The event that shows a wait.
pub(crate) fn retry_event(wait: RetryDelay) -> EventKind {
    let RetryDelay { class, attempt, of, delay, reason } = wait;
    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    EventKind::RetryWait { class: class.code().to_owned(), attempt, of, delay_ms, reason }
}

/// Whether another model may be called, because this one had all its tries or its quota is used up.
fn may_fall_back(spent: &RetriesExhausted) -> bool {
    let is_exhausted = matches!(
        spent.limit,
        Some(
            RetryLimit::Tries
                | RetryLimit::Waiting
                | RetryLimit::ServerDelay(_)
                | RetryLimit::Offline
                | RetryLimit::SameWords
        )
    );
    is_exhausted || spent.last.class == FailureClass::Quota
}
