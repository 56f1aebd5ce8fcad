//! A session in a list.

use longhaul_agent::{Runtime, SessionActivity, session_title};
use longhaul_journal::{SessionEntry, session_place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::ApiResult;

const MAX_TITLE_CHARS: usize = 60;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    /// No turn is open, and no input waits.
    Idle,
    /// A turn is running, or is about to.
    Working,
    /// A question waits for an answer.
    Question,
    /// A turn is open or an input waits, and no process runs the session.
    Interrupted,
    /// The session is in the trash.
    Trashed,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionSummary {
    /// The key by which people find the session.
    pub(crate) key: String,
    /// The id, which never changes.
    pub(crate) id: String,
    pub(crate) state: SessionState,
    /// What the session is doing, in words; absent if it does nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
    /// The beginning of its first input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The work folder; absent if it has none, or has not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) work_dir: Option<String>,
    /// Whether retention never removes it.
    pub(crate) pinned: bool,
    /// The last record.
    pub(crate) head: u64,
    /// The time of the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_at: Option<String>,
}

/// The summary of a session.
pub(crate) async fn summarise(runtime: &Runtime, entry: &SessionEntry) -> ApiResult<SessionSummary> {
    let journal = runtime.journal();
    let (state, doing) = session_state(runtime, entry).await?;
    let title = session_title(&*journal, entry.id).await.text;
    let place = session_place(&*journal, entry.id).await.unwrap_or_default();
    Ok(SessionSummary {
        key: entry.key.clone(),
        id: entry.id.to_string(),
        state,
        doing,
        title: title.map(|title| longhaul_transcript::truncate(&title, MAX_TITLE_CHARS)),
        work_dir: place.and_then(|place| place.work_dir),
        pinned: entry.pinned,
        head: entry.head.seq,
        last_at: entry.last_at.map(|at| at.to_string()),
    })
}

/// What a session is doing. One that can't be read does nothing.
pub(crate) async fn session_state(
    runtime: &Runtime,
    entry: &SessionEntry,
) -> ApiResult<(SessionState, Option<String>)> {
    if entry.trashed {
        return Ok((SessionState::Trashed, None));
    }
    let activity = runtime.session(&entry.key).await?.activity().await.unwrap_or_default();
    Ok(match activity {
        SessionActivity::Idle => (SessionState::Idle, None),
        SessionActivity::Working(doing) => (SessionState::Working, Some(doing)),
        SessionActivity::Asking(_) => {
            (SessionState::Question, Some("waiting for the answer to a question".to_owned()))
        }
        SessionActivity::Interrupted(doing) => (SessionState::Interrupted, Some(doing)),
    })
}
