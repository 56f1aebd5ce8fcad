//! The figures and the log line of each request.

use std::pin::Pin;
use std::sync::mpsc::SyncSender;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use hyper::header::CONTENT_TYPE;
use serde::Serialize;

use crate::access::CallerSlot;
use crate::metrics::GaugeGuard;
use crate::route::EVENT_STREAM;
use crate::state::ServerState;

/// The route in figures and logs where there is none.
const NO_ROUTE: &str = "none";

/// Where the lines of the access log go. Lines that the other end is too slow for are dropped.
pub type AccessLog = SyncSender<String>;

/// A line of the access log. It has no query, no header and no body.
#[derive(Serialize)]
struct AccessLine {
    method: String,
    /// The route's pattern.
    route: String,
    /// The path, without secrets.
    path: String,
    status: u16,
    /// Until the last byte of the answer, or until the client has gone.
    duration_ms: u64,
    /// Of the answer's body.
    bytes: u64,
    /// The name of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    peer: Option<String>,
}

/// Counts a request, and logs it when its answer has been sent.
pub(crate) async fn observe(
    State((state, log)): State<(ServerState, Option<AccessLog>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let slot = CallerSlot::default();
    request.extensions_mut().insert(slot.clone());
    let method = request.method().as_str();
    let is_known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].contains(&method);
    let method = if is_known { method } else { "other" }.to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or(NO_ROUTE, MatchedPath::as_str).to_owned();
    let path = log.is_some().then(|| {
        let path = request.uri().path();
        state.runtime().redactor().redact(path).into_owned()
    });
    let connection = request.extensions().get::<crate::connection::Connection>().cloned();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    state.metrics().count_request(&method, &route, status, started.elapsed());
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(EVENT_STREAM.as_bytes()));
    let line = log.zip(path).map(|(log, path)| {
        let token = slot.0.get().cloned();
        let peer = connection.map(|connection| connection.peer.ip().to_string());
        (log, AccessLine { method, route, path, status, duration_ms: 0, bytes: 0, token, peer })
    });
    let follower = is_stream.then(|| state.metrics().open_follower());
    response.map(|body| Body::new(ObservedBody { body, bytes: 0, started, state, line, _follower: follower }))
}

/// A body that counts its bytes and logs the request when it is dropped.
struct ObservedBody {
    body: Body,
    bytes: u64,
    started: Instant,
    state: ServerState,
    line: Option<(AccessLog, AccessLine)>,
    _follower: Option<GaugeGuard>,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ObservedBody {
    fn drop(&mut self) {
        self.state.metrics().count_bytes(self.bytes);
        let Some((log, mut line)) = self.line.take() else { return };
        line.bytes = self.bytes;
        line.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Ok(line) = serde_json::to_string(&line) {
            let _ = log.try_send(line);
        }
    }
}
