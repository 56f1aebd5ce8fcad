//! What can go wrong with a server.

use thiserror::Error;

/// A failure of an MCP server. It concerns only the tools of that server.
#[derive(Debug, Clone, Error)]
pub enum Error {
    /// Its settings are wrong.
    #[error("{0}")]
    Settings(String),
    /// It was not started, can't be reached, or did not answer as an MCP server does.
    #[error("{0}")]
    NotStarted(String),
    /// It ended or closed the connection.
    #[error("{0}")]
    Ended(String),
    /// It did not answer in time.
    #[error("it did not answer within {seconds} s")]
    Timeout { seconds: u64 },
    /// It answered with an error.
    #[error("{0}")]
    Refused(String),
    /// It answered with something that is no result. What it did is unknown.
    #[error("{0}")]
    Unreadable(String),
    /// The task that it made of a call has failed, or was cancelled there.
    #[error("{0}")]
    TaskFailed(String),
    /// It wants the user to log in, or to log in again with more rights.
    #[error("it needs a login; run `longhaul mcp login {server}`")]
    LoginNeeded { server: String },
    /// The caller no longer waits.
    #[error("stopped: the turn ended before this was done")]
    Cancelled,
}

pub type Result<T> = std::result::Result<T, Error>;
