//! A session as a file: export and import.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Method, StatusCode};
use longhaul_agent::now;
use longhaul_journal::{ImportOptions, export_session, import_session};
use longhaul_protocol::SessionId;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::named_session::NamedSession;
use super::session_summary::{SessionSummary, summarise};
use crate::access::{Access, Scope};
use crate::body::{Query, drain, next_part, require_content_type};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::{RequestLimits, ServerState};

const SPOOL_PREFIX: &str = "transfer-";
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

/// A private file in the home that is gone when this is dropped. It is locked, so that the next process knows those that a
/// killed one has left.
struct SpoolFile {
    path: PathBuf,
    file: File,
}

impl SpoolFile {
    fn create(home: &Path) -> std::io::Result<Self> {
        let folder = home.join("run");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{SPOOL_PREFIX}{}", SessionId::generate()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        Ok(Self { path, file })
    }
}

/// Removes the files of transfers that a killed process has left.
pub(crate) fn remove_abandoned_transfers(home: &Path) {
    for entry in std::fs::read_dir(home.join("run")).into_iter().flatten().flatten() {
        let is_spool = entry.file_name().to_str().is_some_and(|name| name.starts_with(SPOOL_PREFIX));
        let is_free = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_spool && is_free() {
            let _ = std::fs::remove_file(entry.path());
        }
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
    let spool = receive(request.into_body(), home, state.limits()).await?;
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
async fn receive(mut body: Body, home: PathBuf, limits: RequestLimits) -> ApiResult<SpoolFile> {
    let blocking_failed = |error| not_spooled(&std::io::Error::other(error));
    let created = spawn_blocking(move || SpoolFile::create(&home)).await.map_err(blocking_failed)?;
    let mut spool = created.map_err(|error| not_spooled(&error))?;
    let mut received = 0;
    while let Some(part) = next_part(&mut body, limits).await? {
        received += part.len() as u64;
        if received > MAX_IMPORT_BYTES {
            drain(body);
            let detail =
                format!("an export of more than {MAX_IMPORT_BYTES} bytes can't be imported over HTTP");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail));
        }
        let written = spawn_blocking(move || spool.file.write_all(&part).map(|()| spool));
        spool = written.await.map_err(blocking_failed)?.map_err(|error| not_spooled(&error))?;
    }
    Ok(spool)
}
