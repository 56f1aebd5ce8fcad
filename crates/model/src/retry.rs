//! The retry policy and its backoff: whether and when to retry. No other module decides this. No clock, no network.
//!
//! The caller reports each failure of one step to [`RetryState`], which answers with a delay or with the reason to
//! give up.

use std::time::Duration;

use crate::{FailureClass, ModelFailure};

/// The first delay while the network is down. It doubles up to the cap.
const OFFLINE_BACKOFF_BASE: Duration = Duration::from_secs(2);
const OFFLINE_BACKOFF_CAP: Duration = Duration::from_secs(60);
/// The policy gives up on a server that fails this often with the same body.
const MAX_SAME_FAILURES: u32 = 3;
const MAX_BRIEF_CHARS: usize = 120;
/// The policy never waits for a longer `Retry-After`.
const MAX_LONG_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How often and for how long a call is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The first backoff delay. Each later one is twice as long, up to `cap`.
    pub base: Duration,
    /// The longest backoff delay.
    pub cap: Duration,
    /// The longest time that all delays together may take.
    pub budget: Duration,
    /// What to do while the network is down.
    pub offline: OfflinePolicy,
    /// The longest `Retry-After` that the policy simply accepts. `long_delays` decides about longer ones.
    pub max_server_delay: Duration,
    pub long_delays: LongDelayPolicy,
}

/// What to do while the network is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfflinePolicy {
    /// A failure without a network counts as a retry like any other.
    CountsAsTry,
    /// Wait for the network, at most this long in total.
    WaitFor(Duration),
    WaitForever,
}

/// What to do when the server's `Retry-After` is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongDelayPolicy {
    /// The call fails, and its message says when it would work.
    GiveUp,
    /// The caller shows the wait, and the user may end it.
    Wait,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 4,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            budget: Duration::from_secs(120),
            offline: OfflinePolicy::WaitFor(Duration::from_secs(600)),
            max_server_delay: Duration::from_secs(60),
            long_delays: LongDelayPolicy::GiveUp,
        }
    }
}

impl RetryPolicy {
    /// For background calls: two retries, and none without a network.
    #[must_use]
    pub fn for_background(self) -> Self {
        Self {
            max_retries: self.max_retries.min(2),
            offline: OfflinePolicy::CountsAsTry,
            long_delays: LongDelayPolicy::GiveUp,
            ..self
        }
    }
}

/// The failures of one step so far.
#[derive(Debug, Clone)]
pub struct RetryState {
    policy: RetryPolicy,
    requests: u32,
    retries: u32,
    waited: Duration,
    offline_tries: u32,
    offline_waited: Duration,
    same_failures: (u64, u32),
    earlier_failures: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    Wait(RetryDelay),
    GiveUp(RetriesExhausted),
}

/// A delay before the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryDelay {
    pub class: FailureClass,
    /// The number of the retry that follows the delay, from 1.
    pub attempt: u32,
    /// The highest number of retries; 0 if they are not counted.
    pub of: u32,
    pub delay: Duration,
    pub reason: String,
}

/// A call that failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriesExhausted {
    pub last: ModelFailure,
    pub requests: u32,
    pub limit: Option<RetryLimit>,
    /// Earlier failures in short, without repetitions, in the order of their first occurrence.
    pub earlier_failures: Vec<String>,
}

/// The limit that ended the retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryLimit {
    Tries,
    /// The budget for all delays together.
    Waiting,
    /// The server's `Retry-After` is too long.
    ServerDelay(Duration),
    Offline,
    /// The server failed in the same way again and again.
    SameWords,
}

impl RetryState {
    pub fn new(policy: RetryPolicy) -> Self {
        let (waited, offline_waited) = (Duration::ZERO, Duration::ZERO);
        let (requests, retries, offline_tries) = (0, 0, 0);
        let (same_failures, earlier_failures) = ((0, 0), vec![]);
        Self {
            policy,
            requests,
            retries,
            waited,
            offline_tries,
            offline_waited,
            same_failures,
            earlier_failures,
        }
    }

    /// Records a failed attempt and decides what to do. `chance` is the jitter, from 0 to 1.
    pub fn failed(&mut self, failure: &ModelFailure, chance: f64) -> RetryDecision {
        self.requests += 1;
        let next = self.decide(failure, chance);
        let said = brief_failure(failure);
        if !self.earlier_failures.contains(&said) {
            self.earlier_failures.push(said);
        }
        next
    }

