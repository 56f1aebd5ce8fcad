//! A model call that nobody waits for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_context::estimate;
use longhaul_journal::{Append, Journal, Lease};
use longhaul_model::{
    Class, Facts, Failure, Model, Next, Purpose, RefusedSize, Request, RetryPolicy, Tries, Whole, hear,
};
use longhaul_protocol::{Item, Role, StreamName, ToolSchema, Usage};

use crate::{Error, Result};

/// How often a lease is renewed while something is waited for.
const PULSE: Duration = Duration::from_secs(2);
/// The share of a window that an answer may take, and what it takes if nobody says.
const ANSWER_SHARE: u64 = 4;
const USUAL_ANSWER: u64 = 8_192;

/// Takes secrets out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Who is asked, and how patiently.
#[derive(Clone)]
pub struct Calling {
    /// Who is asked.
    pub model: Arc<dyn Model>,
    /// What is known about it.
    pub facts: Facts,
    /// How often, and for how long, is tried again.
    pub retry: RetryPolicy,
    /// How many tokens the context has, the answer with it, if that is known.
    pub window: Option<u64>,
    /// How many tokens an answer may have, if that is set.
    pub max_output: Option<u64>,
    /// Takes secrets out of whatever is kept.
    pub redact: Redact,
}

/// How an answer is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By calling the tool.
    Call,
    /// As JSON in the text, with the same fields: for models that take no tools.
    Text,
}

/// What is asked. The whole of a request is its system prompt, its one tool and this one message.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The system prompt.
    pub system: String,
    /// The tool, where the form is a call.
    pub tool: Option<ToolSchema>,
    /// The message.
    pub text: String,
}

impl Calling {
    /// How an answer is to be given.
    pub fn form(&self) -> Form {
        if self.facts.tools { Form::Call } else { Form::Text }
    }

    /// How many tokens an answer may have.
    pub fn answer(&self) -> u64 {
        let share = self.window.map_or(u64::MAX, |window| window / ANSWER_SHARE);
        let most = self.facts.max_output.unwrap_or(u64::MAX).min(share);
        self.max_output.unwrap_or(USUAL_ANSWER).min(most).max(1)
    }

    /// How many tokens a prompt may have; nothing, where nobody knows.
    pub fn usable(&self) -> Option<u64> {
        self.window.map(|window| window.saturating_sub(self.answer()))
    }

    /// Asks, and asks again as the policy says. What it costs is added to `usages`, whatever comes of it.
    pub(crate) async fn ask(
        &self,
        asked: &Asked,
        purpose: Purpose,
        usages: &mut Vec<Usage>,
    ) -> std::result::Result<Whole, Failure> {
        let mut tries = Tries::new(self.retry.in_the_background());
        loop {
            let request = Request {
                system: asked.system.as_str().into(),
                tools: asked.tool.iter().cloned().collect(),
                items: vec![Arc::new(Item::Text { role: Role::User, text: asked.text.clone() })],
                max_output: Some(self.answer()),
                purpose,
                ..Request::default()
            };
            let prompt = estimate(&request.system, &request.tools, &request.items);
            let heard = hear(&*self.model, request, &self.facts).await;
            if heard.usage.input.is_some() || heard.usage.output.is_some() {
                usages.push(heard.usage);
            }
            let failure = match heard.answer {
                Ok(whole) => return Ok(whole),
                Err(failure) => failure,
            };
            if failure.class == Class::TooLong {
                // The next job knows what this one was refused for.
                self.model.correct_limits(&failure, RefusedSize { prompt, answer: self.answer() }).await;
            }
            if matches!(failure.class, Class::TooLong | Class::NoTools) {
                return Err(failure);
            }
            match tries.failed(&failure, fastrand::f64()) {
                Next::Wait(wait) => tokio::time::sleep(wait.delay).await,
                Next::GiveUp(spent) => {
                    return Err(Failure::new(failure.class, (self.redact)(&spent.to_string())));
                }
            }
        }
    }
}

/// A lease that is given back when this is dropped, also in the middle of something.
pub(crate) struct Leased {
    journal: Arc<dyn Journal>,
    lease: Lease,
    is_given_back: bool,
}

impl Leased {
    /// Takes the lease on a stream; `Held`, if another has it.
    pub(crate) async fn take(journal: &Arc<dyn Journal>, stream: &StreamName) -> Result<Self> {
        let (journal, stream) = (journal.clone(), stream.clone());
        // A task of its own: whoever is cut while it waits here must not leave behind a lease that nobody gives back.
        let taking = tokio::spawn(async move {
            let lease = journal.acquire_lease(&stream).await?;
            Ok(Self { journal, lease, is_given_back: false })
        });
        match taking.await.unwrap_or(Err(longhaul_journal::Error::Closed)) {
            Ok(leased) => Ok(leased),
            Err(longhaul_journal::Error::Held { holder, .. }) => Err(Error::Held { holder }),
            Err(error) => Err(error.into()),
        }
    }

    /// An append under it.
    pub(crate) fn append(&self) -> Append {
        Append::under(&self.lease)
    }

    /// Gives it back, and returns when that is done, so that the next can take it at once. One that can't be given back expires.
    pub(crate) async fn give_back(mut self) {
        let _ = self.journal.release_lease(&self.lease).await;
        self.is_given_back = true;
    }

    /// Waits for something and keeps the lease meanwhile. Once another has it, this is over. A renewal that fails for the moment is tried
    /// again at the next pulse: what is waited for was paid for, and the append after it is checked anyway.
    pub(crate) async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = std::pin::pin!(work);
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                _ = pulse.tick() => match self.journal.renew_lease(&self.lease).await {
                    Err(error) if !error.may_pass() => return Err(error.into()),
                    _ => {}
                },
            }
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if self.is_given_back {
            return;
        }
        // Where nothing runs any more, the process is about to end, and so is what it holds.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (journal, lease) = (self.journal.clone(), self.lease.clone());
            runtime.spawn(async move { journal.release_lease(&lease).await });
        }
    }
}
