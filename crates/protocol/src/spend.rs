use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{At, AttemptId, Seq, SessionId};

record_kinds! {
    /// The records of the stream `spend/home`: the ledger of all model calls.
    SpendRecord {
        "spend_reserved" => Reserved(SpendReserved),
        "spend_settled" => Settled(SpendSettled),
        "spend_refused" => Refused(SpendRefused),
        "spend_opened" => Opened(SpendOpened),
    }
}

/// Why a model is called.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A person's turn.
    #[default]
    Turn,
    /// A turn that a schedule began.
    Schedule,
    /// A turn that the end of a command in the background began.
    Task,
    /// A turn that the end of a subagent in the background began.
    Child,
    /// A turn of a subagent.
    Subagent,
    /// A turn that the message of another agent began.
    Message,
    /// The summary of a compaction.
    Compaction,
    /// Extraction or consolidation.
    Memory,
    /// The title of a session.
    Title,
}

impl Cause {
    /// The name in records, events and statements.
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Schedule => "schedule",
            Self::Task => "task",
            Self::Child => "child",
            Self::Subagent => "subagent",
            Self::Message => "message",
            Self::Compaction => "compaction",
            Self::Memory => "memory",
            Self::Title => "title",
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An upper bound of what a model call may use, before the call is made. Its key is `reserved/<attempt>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpendReserved {
    pub attempt: AttemptId,
    /// The session that the call is for.
    pub session: SessionId,
    pub cause: Cause,
    /// As `provider/model`.
    pub model: String,
    /// What the call counts against beside its session, its day, its month and the total, such as `turn/3`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Soft limits that the call may pass: a person agreed, or was warned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_soft: Vec<String>,
    /// The most tokens, sent and received.
    pub tokens: u64,
    /// The most US dollars; absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// When the call was made, if that was before this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<At>,
    /// The process that makes the call.
    pub holder: SpendHolder,
}

impl SpendReserved {
    /// The key of the record.
    pub fn key(attempt: AttemptId) -> String {
        format!("reserved/{attempt}")
    }
}

/// The process that made a reservation, named as the holder of a lease is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendHolder {
    pub host: String,
    pub boot: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pid_namespace: String,
    pub pid: u32,
    /// When the process started, in ticks since boot.
    pub started: u64,
    /// Which of the runtimes in that process.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runtime: String,
}

/// What a model call really used. Its key is `settled/<attempt>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpendSettled {
    pub attempt: AttemptId,
    #[serde(default)]
    pub usage: SpentTokens,
    /// US dollars; absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    pub source: SpendSource,
}

impl SpendSettled {
    /// The key of the record.
    pub fn key(attempt: AttemptId) -> String {
        format!("settled/{attempt}")
    }
}

/// The tokens of a settled call. An unknown count is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpentTokens {
    /// Tokens sent, including cached ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
}

/// Where the amount of a settled call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendSource {
    /// The provider counted it.
    Provider,
    /// The answer was cut, or the provider counts nothing: the counted input and the received output.
    Estimate,
    /// The process died during the call: the whole reservation.
    Bound,
    /// The call failed before its first byte, or was never made.
    None,
}

/// A person does not want soft limits to be passed. No one is asked about them again in their period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendRefused {
    /// The limits with their periods, as in `past_soft` of a reservation.
    pub names: Vec<String>,
    /// The session in which the person was asked.
    pub session: SessionId,
}

/// A place where reading the ledger can begin. Its key is `opened/<number>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendOpened {
    /// Counted from 1.
    pub number: u64,
    /// The record of the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Seq>,
    /// Whether the usage from before the ledger is in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// All calls of sessions that were made before this moment are in the ledger. Absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<At>,
    /// What was spent so far, for each period or turn that is not over.
    pub totals: Vec<SpendTotal>,
    /// Reservations that are not settled.
    pub open: Vec<OpenReservation>,
    /// Soft limits that were passed, of periods that are not over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_soft: Vec<String>,
    /// Soft limits that a person does not want to be passed, of periods that are not over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The calls that were settled since the previous record of this kind, added up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<SpentRow>,
}

impl SpendOpened {
    /// The key of the record with this number.
    pub fn key(number: u64) -> String {
        format!("opened/{number}")
    }
}

/// What was spent in a period, a turn or in all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpendTotal {
    /// `day/2026-11-17`, `month/2026-11`, `total`, `turn/<session>/3`.
    pub scope: String,
    pub tokens: u64,
    /// US dollars, as far as prices are known.
    pub cost: f64,
    /// When the total of a turn last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// A reservation that was open when the ledger was opened anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenReservation {
    /// When it was made.
    pub at: At,
    #[serde(flatten)]
    pub reserved: SpendReserved,
}

/// The settled calls of one day, session, cause and model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpentRow {
    /// The day of the reservations, in UTC, as `2026-11-17`.
    pub day: String,
    /// Absent for calls from before the ledger that no session is known for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub cause: Cause,
    /// Empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    pub calls: u64,
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    /// US dollars, as far as prices are known.
    pub cost: f64,
    /// Calls whose price is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Calls that were settled at their upper bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_upper_bound: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
