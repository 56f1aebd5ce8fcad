//! Who sent an input, and whose words it has.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{At, CallId, Cause, SessionId};

/// Characters of a sender's name that are shown. A program can call itself anything.
const MAX_NAME_CHARS: usize = 48;

/// Who sent an input (P8). What an agent wrote is never a person's word: it becomes no directive, no answer and no fact about the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sender {
    /// The user, through a terminal, an editor, a program or a page.
    #[default]
    Person,
    /// Another agent, which talks to the session as a client.
    Agent {
        /// What it calls itself.
        name: String,
    },
    /// A schedule, for one of its times.
    Schedule {
        id: String,
        slot: At,
        /// An agent made the schedule, so the words are not a person's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_agent: bool,
        /// Billionths of a US dollar that the turn may cost; unset for no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_cost_nano: Option<u64>,
        /// The schedule is a heartbeat: the turn may end with [`crate::NOTHING_TO_DO`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        heartbeat: bool,
    },
    /// The agent that started this session as its subagent.
    Parent { session: SessionId, call: CallId },
    /// A sender that only a newer version knows.
    #[serde(other)]
    Unknown,
}

impl Sender {
    /// Whether a person sent it just now.
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }

    /// Whether a person wrote the words, now or into a schedule.
    pub fn is_persons_word(&self) -> bool {
        matches!(self, Self::Person | Self::Schedule { by_agent: false, .. })
    }

    /// Whether its inputs may be taken back. The runtime waits for the turns of schedules and subagents.
    pub fn can_withdraw(&self) -> bool {
        matches!(self, Self::Person | Self::Agent { .. })
    }

    /// Whether the turn may end with [`crate::NOTHING_TO_DO`].
    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Self::Schedule { heartbeat: true, .. })
    }

    /// Why a turn that the input begins calls models.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Person => Cause::Turn,
            Self::Agent { .. } | Self::Unknown => Cause::Message,
            Self::Schedule { .. } => Cause::Schedule,
            Self::Parent { .. } => Cause::Subagent,
        }
    }
}

/// As the speaker of the words: `user`, `agent builder`, `schedule nightly`.
impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name stands in a note to the model, so it must not be able to say anything there.
        let shown = |name: &str| -> String {
            let plain = |letter: char| {
                if letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | ':' | '/') {
                    letter
                } else {
                    '_'
                }
            };
            name.chars().take(MAX_NAME_CHARS).map(plain).collect()
        };
        match self {
            Self::Person => f.write_str("user"),
            Self::Agent { name } => write!(f, "agent {}", shown(name)),
            Self::Schedule { id, by_agent: false, .. } => write!(f, "schedule {}", shown(id)),
            Self::Schedule { id, by_agent: true, .. } => write!(f, "schedule {} of an agent", shown(id)),
            Self::Parent { .. } => f.write_str("parent agent"),
            Self::Unknown => f.write_str("unknown sender"),
        }
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
