//! Reading request bodies and queries, with errors that name the wrong value.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{ApiResult, Problem};
use crate::state::{RequestLimits, ServerState};

/// How long a whole body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);
/// The bytes of a refused body that are read and thrown away.
const MAX_DRAINED_BYTES: usize = 256 << 20;
/// How long they are read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The bytes of all request bodies that may be in memory at once, as a multiple of the most bytes of one.
const MAX_BODIES_IN_MEMORY: usize = 8;
/// The budget is counted in parts of so many bytes.
const BUDGET_PART_BYTES: usize = 1 << 10;
/// When a client should come back whose body did not fit into memory beside the others.
const BUDGET_WAIT: Duration = Duration::from_secs(1);

/// The memory for the bodies of all requests together. A body takes what it needs as it arrives, and gives it back when it
/// was parsed.
#[derive(Clone)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    pub(crate) fn new(max_body_bytes: usize) -> Self {
        let bytes = max_body_bytes.saturating_mul(MAX_BODIES_IN_MEMORY);
        Self(Arc::new(Semaphore::new(bytes.div_ceil(BUDGET_PART_BYTES).min(Semaphore::MAX_PERMITS))))
    }

    /// Lets `held` be enough for so many bytes.
    fn grow(&self, held: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> ApiResult<()> {
        let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(BUDGET_PART_BYTES).saturating_sub(has);
        let Ok(more) = self.0.clone().try_acquire_many_owned(u32::try_from(missing).unwrap_or(u32::MAX))
        else {
            let detail = "the server reads too many large requests at once; try again in a moment";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_bodies", detail);
            return Err(problem.retry_after(BUDGET_WAIT));
        };
        match held {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        Ok(())
    }
}

/// A body in memory, with its part of the budget.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Vec<u8>,
    _held: Option<OwnedSemaphorePermit>,
}

/// A JSON body. The content type must say so: a page on another site can send other types without asking the browser.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<ServerState> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> ApiResult<Self> {
        read_json(request, state, state.limits().max_body_bytes).await.map(Self)
    }
}

/// A JSON body that may be left out, with its content type.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<ServerState> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> ApiResult<Self> {
        let has_type = request.headers().contains_key(CONTENT_TYPE);
        // Some clients name a type for nothing: `curl -d ''` says that it sends a form.
        if has_type && !request.body().is_end_stream() {
            require_content_type(request.headers(), "application/json")?;
        }
        let body = read_body(request, state, state.limits().max_body_bytes).await?;
        match (body.bytes.is_empty(), has_type) {
            (true, _) => Ok(Self(T::default())),
            (false, true) => parse_json(&body.bytes).map(Self),
            (false, false) => Err(wrong_content_type("application/json")),
        }
    }
}

/// The body of a request that needs none. One with fields is refused, because its client expects them to have an effect.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// The parameters after the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<ServerState> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &ServerState) -> ApiResult<Self> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        let rejected = |error: axum::extract::rejection::QueryRejection| {
            Problem::bad_request("invalid_query", format!("the query can't be read: {}", error.body_text()))
        };
        query.map(|query| Self(query.0)).map_err(rejected)
    }
}

/// Refuses a request whose body is not of this media type.
pub(crate) fn require_content_type(headers: &HeaderMap, expected: &str) -> ApiResult<()> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = sent.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    Err(wrong_content_type(expected))
}

fn wrong_content_type(expected: &str) -> Problem {
    let detail = format!("send the body as {expected}, with a Content-Type header that says so");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

/// A JSON body of at most `limit` bytes.
pub(crate) async fn read_json<T: DeserializeOwned>(
    request: Request,
    state: &ServerState,
    limit: usize,
) -> ApiResult<T> {
    require_content_type(request.headers(), "application/json")?;
    let body = read_body(request, state, limit).await?;
    parse_json(&body.bytes)
}

/// The whole body, if it has at most `limit` bytes. A body whose length is announced as larger is not read at all.
pub(crate) async fn read_body(
    request: Request,
    state: &ServerState,
    limit: usize,
) -> ApiResult<BufferedBody> {
    let too_large = || {
        let setting = if limit == state.limits().max_body_bytes { " (server.max_body_bytes)" } else { "" };
        let detail = format!("the body is larger than {limit} bytes{setting}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        // A client that asked first has sent nothing yet, and sends nothing after the refusal.
        if !request.headers().contains_key(EXPECT) {
            drain(request.into_body());
        }
        return Err(too_large());
    }
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    let mut held = None;
    let reading = async {
        loop {
            let Some(data) = next_part(&mut body, state.limits()).await? else { return Ok(()) };
            if bytes.len() + data.len() > limit {
                return Err(too_large());
            }
            state.body_budget().grow(&mut held, bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    };
    let read = tokio::time::timeout(BODY_TIMEOUT, reading).await.unwrap_or_else(|_| Err(too_slow()));
    let is_refused = |problem: &Problem| {
        [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::SERVICE_UNAVAILABLE].contains(&problem.status)
    };
    if read.as_ref().is_err_and(is_refused) {
        drain(body);
    }
    read.map(|()| BufferedBody { bytes, _held: held })
}

/// The next part of a body; `None` at its end. A client that is silent for too long is given up.
pub(crate) async fn next_part(body: &mut Body, limits: RequestLimits) -> ApiResult<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(limits.body_silence_timeout, body.frame()).await;
        let frame = frame.map_err(|_| too_slow())?;
        let Some(frame) = frame else { return Ok(None) };
        let cut =
            |_| Problem::bad_request("body_cut", "the connection ended before the whole body had arrived");
        if let Ok(data) = frame.map_err(cut)?.into_data() {
            return Ok(Some(data));
        }
    }
}

fn too_slow() -> Problem {
    let detail = "the body came too slowly; send it again over a faster connection, or a smaller one";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail)
}

/// Throws away the rest of a refused body while the answer is sent. A client that still writes would get a reset instead of
/// the answer if the connection were closed at once.
pub(crate) fn drain(mut body: Body) {
    let reading = async move {
        let mut drained = 0;
        while let Some(Ok(frame)) = body.frame().await {
            drained += frame.data_ref().map_or(0, |data| data.len());
            if drained > MAX_DRAINED_BYTES {
                return;
            }
        }
    };
    tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, reading));
}

/// Reads an object. Anything else is refused: a list would be taken for the fields of an object in their order.
fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    if !is_object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        let detail = "the body must be a JSON object, such as {\"name\": \"value\"}";
        return Err(Problem::bad_request("invalid_body", detail));
    }
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let path = error.path().to_string();
        let (code, detail) = match (error.inner().classify(), path.as_str()) {
            (serde_json::error::Category::Data, ".") => {
                ("invalid_body", format!("the body is wrong: {}", error.inner()))
            }
            (serde_json::error::Category::Data, path) => {
                ("invalid_body", format!("{path}: {}", error.inner()))
            }
            _ => ("invalid_json", format!("the body is not JSON: {}", error.inner())),
        };
        Problem::bad_request(code, detail)
    })?;
    parser
        .end()
        .map_err(|error| Problem::bad_request("invalid_json", format!("the body is not JSON: {error}")))?;
    Ok(value)
}
