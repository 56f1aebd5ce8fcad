//! A session in a list.

use longhaul_agent::{Runtime, SessionActivity};
use longhaul_journal::{Journal, Page, SessionEntry, session_place};
use longhaul_protocol::{InboxRecord, SessionId, SessionRecord, StreamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::ApiResult;

/// The first records of a session, in which its title is looked for.
const TITLE_PAGE: Page = Page { records: 16, bytes: 1 << 16 };
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
    let place = session_place(&*journal, entry.id).await.unwrap_or_default();
    Ok(SessionSummary {
        key: entry.key.clone(),
        id: entry.id.to_string(),
        state,
        doing,
        title: title(&*journal, entry.id).await,
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

/// The beginning of the first input of a session. Unreadable records are skipped.
async fn title(journal: &dyn Journal, id: SessionId) -> Option<String> {
    let records = journal.read(&StreamName::session(id), 1, TITLE_PAGE).await.unwrap_or_default();
    let taken = records.iter().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::InputTaken(input)) => Some(input.text),
        _ => None,
    });
    let text = match taken {
        Some(text) => text,
        None => {
            let waiting = journal.read(&StreamName::inbox(id), 1, TITLE_PAGE).await.unwrap_or_default();
            waiting.iter().find_map(|record| match InboxRecord::decode(record) {
                Ok(InboxRecord::Input(input)) => Some(input.text),
                _ => None,
            })?
        }
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(longhaul_transcript::truncate(&words.join(" "), MAX_TITLE_CHARS))
}