    fn decide(&mut self, failure: &ModelFailure, chance: f64) -> RetryDecision {
        let is_offline =
            failure.class == FailureClass::Offline && self.policy.offline != OfflinePolicy::CountsAsTry;
        if is_offline {
            return self.offline(failure);
        }
        self.offline_tries = 0;
        self.offline_waited = Duration::ZERO;
        if !failure.class.is_retried() {
            return self.give_up(failure, None);
        }
        if self.is_same_failure_again(failure) {
            return self.give_up(failure, Some(RetryLimit::SameWords));
        }
        if self.retries >= self.policy.max_retries {
            return self.give_up(failure, Some(RetryLimit::Tries));
        }
        let policy = &self.policy;
        let is_long = failure.delay.is_some_and(|delay| delay > policy.max_server_delay);
        let delay = match failure.delay {
            Some(delay) if is_long => {
                let waits = policy.long_delays == LongDelayPolicy::Wait && delay <= MAX_LONG_DELAY;
                if !waits {
                    return self.give_up(failure, Some(RetryLimit::ServerDelay(delay)));
                }
                delay
            }
            Some(delay) => delay,
            None => {
                let doubled = policy.base.saturating_mul(1 << self.retries.min(20));
                doubled.min(policy.cap).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
            }
        };
        // The user chose to wait for a long delay, so it does not count against the budget.
        if !is_long {
            if self.waited + delay > policy.budget {
                return self.give_up(failure, Some(RetryLimit::Waiting));
            }
            self.waited += delay;
        }
        self.retries += 1;
        let (class, attempt, of) = (failure.class, self.retries, policy.max_retries);
        RetryDecision::Wait(RetryDelay { class, attempt, of, delay, reason: failure.message.clone() })
    }

    /// Time without a network does not count against the other limits.
    fn offline(&mut self, failure: &ModelFailure) -> RetryDecision {
        let grown =
            OFFLINE_BACKOFF_BASE.saturating_mul(1 << self.offline_tries.min(10)).min(OFFLINE_BACKOFF_CAP);
        let delay = match self.policy.offline {
            OfflinePolicy::WaitFor(longest) => grown.min(longest.saturating_sub(self.offline_waited)),
            OfflinePolicy::WaitForever | OfflinePolicy::CountsAsTry => grown,
        };
        if delay.is_zero() {
            return self.give_up(failure, Some(RetryLimit::Offline));
        }
        self.offline_tries += 1;
        self.offline_waited += delay;
        let (class, attempt, of) = (failure.class, self.offline_tries, 0);
        RetryDecision::Wait(RetryDelay { class, attempt, of, delay, reason: failure.message.clone() })
    }

    /// A server that fails again and again with the same body has a cause that waiting does not change.
    fn is_same_failure_again(&mut self, failure: &ModelFailure) -> bool {
        if failure.status != Some(500) {
            self.same_failures = (0, 0);
            return false;
        }
        let (words, count) = self.same_failures;
        let count = if words == failure.fingerprint { count + 1 } else { 1 };
        self.same_failures = (failure.fingerprint, count);
        count >= MAX_SAME_FAILURES
    }

    fn give_up(&self, failure: &ModelFailure, limit: Option<RetryLimit>) -> RetryDecision {
        let (last, requests, earlier_failures) =
            (failure.clone(), self.requests, self.earlier_failures.clone());
        RetryDecision::GiveUp(RetriesExhausted { last, requests, limit, earlier_failures })
    }
}

impl std::fmt::Display for RetriesExhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.last)?;
        let tries =
            if self.requests == 1 { "1 request".to_owned() } else { format!("{} requests", self.requests) };
        match self.limit {
            None => {}
            Some(RetryLimit::Tries) => {
                write!(f, "; gave up after {tries} (retry.max_retries)")?;
            }
            Some(RetryLimit::Waiting) => {
                write!(f, "; gave up after {tries} (retry.budget_s)")?;
            }
            Some(RetryLimit::ServerDelay(delay)) => write!(
                f,
                "; the server asks to wait {} s, more than retry.max_server_delay_s; try again later",
                delay.as_secs_f64().ceil()
            )?,
            Some(RetryLimit::Offline) => write!(f, "; gave up after {tries} (retry.offline_wait_s)")?,
            Some(RetryLimit::SameWords) => {
                write!(f, "; gave up after {tries}, because the same error came {MAX_SAME_FAILURES} times")?;
            }
        }
        let last = brief_failure(&self.last);
        let before: Vec<&str> =
            self.earlier_failures.iter().map(String::as_str).filter(|said| *said != last).collect();
        if before.is_empty() { Ok(()) } else { write!(f, "; before that: {}", before.join(" | ")) }
    }
}

fn brief_failure(failure: &ModelFailure) -> String {
    let words: String = failure.message.chars().take(MAX_BRIEF_CHARS).collect();
    format!("{}: {words}", failure.class.code())
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
