use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Image, InputId, OrderId, QuestionId, TaskId};

record_kinds! {
    /// What stands in an inbox: accepted durably, not yet taken by the session.
    InboxRecord {
        /// Something said to the agent.
        "input" => Input(Input),
        /// Something that the session is told to do.
        "order" => Order(Order),
    }
}

/// Something said to the agent. Its idempotency key is the key of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The id under which it was acknowledged.
    pub id: InputId,
    /// The words.
    pub text: String,
    /// Pictures that came with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What happens if a turn is running when it comes.
    pub mode: JoinMode,
}

/// What an input does when a turn is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinMode {
    /// It is seen at the next step.
    #[default]
    Join,
    /// It waits for the next turn.
    After,
    /// It cancels the turn, then runs.
    Interrupt,
}

/// Something that the session is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The id under which it was acknowledged.
    pub id: OrderId,
    /// What to do.
    #[serde(flatten)]
    pub kind: OrderKind,
}

/// What a session can be told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum OrderKind {
    /// End the running turn.
    Cancel,
    /// Run the last turn again, or end a wait before a retry.
    Retry,
    /// Go on from the text of an interrupted answer.
    Continue,
    /// Make the context smaller.
    Compact {
        /// What the summary should dwell on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    /// End a task.
    Kill {
        /// Which.
        task: TaskId,
    },
    /// Settle a question.
    Answer {
        /// Which.
        question: QuestionId,
        /// `yes`, `no`, or words.
        answer: String,
    },
    /// Something that a newer version can be told: taken and passed over, so that what comes after it is not held up.
    #[serde(other)]
    Unknown,
}
