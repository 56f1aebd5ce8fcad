use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Image, InputId, OrderId, PermissionMode, QuestionId, TaskId};

record_kinds! {
    /// The records of an inbox: accepted durably, not yet taken by the session.
    InboxRecord {
        "input" => Input(Input),
        "order" => Order(Order),
    }
}

/// A message to the agent. Its idempotency key is the key of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The id under which it was acknowledged.
    pub id: InputId,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What the input does if a turn is running.
    pub mode: JoinMode,
}

/// What an input does while a turn is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinMode {
    /// The model sees it in the next step of the running turn.
    #[default]
    Join,
    /// It waits for the next turn.
    After,
    /// It cancels the turn and starts the next one.
    Interrupt,
}

/// A control command for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The id under which it was acknowledged.
    pub id: OrderId,
    #[serde(flatten)]
    pub kind: OrderKind,
}

/// The kinds of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum OrderKind {
    /// Cancel the running turn.
    Cancel,
    /// Run the last turn again, or end the wait before a retry now.
    Retry,
    /// Continue an interrupted answer.
    Continue,
    /// Compact the context.
    Compact {
        /// What the summary should focus on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    Kill {
        task: TaskId,
    },
    /// Answer a question.
    Answer {
        question: QuestionId,
        /// `yes`, `always`, `project`, `no`, or words.
        answer: String,
    },
    /// Show the model this text with the next request, without starting a turn: what a program printed for the user.
    AddContext {
        text: String,
    },
    /// Note a text in memory, word for word. Without a text, extract what is new in the session.
    Remember {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Change the permission mode.
    Mode {
        mode: PermissionMode,
    },
    /// An order of a newer version. The session takes and ignores it, so that it does not block the inbox.
    #[serde(other)]
    Unknown,
}
