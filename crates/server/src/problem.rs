//! Errors of the API, as problem details (RFC 9457).

use axum::Extension;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of a handler.
pub(crate) type ApiResult<T> = Result<T, Problem>;

/// Why a request failed: for programs in `code`, which never changes, and for people in `detail`, with the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// The JSON of a problem.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemBody {
    /// The reason phrase of the status.
    title: String,
    /// The HTTP status.
    status: u16,
    /// A stable name of the problem, for programs.
    code: String,
    /// What happened and what to do.
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into() }
    }

    /// A request that can't be understood.
    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    pub(crate) fn no_such_session(key: &str) -> Self {
        let detail = format!("no session has the key or id {key:?}; GET /api/sessions lists them");
        Self::not_found("no_such_session", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail,
        };
        // A struct of strings and a number always serialises.
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let content_type = HeaderValue::from_static("application/problem+json");
        let problem = Self { detail: body.detail, ..self };
        // The extension lets `/v1` show the same problem in OpenAI's form.
        (problem.status, [(CONTENT_TYPE, content_type)], Extension(problem), json).into_response()
    }
}

impl From<longhaul_agent::Error> for Problem {
    fn from(error: longhaul_agent::Error) -> Self {
        use longhaul_agent::Error;
        match error {
            Error::Journal(error) => error.into(),
            Error::NoSuchQuestion { .. } => Self::not_found("no_such_question", error.to_string()),
            Error::NoSuchTask { .. } => Self::not_found("no_such_task", error.to_string()),
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string()),
        }
    }
}

impl From<longhaul_journal::Error> for Problem {
    fn from(error: longhaul_journal::Error) -> Self {
        use longhaul_journal::Error;
        match error {
            Error::NoSuchSession { key } => Self::no_such_session(&key),
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", error.to_string()),
        }
    }
}
