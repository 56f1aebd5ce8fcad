use std::sync::Arc;

use async_trait::async_trait;

use crate::{Request, Result};

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Its name, as `provider/model`.
    fn name(&self) -> &str;

    /// Asks it. Dropping what comes back ends the call.
    async fn ask(&self, request: Request) -> Result<Box<dyn Answer>>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn Answer>> {
        (**self).ask(request).await
    }
}

/// An answer on its way.
#[async_trait]
pub trait Answer: Send {
    /// What comes next. The last part is [`Part::End`]; nothing may be asked for after that or after an error.
    async fn next(&mut self) -> Result<Part>;
}

/// A piece of an answer. Blocks come one after the other: a start, deltas, a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
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
    CallStop,
    /// What the call cost so far; a later one replaces an earlier one.
    Usage(Tokens),
    /// The provider's end mark, with its word for why it stopped.
    End(String),
}

/// Tokens that a provider counted. Unknown is absent, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Sent, the cached ones too.
    pub input: Option<u64>,
    /// Received.
    pub output: Option<u64>,
    /// Found in the provider's cache.
    pub cached: Option<u64>,
}
