//! What can go wrong with a model call.

use std::time::Duration;

/// Why a model call failed, by what can be done about it. Its code is a contract with programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Too many requests, for now.
    Throttled,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// Nothing came for too long, or the server gave up waiting.
    Timeout,
    /// The answer broke off, or can't be read.
    Broken,
    /// The connection could not be made.
    Connection,
    /// There is no way to a host that has answered before.
    Offline,
    /// There is no way to a host that never answered: perhaps there is no such host.
    Unreachable,
    /// No more is paid for.
    Quota,
    /// The key is missing or not accepted.
    Key,
    /// The server knows no such model or no such address.
    NotFound,
    /// The request is not accepted.
    Invalid,
    /// The server refused the order of roles, and is sent another one with the next request.
    RoleOrder,
    /// The context is longer than the model takes.
    TooLong,
    /// The model can't call tools.
    NoTools,
    /// The model or its provider does not want to answer this.
    Refused,
    /// The host is not who it says it is.
    Certificate,
    /// What answered is no model server.
    NotAModel,
    /// An answer without anything in it.
    Empty,
    /// An answer that is larger than any may be.
    TooLarge,
    /// A script is used up, or says that it fails.
    Script,
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFailure {
    /// What kind of failure it is.
    pub class: FailureClass,
    /// For people: what happened, in the provider's words, and what to do.
    pub message: String,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// How long the server wants us to wait.
    pub delay: Option<Duration>,
    /// What the server says about how much more it takes.
    pub limits: crate::RateLimits,
    /// The sizes that the server named, where it refused a request for its size.
    pub stated: crate::StatedLimits,
    /// The hash of what the server said, to tell the same failure from another.
    pub fingerprint: u64,
}

impl ModelFailure {
    /// A failure of this class, in these words.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            status: None,
            delay: None,
            limits: crate::RateLimits::new(),
            stated: crate::StatedLimits::default(),
            fingerprint: 0,
        }
    }
}

impl std::fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelFailure {}

impl FailureClass {
    /// For programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Overloaded => "overloaded",
            Self::Server => "server_error",
            Self::Timeout => "timeout",
            Self::Broken => "broken_stream",
            Self::Connection => "connection",
            Self::Offline => "offline",
            Self::Unreachable => "unreachable",
            Self::Quota => "quota",
            Self::Key => "bad_key",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid_request",
            Self::RoleOrder => "role_order",
            Self::TooLong => "context_too_long",
            Self::NoTools => "no_tools",
            Self::Refused => "refused",
            Self::Certificate => "certificate",
            Self::NotAModel => "not_a_model_server",
            Self::Empty => "empty_answer",
            Self::TooLarge => "answer_too_large",
            Self::Script => "script",
        }
    }

    /// Whether another try may come to something else.
    pub fn is_retried(self) -> bool {
        match self {
            Self::Throttled
            | Self::Overloaded
            | Self::Server
            | Self::Timeout
            | Self::Broken
            | Self::Connection
            | Self::Offline => true,
            Self::Unreachable
            | Self::Quota
            | Self::Key
            | Self::NotFound
            | Self::Invalid
            | Self::RoleOrder
            | Self::TooLong
            | Self::NoTools
            | Self::Refused
            | Self::Certificate
            | Self::NotAModel
            | Self::Empty
            | Self::TooLarge
            | Self::Script => false,
        }
    }
}
