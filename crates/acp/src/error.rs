use longhaul_protocol::PrintablePath;
use std::path::PathBuf;

use longhaul_jsonrpc::RpcError;

/// Why a message of an editor can't be carried out. Each error is the answer to one message; the connection goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Message(#[from] longhaul_jsonrpc::MessageError),
    #[error("{method} came before initialize; call initialize first")]
    NotInitialized { method: String },
    #[error("there is no method {method}")]
    UnknownMethod { method: String },
    #[error("{method}: {reason}")]
    Params { method: String, reason: String },
    #[error(
        "there is no session {session} on this connection; open it with session/load, or make one with session/new"
    )]
    UnknownSession { session: String },
    #[error("{} can't be a work folder: {reason}", path.printable())]
    WorkFolder { path: PathBuf, reason: String },
    /// The config or the journal can't be opened. The text says what to do.
    #[error("{0}")]
    Open(String),
    #[error("{0}")]
    TurnFailed(String),
    /// Only in version 2: a prompt that was cancelled before it was on record.
    #[error("cancelled before the session took it")]
    Cancelled,
    #[error("the session ended on this side; load it again")]
    SessionEnded,
    /// The answer to a prompt that is open when its session is opened again, or its connection ends.
    #[error(
        "the turn goes on, but this prompt is not followed any more: its session was opened again, or the input ended"
    )]
    SessionLeft,
    #[error(transparent)]
    Agent(#[from] longhaul_agent::Error),
    #[error(transparent)]
    Journal(#[from] longhaul_journal::Error),
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn params(method: &str, reason: impl std::fmt::Display) -> Self {
        Self::Params { method: method.to_owned(), reason: reason.to_string() }
    }

    /// The code of JSON-RPC, or of the protocol.
    fn code(&self) -> i32 {
        match self {
            Self::Message(error) => error.code(),
            Self::NotInitialized { .. } => -32_600,
            Self::UnknownMethod { .. } => -32_601,
            Self::Params { .. } | Self::WorkFolder { .. } => -32_602,
            Self::UnknownSession { .. } => -32_002,
            Self::Cancelled => -32_800,
            Self::Open(_)
            | Self::TurnFailed(_)
            | Self::SessionEnded
            | Self::SessionLeft
            | Self::Agent(_)
            | Self::Journal(_) => -32_603,
        }
    }
}

impl From<&Error> for RpcError {
    fn from(error: &Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
