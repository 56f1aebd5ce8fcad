//! HTTP to a server, with a limit on what it may answer. The client of rmcp reads an answer whole, however long it is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use crate::event_limit::LimitedEvents;
use crate::output_filter::MAX_MESSAGE_BYTES;

/// All events that answer one request. A server that sends more than this is cut off.
const MAX_STREAM_BYTES: usize = 64 << 20;
/// The errors of JSON-RPC with which servers refuse a request before they look at its method.
const SERVER_ERROR: i32 = -32_000;
const INVALID_REQUEST: i32 = -32_600;
/// Bytes to quote of an answer that is not a message.
const MAX_QUOTED_BYTES: usize = 300;

type PostResult = Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>>;

/// A client whose answers are bounded: a message by 16 MiB, the events of one answer by 64 MiB.
#[derive(Debug, Clone)]
pub(crate) struct BoundedHttpClient(pub(crate) reqwest::Client);

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> PostResult {
        let mut request = self.0.post(&*uri).header(ACCEPT, accepted_types());
        if let Some(token) = auth_token {
            request = request.bearer_auth(token);
        }
        request = request.headers(custom_headers.into_iter().collect());
        let has_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        let response = request.json(&message).send().await?;
        read_answer(response, &message, has_session).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        _max_sse_event_size: usize,
    ) -> PostResult {
        // Every answer has this limit anyway.
        self.post_message(uri, message, session_id, auth_token, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.0.delete_session(uri, session_id, auth_token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, StreamableHttpError<Self::Error>> {
        let size = MAX_MESSAGE_BYTES;
        let stream = self
            .0
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_token,
                custom_headers,
                size,
            )
            .await;
        match stream {
            // It does not know the stream any more, and asking again changes nothing. The calls that wait for it end.
            Err(StreamableHttpError::Client(error))
                if error.status().is_some_and(|it| it.is_client_error()) =>
            {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            stream => stream,
        }
    }
}

fn accepted_types() -> String {
    format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}")
}

/// What a server answers to a message.
async fn read_answer(response: Response, message: &ClientJsonRpcMessage, has_session: bool) -> PostResult {
    let status = response.status();
    let header = |name: HeaderName| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let challenge = header(WWW_AUTHENTICATE);
    let session = header(HeaderName::from_static("mcp-session-id"));
    let content_type = header(CONTENT_TYPE);
    let is_of_type = |wanted: &str| content_type.as_deref().is_some_and(|kind| kind.starts_with(wanted));
    let is_json = is_of_type(JSON_MIME_TYPE);
    let needs_answer = matches!(message, ClientJsonRpcMessage::Request(_));
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            let challenge = challenge.unwrap_or_else(|| "Bearer".to_owned());
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let scope = scope_of(&challenge, response.url());
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
                challenge, scope,
            )));
        }
        (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        (StatusCode::NOT_FOUND, _) if has_session => return Err(StreamableHttpError::SessionExpired),
        (StatusCode::TOO_MANY_REQUESTS, _) => return Err(HttpStatusError::new(status.as_u16(), None).into()),
        (status, _) if status.is_server_error() && !is_json => {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        _ => {}
    }
    if status.is_success() && !needs_answer && header(CONTENT_LENGTH).as_deref() == Some("0") {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status.is_success() && is_of_type(EVENT_STREAM_MIME_TYPE) {
        let body = http::Response::<reqwest::Body>::from(response).into_body();
        let body = Limited::new(body, MAX_STREAM_BYTES).map_err(std::io::Error::other);
        let body = LimitedEvents::new(body, MAX_MESSAGE_BYTES);
        return Ok(StreamableHttpPostResponse::Sse(Box::pin(SseStream::new(body)), session));
    }
    if status.is_success() && !is_json {
        return Err(StreamableHttpError::UnexpectedContentType(content_type));
    }
    let body = read_body(response).await?;
    if status.is_success() {
        return match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) if !needs_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!("its answer is not a message ({error}): {}", quote(&body)))),
        };
    }
    let rejection = read_rejection(status, message, is_json, &body, session)?;
    match &rejection {
        StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _)
            if has_session && is_about_session(status, &error.error) =>
        {
            Err(StreamableHttpError::SessionExpired)
        }
        _ => Ok(rejection),
    }
}

/// Whether a server says that it does not know the session, for example because it was started again. The protocol has 404 for
/// that; many servers answer like the example of an SDK, with 400 and one of these errors.
fn is_about_session(status: StatusCode, error: &ErrorData) -> bool {
    let is_of_transport = matches!(error.code.0, SERVER_ERROR | INVALID_REQUEST);
    let said = error.message.to_ascii_lowercase();
    status == StatusCode::BAD_REQUEST
        && is_of_transport
        && (said.contains("session") || said.contains("not initialized"))
}

/// The error in an answer with an HTTP error status: the protocol's own error if the body has one.
fn read_rejection(
    status: StatusCode,
    message: &ClientJsonRpcMessage,
    is_json: bool,
    body: &[u8],
    session: Option<String>,
) -> PostResult {
    let mut error = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    // It answers this request, whatever id it has. Some servers leave the id out, and the call would wait for ever.
    if let (Some(error), ClientJsonRpcMessage::Request(request)) = (&mut error, message) {
        error.id = Some(request.id.clone());
    }
    let rejected = || format!("HTTP {status}: {}", quote(body));
    // A server of the protocol with a handshake may refuse the first message of the other one in any form, and without its id.
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && status != StatusCode::FORBIDDEN
    {
        let reason = error.map_or_else(|| ErrorData::invalid_request(rejected(), None), |error| error.error);
        let answer = ServerJsonRpcMessage::error(reason, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match error.filter(|_| is_json && status != StatusCode::FORBIDDEN) {
        Some(error) => Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session)),
        None if status.is_server_error() => Err(HttpStatusError::new(status.as_u16(), None).into()),
        None => Err(unexpected(rejected())),
    }
}

async fn read_body(response: Response) -> Result<Vec<u8>, StreamableHttpError<reqwest::Error>> {
    let body = http::Response::<reqwest::Body>::from(response).into_body();
    let read = Limited::new(body, MAX_MESSAGE_BYTES).collect().await;
    let read = read.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
        true => unexpected(format!("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20)),
        false => unexpected(error.to_string()),
    });
    Ok(read?.to_bytes().to_vec())
}

/// The scope that a challenge names.
pub(crate) fn scope_of(challenge: &str, url: &reqwest::Url) -> Option<String> {
    rmcp::transport::auth::WWWAuthenticateParams::parse(challenge, url).scope
}

fn unexpected(reason: String) -> StreamableHttpError<reqwest::Error> {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(reason))
}

fn quote(body: &[u8]) -> String {
    let end = body.len().min(MAX_QUOTED_BYTES);
    longhaul_protocol::printable(&body[..end]).to_string()
}
