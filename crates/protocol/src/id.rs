use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use crate::At;

/// The error for a text that is not a valid id, hash or name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: expected {expected}")]
pub struct ParseError {
    what: &'static str,
    text: String,
    expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(what: &'static str, text: &str, expected: &'static str) -> Self {
        // The message stays short even if the caller passes a whole file.
        let text = text.chars().take(80).collect();
        Self { what, text, expected }
    }
}

/// Parses the one accepted form of a ULID, so that equal ids have equal texts.
fn strict_ulid(text: &str) -> Option<Ulid> {
    Ulid::from_string(text).ok().filter(|ulid| ulid.to_string() == text)
}

macro_rules! ulid_ids {
    ($($(#[$meta:meta])* $name:ident, $what:literal;)*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// A new id, from the clock and the system's randomness. Pure code must not call this.
            pub fn generate() -> Self {
                Self(Ulid::generate())
            }

            /// The id with these bits.
            pub const fn from_bits(bits: u128) -> Self {
                Self(Ulid::from_bytes(bits.to_be_bytes()))
            }

            /// When the id was generated, by the clock of the generating process.
            pub fn made_at(self) -> At {
                At(i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                strict_ulid(text)
                    .map(Self)
                    .ok_or_else(|| ParseError::new($what, text, "a ULID, 26 upper-case characters"))
            }
        }

        text_form!($name);
    )* };
}

/// Serialises a type as its text.
macro_rules! text_form {
    ($name:ident) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string"})
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_form;

ulid_ids! {
    /// A session. The id never changes, even if the session's key does.
    SessionId, "session id";
    /// One input, from the moment that it is accepted.
    InputId, "input id";
    /// One order, such as "cancel".
    OrderId, "order id";
    /// One try at a model call.
    AttemptId, "attempt id";
    /// One tool call. The provider's own id is kept only for the wire.
    CallId, "call id";
    /// One question to a person.
    QuestionId, "question id";
}

/// The highest random bit of a ULID. Ids that are generated one after the other differ in lower bits.
const OUTSIDE_BIT: u128 = 1 << 79;

/// A task, by the id of the call that started it: `task_` and the ULID in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(CallId);

impl From<CallId> for TaskId {
    fn from(call: CallId) -> Self {
        Self(call)
    }
}

impl TaskId {
    /// The call that started the task.
    pub const fn call(self) -> CallId {
        self.0
    }

    /// The task of a call's second run, outside of the sandbox. It is derived from the call, so that there is only one such task
    /// whatever becomes of the records in between.
    pub fn outside_sandbox(call: CallId) -> Self {
        let bits = u128::from_be_bytes(call.0.to_bytes());
        Self(CallId::from_bits(bits ^ OUTSIDE_BIT))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task_{}", self.0.to_string().to_ascii_lowercase())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({self})")
    }
}

impl FromStr for TaskId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.strip_prefix("task_")
            .filter(|rest| !rest.bytes().any(|byte| byte.is_ascii_uppercase()))
            .and_then(|rest| strict_ulid(&rest.to_ascii_uppercase()))
            .map(|ulid| Self(CallId(ulid)))
            .ok_or_else(|| ParseError::new("task id", text, "task_ and 26 lower-case characters"))
    }
}

text_form!(TaskId);
