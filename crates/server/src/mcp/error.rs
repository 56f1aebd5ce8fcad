//! Why a request of a client is refused.

use hyper::StatusCode;
use longhaul_jsonrpc::{BadMessage, RpcError};
use serde_json::json;

use super::request::{Revision, SUPPORTED_VERSIONS, TASKS_EXTENSION};
use crate::problem::Problem;

const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
const HEADER_MISMATCH: i32 = -32_020;
const MISSING_CAPABILITY: i32 = -32_021;
const UNSUPPORTED_VERSION: i32 = -32_022;

pub(super) type McpResult<T> = Result<T, McpError>;

/// An error of JSON-RPC, with the HTTP status that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McpError {
    status: StatusCode,
    pub(super) error: RpcError,
}

impl McpError {
    fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        Self { status, error: RpcError::new(code, message) }
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    /// The parameters of a method are wrong.
    pub(super) fn params(method: &str, reason: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, format!("{method}: {reason}"))
    }

    /// What a stateless request must say about its client is missing or wrong.
    pub(super) fn meta(reason: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_PARAMS, format!("params._meta: {reason}"))
    }

    /// A header does not say what the body says.
    pub(super) fn header_mismatch(header: &str, expected: &str) -> Self {
        let message = format!("the header {header} must be {expected:?}, as the body says");
        Self::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let supported = SUPPORTED_VERSIONS.join(", ");
        let message = format!("the protocol version {requested:?} is not supported; use one of {supported}");
        let mut error = Self::new(StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION, message);
        error.error.data = Some(json!({"supported": SUPPORTED_VERSIONS, "requested": requested}));
        error
    }

    /// The client must declare the extension for tasks.
    pub(super) fn missing_tasks(method: &str) -> Self {
        let message = format!("{method} is for clients that declare the extension {TASKS_EXTENSION}");
        let mut error = Self::new(StatusCode::BAD_REQUEST, MISSING_CAPABILITY, message);
        error.error.data = Some(json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}));
        error
    }

    pub(super) fn no_such_task(id: &str) -> Self {
        Self::new(StatusCode::OK, INVALID_PARAMS, format!("there is no task {id:?}"))
    }

    /// The process ends while a client waits.
    pub(super) fn stopping() -> Self {
        let message = "the server is shutting down; the turn goes on. Ask again with the same key or task id";
        Self::new(StatusCode::OK, INTERNAL_ERROR, message)
    }

    /// The status of the answer. With the revisions that have a handshake, errors of methods are ordinary answers.
    pub(super) fn status(&self, revision: Revision) -> StatusCode {
        match revision {
            Revision::Handshake if self.error.code != UNSUPPORTED_VERSION => StatusCode::OK,
            _ => self.status,
        }
    }
}

impl From<Problem> for McpError {
    fn from(problem: Problem) -> Self {
        let code = if problem.status.is_client_error() { INVALID_PARAMS } else { INTERNAL_ERROR };
        Self::new(StatusCode::OK, code, problem.detail)
    }
}

impl From<longhaul_agent::Error> for McpError {
    fn from(error: longhaul_agent::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<longhaul_journal::Error> for McpError {
    fn from(error: longhaul_journal::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<&BadMessage> for McpError {
    fn from(bad: &BadMessage) -> Self {
        Self::new(StatusCode::BAD_REQUEST, bad.error.code(), bad.error.to_string())
    }
}
