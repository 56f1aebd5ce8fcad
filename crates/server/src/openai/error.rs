//! Errors in the form that OpenAI's clients read.

use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use serde_json::json;

use crate::problem::Problem;

/// Shows the problems of `/v1` in OpenAI's form.
pub(crate) async fn show_openai_errors(request: Request, next: Next) -> Response {
    let is_openai = request.uri().path().starts_with("/v1/");
    let response = next.run(request).await;
    match response.extensions().get::<Problem>() {
        Some(problem) if is_openai => openai_error(problem, &response),
        _ => response,
    }
}

fn openai_error(problem: &Problem, original: &Response) -> Response {
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    };
    let error = json!({"message": problem.detail, "type": kind, "param": null, "code": problem.code});
    let mut response = (problem.status, Json(json!({"error": error}))).into_response();
    if let Some(delay) = original.headers().get(hyper::header::RETRY_AFTER) {
        response.headers_mut().insert(hyper::header::RETRY_AFTER, delay.clone());
    }
    response
}
