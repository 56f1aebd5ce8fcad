use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Hash, Image, InputId, OrderId, PermissionMode, QuestionId, Sender, TaskId};

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
    /// What a client of the OpenAI-compatible API sent beside the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientRequest>>,
    /// Who sent it. Only a person's words count as the user's (P8).
    #[serde(default, skip_serializing_if = "Sender::is_person")]
    pub sender: Sender,
}

impl Input {
    /// A person's words.
    pub fn new(id: InputId, text: impl Into<String>, mode: JoinMode) -> Self {
        Self { id, text: text.into(), images: vec![], mode, client: None, sender: Sender::Person }
    }
}

/// What a client of the OpenAI-compatible API sent beside the words of an input. The next request of that client is
/// compared with it: it may be a retry, or go on with the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRequest {
    /// The name of the client's token.
    pub token: String,
    /// The hash of the body. A retry has the same.
    pub body: Hash,
    /// The hash of the conversation that the client sent, up to and including this input.
    pub conversation: Hash,
    /// The client's `user`. It is only recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The most tokens of each answer in the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The client's system message. The model gets it as a note, unless its context has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Earlier messages that no session has. The model gets them before the words, as data (P8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// The client does not want to retrieve the response later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstored: bool,
    /// The model, as the client named it: [`ClientRequest::CONFIGURED_MODEL`], or `provider/model`. The session uses it from
    /// this turn on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The client did not wait for the response. Only repeated to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// The response that the client went on from. Only repeated to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// The client's own notes. Only repeated to it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl ClientRequest {
    /// What clients call the configured model.
    pub const CONFIGURED_MODEL: &str = "longhaul";
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
        /// Who gave it.
        #[serde(default, skip_serializing_if = "Sender::is_person")]
        sender: Sender,
    },
    /// Show the model this text with the next request, without starting a turn: what a program printed for the user.
    AddContext {
        text: String,
    },
    /// Note a text in memory, word for word. Without a text, extract what is new in the session.
    Remember {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The name of the token whose holder asked for it, if that one may not write memory. The text is not the user's word then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// Change the permission mode.
    Mode {
        mode: PermissionMode,
    },
    /// Take back an input, unless a turn has taken it.
    Withdraw {
        input: InputId,
    },
    /// An order of a newer version. The session takes and ignores it, so that it does not block the inbox.
    #[serde(other)]
    Unknown,
}
