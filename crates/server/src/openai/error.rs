//! Errors in the form that OpenAI's clients read.

use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER};
use longhaul_protocol::TurnEnded;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::problem::Problem;

/// Official clients obey this header before they look at the status.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The code of the error that ends what waits when the server stops.
const STOPPING: &str = "stopping";
/// When a client may ask again for a model whose server does not answer.
const RETRY_AFTER_S: u64 = 5;

/// An error of `/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenaiError {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    /// The parameter that is wrong.
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// Whether the same request would get the same error, because the runtime has already retried or a person has to act.
    is_final: bool,
    /// When to try again, in seconds.
    retry_after: Option<u64>,
}

/// The outcome of a handler of `/v1`.
pub(crate) type OpenaiResult<T> = Result<T, OpenaiError>;

/// The JSON of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorDetail {
    /// What happened and what to do.
    message: String,
    /// The kind of error, as OpenAI names it.
    r#type: String,
    /// The parameter that is wrong.
    param: Option<String>,
    /// A stable name of the error, for programs.
    code: Option<String>,
}

impl OpenaiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            param: None,
            message: message.into(),
            is_final: false,
            retry_after: None,
        }
    }

    /// A request with a wrong parameter.
    pub(crate) fn invalid(code: &str, param: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message).about(param)
    }

    pub(crate) fn not_found(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// The same error, about this parameter.
    pub(crate) fn about(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// The server stops. The client's own retry finds the answer in the next process.
    pub(crate) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, STOPPING, "the server stops; send the request again")
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.code == STOPPING
    }

    /// The server that would know the model does not answer.
    pub(crate) fn model_server_unreachable(provider: &str) -> Self {
        let message = format!("the model server of {provider:?} does not answer; try again, or start it");
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "model_unavailable", message);
        Self { retry_after: Some(RETRY_AFTER_S), ..error }.about("model")
    }

    /// A session in the trash takes nothing until a person restores it.
    pub(crate) fn in_trash(key: &str) -> Self {
        Self { is_final: true, ..Problem::in_trash(key).into() }
    }

    /// A plan can't be carried out any more: the session went on, or another client answered.
    pub(crate) fn plan_settled() -> Self {
        let message = "the plan was not carried out: its question was settled before; send another message";
        Self { is_final: true, ..Self::new(StatusCode::CONFLICT, "question_settled", message) }
    }

    /// The error of a failed turn.
    pub(crate) fn of_turn(ended: &TurnEnded) -> Self {
        let (status, code) = match ended.code.as_deref().unwrap_or_default() {
            "throttled" => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            "quota" => (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota"),
            "context_too_long" => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            "overloaded" | "offline" | "unreachable" | "connection" | "timeout" => {
                (StatusCode::SERVICE_UNAVAILABLE, "model_unavailable")
            }
            "refused" => (StatusCode::BAD_REQUEST, "content_filter"),
            _ => (StatusCode::BAD_GATEWAY, "model_failed"),
        };
        let message = ended.error.clone().unwrap_or_else(|| "the turn failed".to_owned());
        Self { is_final: true, ..Self::new(status, code, message) }
    }

    pub(crate) fn body(&self) -> ErrorBody {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        let (message, param, code) = (self.message.clone(), self.param.clone(), Some(self.code.clone()));
        ErrorBody { error: ErrorDetail { message, r#type: kind.to_owned(), param, code } }
    }
}

impl IntoResponse for OpenaiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!(self.body()))).into_response();
        if self.is_final {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Problem> for OpenaiError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.status, problem.code, problem.detail)
    }
}

impl From<longhaul_agent::Error> for OpenaiError {
    fn from(error: longhaul_agent::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<longhaul_journal::Error> for OpenaiError {
    fn from(error: longhaul_journal::Error) -> Self {
        Problem::from(error).into()
    }
}

/// Shows the problems of `/v1` in OpenAI's form.
pub(crate) async fn show_openai_errors(request: Request, next: Next) -> Response {
    let is_openai = request.uri().path().starts_with("/v1/");
    let original = next.run(request).await;
    let Some(problem) = original.extensions().get::<Problem>().filter(|_| is_openai) else { return original };
    let mut response = OpenaiError::from(problem.clone()).into_response();
    if let Some(delay) = original.headers().get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, delay.clone());
    }
    response
}
