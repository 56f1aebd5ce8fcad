//! Errors of the API, as problem details (RFC 9457).

use std::time::Duration;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
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
    /// When to try again, if that helps.
    pub(crate) wait: Option<Duration>,
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
        Self { status, code, detail: detail.into(), wait: None }
    }

    /// The same problem, with `Retry-After`.
    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
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

    /// A position behind the last record of a session.
    pub(crate) fn seq_ahead(seq: u64, key: &str, head: u64) -> Self {
        let detail = format!("seq {seq} is in the future: the last record of {key:?} is {head}");
        Self::bad_request("seq_ahead", detail)
    }

    pub(crate) fn no_such_session(key: &str) -> Self {
        let detail = format!("no session has the key or id {key:?}; GET /api/sessions lists them");
        Self::not_found("no_such_session", detail)
    }

    pub(crate) fn in_trash(key: &str) -> Self {
        Self::conflict("session_in_trash", format!("session {key:?} is in the trash; restore it first"))
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
        let wait = problem.wait;
        let mut response =
            (problem.status, [(CONTENT_TYPE, content_type)], Extension(problem), json).into_response();
        if let Some(wait) = wait {
            // Whole seconds, rounded up.
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        response
    }
}

impl From<longhaul_agent::Error> for Problem {
    fn from(error: longhaul_agent::Error) -> Self {
        use longhaul_agent::Error;
        match error {
            Error::Journal(error) => error.into(),
            Error::NoSuchQuestion { .. } => Self::not_found("no_such_question", error.to_string()),
            Error::QuestionSettled { .. } => Self::conflict("question_settled", error.to_string()),
            Error::KeyReused { .. } => {
                let detail =
                    "this Idempotency-Key was used before with another body; use a new key for a new request";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail)
            }
            Error::NoSuchPoint { .. } => Self::bad_request("no_such_point", error.to_string()),
            Error::Model(error) => Self::bad_request("unknown_model", error.to_string()),
            Error::Memory(error) => error.into(),
            Error::NoSuchTask { .. } => Self::not_found("no_such_task", error.to_string()),
            Error::TaskOnOtherNode { .. } => Self::conflict("task_on_other_node", error.to_string()),
            Error::NoSuchSchedule { .. } => Self::not_found("no_such_schedule", error.to_string()),
            Error::Schedule { .. } => Self::bad_request("invalid_schedule", error.to_string()),
            Error::ScheduleExists { .. } => Self::conflict("schedule_exists", error.to_string()),
            Error::ScheduleInConfig { .. } => Self::conflict("schedule_in_config", error.to_string()),
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string()),
        }
    }
}

impl From<longhaul_journal::Error> for Problem {
    fn from(error: longhaul_journal::Error) -> Self {
        use longhaul_journal::Error;
        match error {
            Error::NoSuchSession { key } => Self::no_such_session(&key),
            Error::SessionExists { key } => Self::conflict(
                "session_exists",
                format!("a session {key:?} already exists; choose another key"),
            ),
            Error::BadKey { .. } => Self::bad_request("invalid_key", error.to_string()),
            Error::BadRecord { reason, .. } => Self::bad_request("invalid_body", reason),
            Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "input_too_large", error.to_string())
            }
            Error::InUseBy { .. } | Error::Held { .. } => Self::conflict("session_in_use", error.to_string()),
            Error::BadFile { reason, .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_export",
                format!("{reason}; nothing changed"),
            ),
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", error.to_string()),
        }
    }
}

impl From<longhaul_memory::Error> for Problem {
    fn from(error: longhaul_memory::Error) -> Self {
        use longhaul_memory::Error;
        match error {
            Error::Journal(error) => error.into(),
            Error::NoPage { .. } => Self::not_found("no_such_page", error.to_string()),
            Error::NoChange { .. } => Self::not_found("no_such_change", error.to_string()),
            Error::BadScope { .. } => Self::not_found("no_such_scope", error.to_string()),
            Error::BadName { .. } => Self::bad_request("invalid_page_name", error.to_string()),
            Error::Unfit { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "page_does_not_fit", error.to_string())
            }
            Error::NothingToUndo { .. } => Self::conflict("nothing_to_undo", error.to_string()),
            Error::BuiltUpon { .. } => Self::conflict("built_upon", error.to_string()),
            Error::Changed { .. } => Self::conflict("page_changed", error.to_string()),
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string()),
        }
    }
}
