//! What a task has printed.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use longhaul_agent::tasks::{Audience, OutputChunk, OutputFilter, OutputReader, OutputStream, TaskOutput};
use longhaul_transcript::format_number;
use schemars::JsonSchema;
use serde::Deserialize;

use super::path::PathParameters;
use super::tasks::find_task;
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::events::body::BodyWriter;
use crate::problem::ApiResult;
use crate::route::{PLAIN_TEXT, Route};
use crate::state::ServerState;

/// Where a later request goes on. Bytes of the body can't be counted instead, because secrets are taken out.
const NEXT_OFFSET: HeaderName = HeaderName::from_static("x-longhaul-next-offset");

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/tasks/{id}/output", read, "Read the output of a task", task_output)
            .query::<OutputQuery>()
            .answers_raw(PLAIN_TEXT, "The output, without secrets.")
            .fails(StatusCode::CONFLICT, "Another node has the task."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    /// The first byte to read, counted in what was printed.
    offset: Option<u64>,
    /// The most bytes to read.
    limit: Option<u64>,
    /// Whether to go on until the task ends.
    #[serde(default)]
    follow: bool,
    /// The key or id of the task's session. Needed only for a task that has expired.
    session: Option<String>,
}

async fn task_output(
    State(state): State<ServerState>,
    PathParameters(id): PathParameters<String>,
    Query(query): Query<OutputQuery>,
) -> ApiResult<Response> {
    let (registry, task) = find_task(&state, &id, query.session.as_deref()).await?;
    let output = registry.output(&task).await?;
    let is_kept = matches!(output, TaskOutput::Kept(_));
    let offset = query.offset.unwrap_or(0);
    let wanted = query.limit.map_or(u64::MAX, |limit| offset.saturating_add(limit));
    let end = output.printed()?.min(wanted);
    let filter = OutputFilter::new(state.runtime().redactor(), Audience::Program);
    let reader = OutputReader::new(output, offset, filter)?;
    let stream = match query.follow && is_kept {
        true => OutputStream::following(registry.tasks()?, task.id(), reader, wanted),
        false => OutputStream::new(reader, end),
    };
    let (writer, body) = state.written_body();
    tokio::spawn(write_output(stream, writer));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(PLAIN_TEXT)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let next = [(NEXT_OFFSET, HeaderValue::from(end.max(offset)))];
    // What follows the headers of a stream that goes on is not known yet.
    Ok(if query.follow { (headers, body).into_response() } else { (headers, next, body).into_response() })
}

/// Writes the output as fast as the client reads. If it can't be read to its end, or the server stops, the body breaks off.
async fn write_output(mut stream: OutputStream, mut writer: BodyWriter) {
    loop {
        let chunks = tokio::select! {
            chunks = stream.next() => chunks,
            _ = writer.stopped() => return writer.break_off(),
        };
        let chunks = match chunks {
            Ok(Some(chunks)) => chunks,
            Ok(None) => return,
            Err(_) => return writer.break_off(),
        };
        for chunk in chunks {
            let part = match chunk {
                OutputChunk::Bytes(bytes) => Bytes::from(bytes),
                OutputChunk::Dropped(range) => {
                    let (bytes, from) = (format_number(range.end - range.start), format_number(range.start));
                    Bytes::from(format!("\n[{bytes} bytes dropped here, from byte {from}]\n"))
                }
            };
            if writer.write(part).await.is_err() {
                return writer.break_off();
            }
        }
    }
}
