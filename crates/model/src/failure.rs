//! Failures of model calls.

use std::time::Duration;

/// The class of a failure, by what can be done about it. Its code is a contract with programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Rate limited.
    Throttled,
    Overloaded,
    Server,
    /// A timeout of this process or of the server.
    Timeout,
    /// The stream broke off or can't be parsed.
    Broken,
    Connection,
    /// A host that has answered before can't be reached: the network is down.
    Offline,
    /// A host that never answered can't be reached: it may not exist.
    Unreachable,
    /// Quota or credit is used up.
    Quota,
    /// The API key is missing or not accepted.
    Key,
    NotFound,
    Invalid,
    /// The server refused the order of roles. The next request uses another one.
    RoleOrder,
    /// The request is longer than the context window.
    TooLong,
    NoTools,
    /// The model or its provider refuses to answer.
    Refused,
    /// The TLS certificate is not accepted.
    Certificate,
    NotAModel,
    Empty,
    TooLarge,
    /// A scripted model has no answer left, or its script says to fail.
    Script,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFailure {
    pub class: FailureClass,
    /// For people: what happened, in the provider's words, and what to do about it.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// How long the server asks to wait, from `Retry-After` or a similar field.
    pub delay: Option<Duration>,
    /// The rate limit headers.
    pub limits: crate::RateLimits,
    /// The limits that the server named when it refused a request for its size.
    pub stated: crate::StatedLimits,
    /// The hash of the response body, to recognise a repeated failure.
    pub fingerprint: u64,
}

impl ModelFailure {
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

    /// Whether the retry policy retries this class.
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
