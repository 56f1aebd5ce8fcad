//! The session that a path names.

use axum::extract::{FromRequestParts, Path};
use hyper::http::request::Parts;
use longhaul_agent::Session;
use longhaul_journal::SessionEntry;

use crate::problem::{ApiResult, Problem};
use crate::state::ServerState;

/// The session that `{key}` in a path names by its key or id. It may be in the trash.
pub(crate) struct NamedSession(pub(crate) SessionEntry);

/// Like [`NamedSession`], but not in the trash, with its handle.
pub(crate) struct LiveSession {
    pub(crate) entry: SessionEntry,
    pub(crate) session: Session,
}

impl FromRequestParts<ServerState> for NamedSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> ApiResult<Self> {
        let key = Path::<String>::from_request_parts(parts, state).await;
        // Bytes that a path may not have were refused before.
        let Path(key) =
            key.map_err(|rejection| Problem::bad_request("invalid_path", rejection.body_text()))?;
        state.session_entry(&key).await.map(Self)
    }
}

impl FromRequestParts<ServerState> for LiveSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> ApiResult<Self> {
        let NamedSession(entry) = NamedSession::from_request_parts(parts, state).await?;
        if entry.trashed {
            return Err(Problem::in_trash(&entry.key));
        }
        let session = state.runtime().session_of(&entry);
        Ok(Self { entry, session })
    }
}
