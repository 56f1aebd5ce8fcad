//! Whether the server works: for load balancers and monitoring.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};

use crate::access::{Access, Scope};
use crate::problem::{ApiResult, Problem};
use crate::route::{PLAIN_TEXT, Route};
use crate::state::ServerState;

/// The text form of Prometheus.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/healthz", Access::Open, "Whether the process answers", healthz)
            .answers_raw(PLAIN_TEXT, "It does."),
        Route::new(Method::GET, "/readyz", Access::Open, "Whether the journal can be written", readyz)
            .answers_raw(PLAIN_TEXT, "It can.")
            .fails(StatusCode::SERVICE_UNAVAILABLE, "It can't, or the server is shutting down."),
        Route::new(Method::GET, "/metrics", Access::Token(Scope::Read), "Figures for Prometheus", metrics)
            .answers_raw(PROMETHEUS_TEXT, "In the text form of Prometheus.")
            .fails(StatusCode::UNAUTHORIZED, "There is no valid token."),
    ]
}

async fn healthz() -> (StatusCode, &'static str) {
    (StatusCode::OK, "ok\n")
}

async fn readyz(State(state): State<ServerState>) -> ApiResult<&'static str> {
    let not_ready = |reason: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason);
    if *state.shutdown().borrow() {
        return Err(not_ready("the server is shutting down".to_owned()));
    }
    // Anyone may ask, so the reason, which names files, is for `doctor`.
    let not_written = || "the journal can't be written; `longhaul doctor` says why".to_owned();
    match state.readiness().is_writable(&*state.journal()).await {
        true => Ok("ok\n"),
        false => Err(not_ready(not_written())),
    }
}

async fn metrics(State(state): State<ServerState>) -> Response {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], state.metrics().to_text()).into_response()
}
