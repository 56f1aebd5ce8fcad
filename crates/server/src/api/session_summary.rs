//! A session in a list.

use longhaul_agent::{
    Error, Runtime, SessionActivity, SessionOverview, parent_of, session_overview, session_title,
};
use longhaul_journal::{Error as JournalError, Journal, SessionEntry, records, session_place};
use longhaul_protocol::{Cause, CompactDone, Outcome, Question, Seq, SessionId, StreamName, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::ApiResult;

const MAX_TITLE_CHARS: usize = 60;
const MAX_FAILURE_CHARS: usize = 300;
/// Records to read at once, from the end, for the last model call of a session; and the most to look at.
const CONTEXT_LOOK_BACK: Seq = 64;
const MAX_CONTEXT_LOOK_BACK: Seq = 1_024;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    /// No turn is open, and no input waits.
    Idle,
    /// The same, and the last turn failed.
    Failed,
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
    /// What began the turn that is open; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// The session that started it as its subagent; absent if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<ParentSession>,
    /// How the last turn ended: `completed`, `cancelled`, `failed` or `limit`.
    #[schemars(with = "Option<String>")]
    pub(crate) last_outcome: Option<Outcome>,
    /// The first line of why the last turn failed, or of which limit ended it.
    pub(crate) failure: Option<String>,
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

/// The session that started a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ParentSession {
    pub(crate) key: String,
    pub(crate) id: String,
}

/// A session with how full its context is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ListedSession {
    #[serde(flatten)]
    pub(crate) summary: SessionSummary,
    /// Null before the first model call, and in the trash.
    pub(crate) context: Option<ContextFill>,
}

/// How full the context of a session was at its last model call, or after the compaction that followed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ContextFill {
    pub(crate) tokens: u64,
    /// The model's context window, if it is known.
    pub(crate) window: Option<u64>,
}

/// What a session is doing, as lists and the overview say it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Doing {
    pub(crate) state: SessionState,
    pub(crate) doing: Option<String>,
    pub(crate) question: Option<Box<Question>>,
    pub(crate) cause: Option<Cause>,
    pub(crate) last_outcome: Option<Outcome>,
    pub(crate) failure: Option<String>,
    pub(crate) context: Option<ContextFill>,
}

/// The summary of a session.
pub(crate) async fn summarise(runtime: &Runtime, entry: &SessionEntry) -> ApiResult<SessionSummary> {
    let doing = read_doing(&*runtime.journal(), entry).await?;
    Ok(summarise_doing(runtime, entry, doing).await)
}

/// The same, for a caller that knows what the session is doing.
pub(crate) async fn summarise_doing(runtime: &Runtime, entry: &SessionEntry, doing: Doing) -> SessionSummary {
    let journal = runtime.journal();
    let Doing { state, doing, cause, last_outcome, failure, .. } = doing;
    let title = session_title(&*journal, entry.id).await.text;
    let place = session_place(&*journal, entry.id).await.unwrap_or_default();
    SessionSummary {
        key: entry.key.clone(),
        id: entry.id.to_string(),
        state,
        doing,
        cause,
        parent: read_parent(&*journal, entry.id).await.unwrap_or_default(),
        last_outcome,
        failure,
        title: title.map(|title| longhaul_transcript::truncate(&title, MAX_TITLE_CHARS)),
        work_dir: place.and_then(|place| place.work_dir),
        pinned: entry.pinned,
        head: entry.head.seq,
        last_at: entry.last_at.map(|at| at.to_string()),
    }
}

async fn read_parent(journal: &dyn Journal, id: SessionId) -> ApiResult<Option<ParentSession>> {
    let Some(parent) = parent_of(journal, id).await? else { return Ok(None) };
    let entry = journal.session_with_id(parent).await?;
    Ok(entry.map(|entry| ParentSession { key: entry.key, id: parent.to_string() }))
}

/// What a session is doing. One that is in the trash or has damaged records does nothing.
pub(crate) async fn read_doing(journal: &dyn Journal, entry: &SessionEntry) -> ApiResult<Doing> {
    let overview = match entry.trashed {
        true => SessionOverview::default(),
        false => match session_overview(journal, entry).await {
            Err(Error::Unreadable { .. } | Error::Journal(JournalError::Damaged { .. })) => {
                SessionOverview::default()
            }
            overview => overview?,
        },
    };
    let SessionOverview { activity, cause, last_outcome, failure } = overview;
    let (state, doing, question) = match activity {
        SessionActivity::Idle if entry.trashed => (SessionState::Trashed, None, None),
        SessionActivity::Idle if last_outcome == Some(Outcome::Failed) => (SessionState::Failed, None, None),
        SessionActivity::Idle => (SessionState::Idle, None, None),
        SessionActivity::Working(doing) => (SessionState::Working, Some(doing), None),
        SessionActivity::Asking(question) => {
            (SessionState::Question, Some("waiting for an answer".to_owned()), Some(question))
        }
        SessionActivity::Interrupted(doing) => (SessionState::Interrupted, Some(doing), None),
    };
    let first_line = |text: String| {
        longhaul_transcript::truncate(text.lines().next().unwrap_or_default(), MAX_FAILURE_CHARS)
    };
    let context = if entry.trashed { None } else { read_context(journal, entry).await? };
    Ok(Doing { state, doing, question, cause, last_outcome, failure: failure.map(first_line), context })
}

/// Reads from the end what tells the size of the context. That is close to the end of a session: each step has a usage.
async fn read_context(journal: &dyn Journal, entry: &SessionEntry) -> ApiResult<Option<ContextFill>> {
    let stream = StreamName::session(entry.id);
    let (mut through, mut compacted) = (entry.head.seq, None);
    let oldest = through.saturating_sub(MAX_CONTEXT_LOOK_BACK);
    while through > oldest {
        let from = through.saturating_sub(CONTEXT_LOOK_BACK - 1).max(oldest + 1);
        let (mut cursor, mut found) = (records(journal, &stream, from).through(through), Vec::new());
        while let Some(record) = cursor.next_undamaged().await? {
            if matches!(&*record.kind, "usage" | "compact_done") {
                found.push(record);
            }
        }
        for record in found.iter().rev() {
            if let Ok(usage) = record.decode::<Usage>()
                && record.kind == "usage"
                && let Some(input) = usage.context_tokens()
            {
                let tokens = compacted.unwrap_or(input.saturating_add(usage.output.unwrap_or(0)));
                return Ok(Some(ContextFill { tokens, window: usage.window }));
            }
            if record.kind == "compact_done" && compacted.is_none() {
                compacted = record.decode::<CompactDone>().ok().map(|done| done.after);
            }
        }
        through = from - 1;
    }
    Ok(compacted.map(|tokens| ContextFill { tokens, window: None }))
}
