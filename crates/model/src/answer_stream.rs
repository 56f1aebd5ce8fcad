use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::Usage;

use crate::{CallPermit, Capabilities, CorrectedLimits, ModelFailure, RefusedSize, Request};

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// As `provider/model`.
    fn name(&self) -> &str;

    /// Whether the provider searches the web for the model.
    fn search_support(&self) -> SearchSupport {
        SearchSupport::None
    }

    /// What is known about the model. The first call may ask its server.
    async fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Learns from a request that the server refused for its size. [`capabilities`](Self::capabilities) returns the
    /// corrected limits from then on. Returns `None` if the refusal says nothing new.
    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        let _ = (failure, size);
        None
    }

    /// Sends one request. The caller decides about retries. Dropping the stream ends the call. [`CallPermit::send`]
    /// calls this, and observes the answer.
    async fn ask(&self, request: Request, permit: &CallPermit)
    -> Result<Box<dyn AnswerStream>, ModelFailure>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn search_support(&self) -> SearchSupport {
        (**self).search_support()
    }

    async fn capabilities(&self) -> Capabilities {
        (**self).capabilities().await
    }

    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        (**self).correct_limits(failure, size).await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        (**self).ask(request, permit).await
    }
}

/// Whether a provider searches the web by itself, for a request with [`Purpose::Search`](crate::Purpose::Search).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchSupport {
    /// Its protocol has no such search.
    None,
    /// Its protocol has one. Whether this server has it is not known.
    Possible,
    /// The provider has one.
    Known,
}

/// A page that a provider's search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSource {
    pub title: String,
    pub url: String,
}

/// An answer as it streams in.
#[async_trait]
pub trait AnswerStream: Send {
    /// The next part. The last one is [`AnswerPart::End`]; after that or after an error nothing may be read.
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure>;
}

/// A part of a streamed answer. Blocks come one after the other: a start, deltas, a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    TextStart,
    TextDelta(String),
    TextStop,
    ReasoningStart,
    ReasoningDelta(String),
    ReasoningStop {
        /// The provider's signature, which it checks when the reasoning is sent back.
        signature: Option<String>,
    },
    /// The provider's search found a page.
    Source(SearchSource),
    /// A tool call begins.
    CallStart {
        /// The provider's id of the call.
        wire_id: Option<String>,
        name: String,
    },
    /// More of the JSON text of the arguments.
    ArgumentsDelta(String),
    /// The call is complete. It may run even if the rest of the answer fails.
    CallStop {
        /// The provider's signature, which it checks when the call is sent back.
        signature: Option<String>,
    },
    /// The usage so far. It replaces every earlier one.
    Usage(TokenCounts),
    /// The rate limit headers.
    Limits(RateLimits),
    /// The provider ended the answer.
    End(StopReason),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReason {
    pub kind: StopKind,
    /// The provider's own word for the reason.
    pub word: String,
}

impl StopReason {
    pub fn new(kind: StopKind, word: impl Into<String>) -> Self {
        Self { kind, word: word.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// The answer is complete, or the model waits for the results of its calls.
    Finished,
    /// The answer was cut at its length limit.
    Length,
    /// The model or its provider refuses to answer.
    Refused,
}

/// Rate limit headers: names and values as they came.
pub type RateLimits = std::collections::BTreeMap<String, String>;

/// Larger counts are ignored: no call has so many tokens.
pub(crate) const MAX_TOKEN_COUNT: u64 = 1 << 40;

/// The tokens that a provider counted. A count that it did not report is `None`, not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenCounts {
    /// Tokens that were sent, including cached ones.
    pub input: Option<u64>,
    /// Tokens that were received.
    pub output: Option<u64>,
    /// Input tokens that the provider read from its cache.
    pub cached: Option<u64>,
    /// Input tokens that the provider wrote to its cache, if it charges for that separately.
    #[serde(skip)]
    pub written: Option<u64>,
}

impl TokenCounts {
    /// The same counts without those that can't be true.
    pub(crate) fn plausible(self) -> Self {
        let plausible = |count: Option<u64>| count.filter(|count| *count <= MAX_TOKEN_COUNT);
        let Self { input, output, cached, written } = self;
        Self {
            input: plausible(input),
            output: plausible(output),
            cached: plausible(cached),
            written: plausible(written),
        }
    }

    /// The usage record of a call. Only this function copies token counts, so that a count that is added to
    /// [`TokenCounts`] does not compile until it is recorded.
    pub fn usage(self, permit: &CallPermit, facts: &Capabilities) -> Usage {
        let Self { input, output, cached, written } = self;
        let cost = facts.prices.as_ref().and_then(|prices| prices.cost(&self));
        Usage {
            input,
            output,
            cached,
            cache_written: written,
            cost,
            cause: Some(permit.cause()),
            ..Usage::of(permit.attempt())
        }
    }
}
