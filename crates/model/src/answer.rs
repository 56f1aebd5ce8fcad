use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{AttemptId, Usage};

use crate::{Capabilities, CorrectedLimits, ModelFailure, RefusedSize, Request};

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Its name, as `provider/model`.
    fn name(&self) -> &str;

    /// What is known about it. The first time this may ask its server.
    async fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Takes in what a refusal for its size says about the model: [`facts`](Self::facts) are the corrected ones from then on. Nothing,
    /// if it teaches nothing new.
    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        let _ = (failure, size);
        None
    }

    /// Asks it once: whoever calls this decides whether to try again. Dropping what comes back ends the call.
    async fn ask(&self, request: Request) -> Result<Box<dyn AnswerStream>, ModelFailure>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn capabilities(&self) -> Capabilities {
        (**self).capabilities().await
    }

    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        (**self).correct_limits(failure, size).await
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        (**self).ask(request).await
    }
}

/// An answer on its way.
#[async_trait]
pub trait AnswerStream: Send {
    /// What comes next. The last part is [`AnswerPart::End`]; nothing may be asked for after that or after an error.
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure>;
}

/// A piece of an answer. Blocks come one after the other: a start, deltas, a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    /// A block of text begins.
    TextStart,
    /// More text.
    TextDelta(String),
    /// The text is complete.
    TextStop,
    /// The model begins to think.
    ReasoningStart,
    /// More of its thoughts.
    ReasoningDelta(String),
    /// A thought is complete.
    ReasoningStop {
        /// The provider's proof that it is its own.
        signature: Option<String>,
    },
    /// The model begins to ask for a tool.
    CallStart {
        /// The provider's id of the call.
        wire_id: Option<String>,
        /// The tool.
        name: String,
    },
    /// More of the arguments' text.
    ArgumentsDelta(String),
    /// The call is complete, and may be run whatever becomes of the rest of the answer.
    CallStop {
        /// The provider's proof that it is its own.
        signature: Option<String>,
    },
    /// What the call cost so far; a later one replaces an earlier one.
    Usage(TokenCounts),
    /// What the provider says about how much more it takes.
    Limits(RateLimits),
    /// The provider's end mark.
    End(StopReason),
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReason {
    /// What it means.
    pub kind: StopKind,
    /// The provider's word for it.
    pub word: String,
}

impl StopReason {
    /// A stop of this kind, in this word.
    pub fn new(kind: StopKind, word: impl Into<String>) -> Self {
        Self { kind, word: word.into() }
    }
}

/// What a stop means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// It has said what it wanted, or waits for its calls.
    Finished,
    /// It reached the limit of what it may say, in the middle of it.
    Length,
    /// It, or its provider, does not want to answer this.
    Refused,
}

/// What a provider says, in the heads of its answers, about how much more it takes: names and values as they came.
pub type RateLimits = std::collections::BTreeMap<String, String>;

/// Tokens that a provider counted. Unknown is absent, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenCounts {
    /// Sent, the cached ones too.
    pub input: Option<u64>,
    /// Received.
    pub output: Option<u64>,
    /// Found in the provider's cache.
    pub cached: Option<u64>,
    /// Put into the provider's cache, where that has a price of its own.
    #[serde(skip)]
    pub written: Option<u64>,
}

impl TokenCounts {
    /// What a call cost, as it is recorded. The only place that copies token counts: a count that is added to [`TokenCounts`] does not
    /// compile before it is recorded.
    pub fn usage(self, attempt: AttemptId, facts: &Capabilities) -> Usage {
        let Self { input, output, cached, written } = self;
        let cost = facts.prices.as_ref().and_then(|prices| prices.cost(&self));
        Usage { input, output, cached, cache_written: written, cost, ..Usage::of(attempt) }
    }
}
