//! A session as a file: export and import.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Method, StatusCode};
use longhaul_journal::{ImportOptions, export_session, import_session};
use longhaul_protocol::{At, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::named_session::NamedSession;
use super::session_summary::{SessionSummary, summarise};
use crate::access::{Access, Scope};
use crate::body::{Query, require_content_type};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const JSON_LINES: &str = "application/jsonl";
/// Bytes of an export that are read from its file at a time.
const PART_BYTES: usize = 64 << 10;
/// The most bytes of a file to import. It is written to disk as it comes, so its size is no matter of memory.
const MAX_IMPORT_BYTES: u64 = 4 << 30;

pub(crate) fn routes() -> Vec<Route> {
    let admin = Access::Token(Scope::Admin);
    vec![
        Route::new(Method::GET, "/api/sessions/{key}/export", admin, "Export a session", export)
            .answers_raw(JSON_LINES, "The session with its inbox and its extracts, one JSON object a line."),
        Route::new(Method::POST, "/api/sessions/import", admin, "Import an exported session", import)
            .query::<ImportQuery>()
            .raw_body(JSON_LINES)
            .answers::<SessionSummary>(StatusCode::CREATED, "The imported session. It has no work folder.")
            .fails(StatusCode::CONFLICT, "A session has this key.")
            .fails(
                StatusCode::UNPROCESSABLE_ENTITY,
                "The file is not a valid export, or its session is here already.",
            ),
    ]
}

/// A private file in the home that is gone when its last handle is.
struct SpoolFile {
    path: PathBuf,
    file: File,
}

impl SpoolFile {
    fn create(home: &Path) -> std::io::Result<Self> {
        let folder = home.join("run");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("transfer-{}", SessionId::generate()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn not_spooled(error: &std::io::Error) -> Problem {
    let detail = format!("the file can't be kept in the home: {error}; try again later");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", detail)
}

/// Writes the export to a file first. So an error has its status, and a slow client holds nothing but that file.
async fn export(State(state): State<ServerState>, NamedSession(entry): NamedSession) -> ApiResult<Response> {
    let (journal, home) = (state.journal(), state.runtime().config().home.clone());
    let runtime = tokio::runtime::Handle::current();
    let spooled = spawn_blocking(move || {
        let spool = SpoolFile::create(&home).map_err(|error| not_spooled(&error))?;
        let mut out = BufWriter::new(&spool.file);
        runtime.block_on(export_session(&*journal, &entry.key, &mut out))?;
        out.flush().map_err(|error| not_spooled(&error))?;
        drop(out);
        let mut file = spool.file.try_clone().map_err(|error| not_spooled(&error))?;
        let length = file.seek(SeekFrom::End(0)).map_err(|error| not_spooled(&error))?;
        file.rewind().map_err(|error| not_spooled(&error))?;
        ApiResult::Ok((file, length))
    });
    let (mut file, length) = spooled.await.map_err(|error| not_spooled(&std::io::Error::other(error)))??;
    let (mut writer, body) = state.written_body();
    tokio::spawn(async move {
        loop {
            let read = spawn_blocking(move || {
                let mut part = vec![0; PART_BYTES];
                let read = file.read(&mut part).ok()?;
                part.truncate(read);
                (read > 0).then_some((file, part))
            });
            let Ok(Some((next, part))) = read.await else { return };
            if writer.write(Bytes::from(part)).await.is_err() {
                return;
            }
            file = next;
        }
    });
    let headers = [(CONTENT_TYPE, JSON_LINES.to_owned()), (CONTENT_LENGTH, length.to_string())];
    Ok((headers, body).into_response())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImportQuery {
    /// The key of the imported session; by default its own.
    #[schemars(length(min = 1, max = 512))]
    key: Option<String>,
}

async fn import(
    State(state): State<ServerState>,
    Query(query): Query<ImportQuery>,
    request: Request,
) -> ApiResult<(StatusCode, Json<SessionSummary>)> {
    require_content_type(request.headers(), JSON_LINES)?;
    let home = state.runtime().config().home.clone();
    let mut spool = SpoolFile::create(&home).map_err(|error| not_spooled(&error))?;
    receive(request, &mut spool.file).await?;
    let options = ImportOptions { key: query.key, ..ImportOptions::at(now()) };
    let (journal, runtime) = (state.journal(), tokio::runtime::Handle::current());
    // Reading and verifying the file blocks.
    let imported =
        spawn_blocking(move || runtime.block_on(import_session(&*journal, &spool.path, &options))).await;
    let imported = imported.map_err(|error| not_spooled(&std::io::Error::other(error)))??;
    let entry = state.session_entry(&imported.key).await?;
    Ok((StatusCode::CREATED, Json(summarise(state.runtime(), &entry).await?)))
}

/// Writes a body to a file as it comes.
async fn receive(request: Request, file: &mut File) -> ApiResult<()> {
    let mut body = request.into_body();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            Problem::bad_request("body_cut", "the connection ended before the whole body had arrived")
        })?;
        let Ok(part) = frame.into_data() else { continue };
        received += part.len() as u64;
        if received > MAX_IMPORT_BYTES {
            let detail =
                format!("an export of more than {MAX_IMPORT_BYTES} bytes can't be imported over HTTP");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail));
        }
        file.write_all(&part).map_err(|error| not_spooled(&error))?;
    }
    file.flush().map_err(|error| not_spooled(&error))
}

fn now() -> At {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    At(since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0))
}
