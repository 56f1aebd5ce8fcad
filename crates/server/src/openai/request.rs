//! What the requests of both endpoints have in common.

use axum::http::HeaderMap;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use longhaul_protocol::SessionId;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::acceptance::SessionReference;
use super::error::{OpenaiError, OpenaiResult};

/// The session of a request, and of its answer.
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-longhaul-session");

/// What is percent-encoded in a key that stands in a header: everything but printable ASCII, and the sign itself.
const HEADER_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Reads a body, with an error that names the wrong parameter.
pub(crate) fn read_request<T: DeserializeOwned>(body: &Value) -> OpenaiResult<T> {
    serde_path_to_error::deserialize(body).map_err(|error| match error.path().to_string().as_str() {
        // The body itself, such as one without a field.
        "." => {
            let message = format!("the body is wrong: {}", error.inner());
            OpenaiError::new(StatusCode::BAD_REQUEST, "invalid_value", message)
        }
        path => OpenaiError::invalid("invalid_value", path, format!("{path}: {}", error.inner())),
    })
}

/// The session that a request names: by the header, else in its metadata, else as its conversation.
pub(crate) fn session_reference(
    headers: &HeaderMap,
    metadata: Option<&Map<String, Value>>,
    conversation: Option<&Value>,
) -> OpenaiResult<Option<SessionReference>> {
    if let Some(value) = headers.get(SESSION_HEADER) {
        let bad =
            || OpenaiError::invalid("invalid_value", "X-Longhaul-Session", "the header is not a session key");
        let key = value.to_str().map_err(|_| bad())?;
        let key = percent_decode_str(key).decode_utf8().map_err(|_| bad())?;
        if key.trim().is_empty() {
            return Err(bad());
        }
        return Ok(Some(SessionReference::Key(key.into_owned())));
    }
    if let Some(key) = metadata.and_then(|metadata| metadata.get("session")).and_then(Value::as_str) {
        return Ok(Some(SessionReference::Key(key.to_owned())));
    }
    let conversation = match conversation {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(key)) => Some(key.as_str()),
        Some(object) => object.get("id").and_then(Value::as_str),
    };
    let key = conversation.filter(|key| !key.trim().is_empty()).ok_or_else(|| {
        OpenaiError::invalid(
            "invalid_value",
            "conversation",
            "a conversation is a session key, or conv_ and a session id",
        )
    })?;
    let id = key.strip_prefix("conv_").and_then(|id| id.parse::<SessionId>().ok());
    Ok(Some(id.map_or_else(|| SessionReference::Key(key.to_owned()), SessionReference::Id)))
}

/// A session key as the value of a header.
pub(crate) fn session_header(key: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&utf8_percent_encode(key, HEADER_ESCAPES).to_string()).ok()
}

/// The session and the turn of a response id, `resp_<session id>_<turn>`.
pub(crate) fn parse_response_id(id: &str) -> Option<(SessionId, u64)> {
    let (session, turn) = id.strip_prefix("resp_")?.split_once('_')?;
    Some((session.parse().ok()?, turn.parse().ok()?))
}

/// The session and the turn of the id of an output item, `msg_<session id>_<turn>_<index>`.
pub(crate) fn parse_item_id(id: &str) -> Option<(SessionId, u64)> {
    let (session, rest) = id.strip_prefix("msg_")?.split_once('_')?;
    let (turn, _) = rest.split_once('_')?;
    Some((session.parse().ok()?, turn.parse().ok()?))
}
