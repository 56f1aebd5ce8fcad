//! Whether and when to try again: the only place where that is decided. No clock, no network.
//!
//! [`RetryState`] is told of each failure of one step, and answers with a wait or with the reason why there will be none.

use std::time::Duration;

use crate::{FailureClass, ModelFailure};

/// The first wait of somebody who is offline; it doubles.
const OFFLINE_BASE: Duration = Duration::from_secs(2);
const OFFLINE_CAP: Duration = Duration::from_secs(60);
/// How often a server may fail in exactly the same words.
const SAME_WORDS: u32 = 3;
/// So much is told of a failure before the last.
const BRIEF: usize = 120;
/// No server is waited for longer than this, whoever watches.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How often, and for how long, is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// So many requests follow the first.
    pub max_retries: u32,
    /// The first wait; it doubles.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// All waits together.
    pub budget: Duration,
    /// What happens without a network.
    pub offline: OfflinePolicy,
    /// The longest delay that a server may ask for without anybody being asked.
    pub max_server_delay: Duration,
    /// What happens if it asks for more.
    pub long_delays: LongDelayPolicy,
}

/// What happens without a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfflinePolicy {
    /// It is a try like any other.
    CountsAsTry,
    /// It is waited for, for so long.
    WaitFor(Duration),
    /// It is waited for without end.
    WaitForever,
}

/// What happens when a server asks for a delay that is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongDelayPolicy {
    /// Nobody is there to decide: the call fails, and says when it would work.
    GiveUp,
    /// It is waited for, visibly, and somebody may end the wait.
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
    /// For calls that nobody waits for: two retries, and none while there is no network.
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

/// The tries at one step so far.
#[derive(Debug, Clone)]
pub struct RetryState {
    policy: RetryPolicy,
    requests: u32,
    retries: u32,
    waited: Duration,
    offline_tries: u32,
    offline_waited: Duration,
    same_words: (u64, u32),
    earlier: Vec<String>,
}

/// What to do after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    /// Wait, then send the same request again.
    Wait(RetryDelay),
    /// It failed for good.
    GiveUp(RetriesExhausted),
}

/// A wait before the next try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryDelay {
    /// Why.
    pub class: FailureClass,
    /// Which retry comes after it, from 1.
    pub attempt: u32,
    /// How many there may be; 0 where they are not counted.
    pub of: u32,
    /// How long.
    pub delay: Duration,
    /// For people.
    pub reason: String,
}

/// A call that failed for good: the last failure, which limit ended it, and what came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriesExhausted {
    /// The last failure.
    pub last: ModelFailure,
    /// How many requests were made.
    pub requests: u32,
    /// What ended it.
    pub limit: Option<RetryLimit>,
    /// What the failures before the last said, each once, in the order in which they first came.
    pub earlier: Vec<String>,
}

/// What ended the tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryLimit {
    /// The number of tries.
    Tries,
    /// The time that may be spent waiting.
    Waiting,
    /// The server asks for more patience than it gets.
    ServerDelay(Duration),
    /// The time without a network.
    Offline,
    /// The server said the same three times.
    SameWords,
}

impl RetryState {
    /// No try yet.
    pub fn new(policy: RetryPolicy) -> Self {
        let (waited, offline_waited) = (Duration::ZERO, Duration::ZERO);
        let (requests, retries, offline_tries) = (0, 0, 0);
        let (same_words, earlier) = ((0, 0), vec![]);
        Self { policy, requests, retries, waited, offline_tries, offline_waited, same_words, earlier }
    }

    /// A try failed. `chance` is the random part of the wait, from 0 to 1.
    pub fn failed(&mut self, failure: &ModelFailure, chance: f64) -> RetryDecision {
        self.requests += 1;
        let next = self.decide(failure, chance);
        let said = brief(failure);
        if !self.earlier.contains(&said) {
            self.earlier.push(said);
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
        if self.says_the_same(failure) {
            return self.give_up(failure, Some(RetryLimit::SameWords));
        }
        if self.retries >= self.policy.max_retries {
            return self.give_up(failure, Some(RetryLimit::Tries));
        }
        let policy = &self.policy;
        let is_long = failure.delay.is_some_and(|delay| delay > policy.max_server_delay);
        let delay = match failure.delay {
            Some(delay) if is_long => {
                let waits = policy.long_delays == LongDelayPolicy::Wait && delay <= LONGEST_DELAY;
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
        // A long delay is somebody's choice, made while watching it; it is not paid from the budget.
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

    /// Being offline is nobody's fault, and passes: it is waited for apart from everything else.
    fn offline(&mut self, failure: &ModelFailure) -> RetryDecision {
        let grown = OFFLINE_BASE.saturating_mul(1 << self.offline_tries.min(10)).min(OFFLINE_CAP);
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

    /// A server that fails three times in exactly the same words fails for a reason that time doesn't change.
    fn says_the_same(&mut self, failure: &ModelFailure) -> bool {
        if failure.status != Some(500) {
            self.same_words = (0, 0);
            return false;
        }
        let (words, count) = self.same_words;
        let count = if words == failure.fingerprint { count + 1 } else { 1 };
        self.same_words = (failure.fingerprint, count);
        count >= SAME_WORDS
    }

    fn give_up(&self, failure: &ModelFailure, limit: Option<RetryLimit>) -> RetryDecision {
        let (last, requests, earlier) = (failure.clone(), self.requests, self.earlier.clone());
        RetryDecision::GiveUp(RetriesExhausted { last, requests, limit, earlier })
    }
}

impl std::fmt::Display for RetriesExhausted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.last)?;
        let tries = if self.requests == 1 {
            "1 request was".to_owned()
        } else {
            format!("{} requests were", self.requests)
        };
        match self.limit {
            None => {}
            Some(RetryLimit::Tries) => {
                write!(f, "; {tries} made, as many as are allowed (retry.max_retries)")?
            }
            Some(RetryLimit::Waiting) => {
                write!(f, "; {tries} made, and another wait would pass retry.budget_s")?
            }
            Some(RetryLimit::ServerDelay(delay)) => write!(
                f,
                "; the server asks to wait {} s, more than retry.max_server_delay_s: try again after that",
                delay.as_secs_f64().ceil()
            )?,
            Some(RetryLimit::Offline) => write!(f, "; {tries} made within retry.offline_wait_s")?,
            Some(RetryLimit::SameWords) => {
                write!(f, "; {tries} made, and it said exactly the same {SAME_WORDS} times")?;
            }
        }
        let last = brief(&self.last);
        let before: Vec<&str> =
            self.earlier.iter().map(String::as_str).filter(|said| *said != last).collect();
        if before.is_empty() { Ok(()) } else { write!(f, "; before that: {}", before.join(" | ")) }
    }
}

/// What a failure was, in a few words.
fn brief(failure: &ModelFailure) -> String {
    let words: String = failure.message.chars().take(BRIEF).collect();
    format!("{}: {words}", failure.class.code())
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
