//! Inputs to a session.

use axum::Json;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::{HeaderMap, Method, StatusCode};
use longhaul_agent::{AttachedImage, UserMessage};
use longhaul_protocol::JoinMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named_session::LiveSession;
use crate::access::{Access, Scope};
use crate::body::JsonBody;
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const MAX_KEY_BYTES: usize = 255;
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
pub(crate) const IDEMPOTENCY_KEY_MEANING: &str = "A text of at most 255 bytes that the client makes up for this request and repeats when it sends it again.";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/api/sessions/{key}/inputs",
            Access::Token(Scope::Act),
            "Send a message to a session",
            send_input,
        )
        .header(IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MEANING)
        .body::<NewInput>()
        .answers::<AcceptedInput>(StatusCode::ACCEPTED, "The message is on disk, and the session answers it.")
        .fails(StatusCode::CONFLICT, "The session is in the trash.")
        .fails(StatusCode::UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another message."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewInput {
    /// What to say. It may be empty only if there are images.
    text: String,
    /// At most 20.
    #[serde(default)]
    #[schemars(length(max = 20))]
    images: Vec<NewImage>,
    /// What the message does if a turn is running; `join` if absent.
    #[serde(default)]
    mode: InputMode,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewImage {
    /// Such as `image/png`. PNG, JPEG, GIF and WebP can be sent.
    media_type: String,
    /// The file, in base64.
    data: String,
}

/// What an input does while a turn is running.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum InputMode {
    /// The model sees it in the next step of the running turn.
    #[default]
    Join,
    /// It waits for the next turn.
    After,
    /// It cancels the turn and begins the next one.
    Interrupt,
}

impl From<InputMode> for JoinMode {
    fn from(mode: InputMode) -> Self {
        match mode {
            InputMode::Join => Self::Join,
            InputMode::After => Self::After,
            InputMode::Interrupt => Self::Interrupt,
        }
    }
}

/// An input that is on disk.
#[derive(Debug, Serialize, JsonSchema)]
struct AcceptedInput {
    /// The id of the input. The event `input_taken` names it.
    input_id: String,
    /// The position in the inbox of the session.
    input_seq: u64,
    /// The session's last record before the input: follow its events with `?after=` to miss nothing.
    after: u64,
}

async fn send_input(
    State(_): State<ServerState>,
    LiveSession { session, .. }: LiveSession,
    headers: HeaderMap,
    JsonBody(input): JsonBody<NewInput>,
) -> ApiResult<(StatusCode, Json<AcceptedInput>)> {
    let key = idempotency_key(&headers)?;
    if input.text.trim().is_empty() && input.images.is_empty() {
        return Err(Problem::bad_request("invalid_body", "text is empty"));
    }
    let message = UserMessage { text: input.text, images: attached_images(input.images)? };
    let accepted = session.put_message(&message, input.mode.into(), key.as_deref()).await?;
    let body =
        AcceptedInput { input_id: accepted.id.to_string(), input_seq: accepted.seq, after: accepted.after };
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// The key under which a record goes into the inbox. Keys of clients can't be mistaken for those of the runtime.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match value.to_str() {
        Ok(key) if !key.trim().is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(format!("http/{key}"))),
        _ => {
            let detail = "Idempotency-Key: send 1 to 255 visible ASCII characters";
            Err(Problem::bad_request("invalid_idempotency_key", detail))
        }
    }
}

/// Decodes images and checks them as the command line does.
fn attached_images(images: Vec<NewImage>) -> ApiResult<Vec<AttachedImage>> {
    let wrong = |detail: String| Problem::bad_request("invalid_image", detail);
    let most = AttachedImage::MAX_PER_MESSAGE;
    if images.len() > most {
        return Err(wrong(format!("images: a message may have {most}")));
    }
    let attach = |(index, image): (usize, NewImage)| {
        let shown = format!("images[{index}]");
        let bytes = BASE64
            .decode(image.data.as_bytes())
            .map_err(|error| wrong(format!("{shown}.data is not base64: {error}")))?;
        AttachedImage::check(bytes, &image.media_type, &shown).map_err(wrong)
    };
    images.into_iter().enumerate().map(attach).collect()
}
