//! Sessions: list, create, change, delete.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use hyper::{Method, StatusCode};
use longhaul_agent::{Session, SessionActivity, SessionStart, restore_tree, subagent_sessions};
use longhaul_journal::{
    Error as JournalError, FoundSessions, Journal, SessionEntry, all_sessions, pin_session, rename_session,
    session_place, sessions_with_words, trash_session, unpin_session,
};
use longhaul_protocol::{ChildSession, PermissionMode, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::list::{DEFAULT_ITEMS, ListOrder, MAX_ITEMS, check_limit};
use super::named_session::{LiveSession, NamedSession};
use super::session_summary::{
    ListedSession, SessionState, SessionSummary, read_doing, summarise, summarise_doing,
};
use crate::access::{Access, Caller, Scope};
use crate::body::{JsonBody, NoFields, OptionalJsonBody, Query};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

/// How long a session may take to let go, before it is moved to the trash.
const RELEASE_GRACE: Duration = Duration::from_secs(15);
/// How often to try to move a session to the trash that is about to let go.
const TRASH_RETRY_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn routes() -> Vec<Route> {
    let (read, act, admin) =
        (Access::Token(Scope::Read), Access::Token(Scope::Act), Access::Token(Scope::Admin));
    let one = "/api/sessions/{key}";
    vec![
        Route::new(Method::GET, "/api/sessions", read, "List sessions", list_sessions)
            .query::<ListQuery>()
            .answers::<SessionList>(
            StatusCode::OK,
            "Sessions in the order of their keys, unless the query says otherwise.",
        ),
        Route::new(Method::POST, "/api/sessions", act, "Create a session", create_session)
            .body::<NewSession>()
            .answers::<SessionSummary>(StatusCode::CREATED, "The new session. It is listed from now on.")
            .fails(StatusCode::CONFLICT, "A session has this key."),
        Route::new(
            Method::PATCH,
            one,
            admin,
            "Rename a session, pin it, or set its model or mode",
            change_session,
        )
        .optional_body::<SessionChange>()
        .answers::<SessionSummary>(StatusCode::OK, "The changed session.")
        .fails(StatusCode::CONFLICT, "Another session has the key, or this one is in the trash."),
        Route::new(
            Method::DELETE,
            one,
            admin,
            "Move a session and its subagents to the trash",
            delete_session,
        )
        .answers::<SessionSummary>(StatusCode::OK, "The session is in the trash. Its turn has ended.")
        .fails(StatusCode::CONFLICT, "Another process runs the session."),
        Route::new(
            Method::POST,
            "/api/sessions/{key}/restore",
            admin,
            "Restore a session from the trash",
            restore,
        )
        .optional_body::<NoFields>()
        .answers::<SessionSummary>(StatusCode::OK, "The restored session."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only sessions whose key contains this text, or in which these words were said.
    query: Option<String>,
    /// Only sessions in this state. Those in the trash are listed only if asked for.
    state: Option<SessionState>,
    /// The most sessions to return, up to 1,000; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// The session after which the list goes on: `next` of the page before.
    after: Option<String>,
    /// `newest`: the session with the newest record first. A session that gets a record between two pages moves to the front.
    order: Option<ListOrder>,
}

/// A page of sessions.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionList {
    items: Vec<ListedSession>,
    /// The value of `after` for the next page; null on the last page.
    next: Option<String>,
    /// Records in which the words of the query were not looked for yet, because the search index is being rebuilt. Usually 0.
    unindexed: u64,
}

async fn list_sessions(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<SessionList>> {
    let limit = check_limit(query.limit, DEFAULT_ITEMS, MAX_ITEMS)?;
    let (journal, runtime) = (state.journal(), state.runtime());
    let words = query.query.as_deref().filter(|words| !words.trim().is_empty());
    let FoundSessions { sessions: said_in, unindexed } = match words {
        Some(words) => sessions_with_words(&*journal, words).await?,
        None => Default::default(),
    };
    let is_wanted = |entry: &SessionEntry| {
        let by_words = words.is_none_or(|words| {
            said_in.contains(&entry.id) || entry.key.to_lowercase().contains(&words.to_lowercase())
        });
        by_words && entry.trashed == (query.state == Some(SessionState::Trashed))
    };
    let (mut items, mut after) = (Vec::new(), query.after);
    let mut newest = match query.order {
        Some(ListOrder::Newest) => Some(newest_sessions(&*journal, after.as_deref()).await?),
        None => None,
    };
    loop {
        let page = match newest.take() {
            Some(newest) => newest,
            None => journal.sessions(after.as_deref(), limit).await?,
        };
        let is_last = page.len() < limit || query.order.is_some();
        for entry in page {
            after = Some(match query.order {
                Some(ListOrder::Newest) => newest_place(&entry),
                None => entry.key.clone(),
            });
            if is_wanted(&entry) {
                let doing = read_doing(&*journal, &entry).await?;
                if query.state.is_none_or(|wanted| wanted == doing.state) {
                    let context = doing.context;
                    let summary = summarise_doing(runtime, &entry, doing).await;
                    items.push(ListedSession { summary, context });
                }
            }
            if items.len() == limit {
                return Ok(Json(SessionList { items, next: after, unindexed }));
            }
        }
        if is_last {
            return Ok(Json(SessionList { items, next: None, unindexed }));
        }
    }
}

/// All sessions, the one with the newest record first, after this place.
pub(crate) async fn newest_sessions(
    journal: &dyn Journal,
    after: Option<&str>,
) -> ApiResult<Vec<SessionEntry>> {
    let mut entries = all_sessions(journal).collect().await?;
    entries.retain(|entry| after.is_none_or(|after| newest_place(entry).as_str() < after));
    entries.sort_by_key(|entry| std::cmp::Reverse(newest_place(entry)));
    Ok(entries)
}

/// The place of a session in the list with the newest first. As a text it grows with the time.
fn newest_place(entry: &SessionEntry) -> String {
    let last_at = entry.last_at.map_or(0, |at| u64::try_from(at.0).unwrap_or(0));
    format!("{last_at:020}.{}", entry.id)
}

/// Keys of sessions that `longhaul`, `longhaul run`, schedules and subagents begin.
const RESERVED_PREFIXES: [&str; 4] = ["cli:", "run:", "schedule:", ChildSession::KEY_PREFIX];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSession {
    /// The key by which people find the session; by default a new one.
    #[schemars(length(min = 1, max = 512))]
    key: Option<String>,
    /// The folder that the session works in, as an absolute path. Without one, the session has no file tools and no
    /// commands. A folder that no session has yet needs an admin token.
    work_dir: Option<String>,
    /// The model; by default the configured one. It belongs to the session from its first request on. Needs an admin token.
    model: Option<String>,
}

async fn create_session(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    JsonBody(new): JsonBody<NewSession>,
) -> ApiResult<(StatusCode, Json<SessionSummary>)> {
    let (runtime, journal) = (state.runtime(), state.journal());
    if new.model.is_some() {
        caller.require(Scope::Admin, "choose a model")?;
    }
    let work_dir = match &new.work_dir {
        Some(folder) => Some(check_work_dir(&state, &caller, folder).await?),
        None => None,
    };
    let key = new.key.unwrap_or_else(new_key);
    require_own_key(&caller, &key)?;
    let taken = || Problem::from(JournalError::SessionExists { key: key.clone() });
    let is_used = |entry: SessionEntry| entry.head.seq > 0 || entry.inbox_head > 0 || entry.trashed;
    if journal.session(&key).await?.is_some_and(is_used) {
        return Err(taken());
    }
    if let Some(model) = &new.model {
        runtime.check_model(model)?;
    }
    let session = runtime.session(&key).await?;
    let start = match &work_dir {
        Some(folder) => session.create_in(folder).await?,
        None => session.create_without_folder().await?,
    };
    if start != SessionStart::Begun {
        return Err(taken());
    }
    // Only now is it sure that the session is the caller's.
    if let Some(model) = &new.model {
        session.use_model(model)?;
    }
    let entry = state.session_entry(&key).await?;
    Ok((StatusCode::CREATED, Json(summarise(runtime, &entry).await?)))
}

/// Refuses a key that the terminal, a schedule or a subagent finds its session by, except from an admin. Otherwise any program could put
/// words into the session that a person opens next.
pub(crate) fn require_own_key(caller: &Caller, key: &str) -> ApiResult<()> {
    if RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        caller.require(Scope::Admin, "make a session with a reserved key (cli:, run:, schedule:, agent:)")?;
    }
    Ok(())
}

/// Begins a session that nobody has used: in the folder of this process if the caller could begin one there over `/api`, otherwise
/// without a folder, so that it has no file tools and no commands.
pub(crate) async fn begin_new_session(
    state: &ServerState,
    caller: &Caller,
    session: &Session,
    id: SessionId,
) -> ApiResult<()> {
    let is_used = |entry: &SessionEntry| entry.head.seq > 0 || entry.inbox_head > 0;
    if state.journal().session_with_id(id).await?.as_ref().is_none_or(is_used) {
        return Ok(());
    }
    let folder = state.runtime().config().work_dir.canonicalize().ok();
    let is_allowed = caller.is_local
        || caller.scope >= Scope::Admin
        || is_folder_of_a_session(state, folder.as_deref()).await?;
    match folder.filter(|_| is_allowed) {
        Some(folder) => session.create_in(&folder).await?,
        None => session.create_without_folder().await?,
    };
    Ok(())
}

/// The key of a session that its creator gave none.
fn new_key() -> String {
    format!("http:{}", SessionId::generate().to_string().to_ascii_lowercase())
}

/// The folder for a new session. Without an admin token, another session must work there already.
async fn check_work_dir(state: &ServerState, caller: &Caller, folder: &str) -> ApiResult<PathBuf> {
    let path = Path::new(folder);
    let canonical = path.canonicalize().ok().filter(|path| path.is_dir());
    if caller.scope < Scope::Admin && !is_folder_of_a_session(state, canonical.as_deref()).await? {
        caller.require(Scope::Admin, "begin a session in a folder that no session has yet")?;
    }
    let wrong = |reason: &str| {
        let detail = format!("work_dir: {folder:?} {reason}; name an existing folder by its absolute path");
        Problem::bad_request("invalid_work_dir", detail)
    };
    if !path.is_absolute() {
        return Err(wrong("is not an absolute path"));
    }
    let canonical = canonical.ok_or_else(|| wrong("is not a folder that can be used"))?;
    if canonical.to_str().is_none() { Err(wrong("is not UTF-8")) } else { Ok(canonical) }
}

/// Whether a session works in this folder.
async fn is_folder_of_a_session(state: &ServerState, folder: Option<&Path>) -> ApiResult<bool> {
    let (Some(folder), journal) = (folder.and_then(Path::to_str), state.journal()) else { return Ok(false) };
    let mut sessions = all_sessions(&*journal);
    while let Some(entry) = sessions.next().await? {
        let place = session_place(&*journal, entry.id).await.unwrap_or_default();
        if place.and_then(|place| place.work_dir).as_deref() == Some(folder) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionChange {
    /// The new key.
    #[schemars(length(min = 1, max = 512))]
    key: Option<String>,
    /// Whether retention never removes the session.
    pinned: Option<bool>,
    /// The model from the next request on.
    model: Option<String>,
    /// The permission mode.
    mode: Option<Mode>,
}

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Ask,
    AutoEdit,
    Auto,
    Plan,
}

impl From<Mode> for PermissionMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Ask => Self::Ask,
            Mode::AutoEdit => Self::AutoEdit,
            Mode::Auto => Self::Auto,
            Mode::Plan => Self::Plan,
        }
    }
}

async fn change_session(
    State(state): State<ServerState>,
    LiveSession { entry, session }: LiveSession,
    OptionalJsonBody(change): OptionalJsonBody<SessionChange>,
) -> ApiResult<Json<SessionSummary>> {
    let (runtime, journal) = (state.runtime(), state.journal());
    // All or nothing: the model may not exist and the key may be taken, so both are settled before anything changes.
    if let Some(model) = &change.model {
        runtime.check_model(model)?;
    }
    let mut key = entry.key;
    if let Some(new) = &change.key {
        key = rename_session(&*journal, &key, new).await?.key;
    }
    if let Some(model) = &change.model {
        session.use_model(model)?;
        runtime.session(&key).await?.use_model(model)?;
    }
    if let Some(mode) = change.mode {
        session.set_permission_mode(mode.into()).await?;
    }
    match change.pinned {
        Some(true) => drop(pin_session(&*journal, &key).await?),
        Some(false) => drop(unpin_session(&*journal, &key).await?),
        None => {}
    }
    let entry = state.session_entry(&key).await?;
    Ok(Json(summarise(runtime, &entry).await?))
}

async fn delete_session(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
) -> ApiResult<Json<SessionSummary>> {
    let (runtime, journal) = (state.runtime(), state.journal());
    // The subagents last: either their parent stops them, or they are not wanted any more.
    let subagents = subagent_sessions(&*journal, entry.id).await?;
    let trashed = trash(&state, &entry).await?;
    for subagent in subagents.iter().filter(|subagent| !subagent.trashed) {
        trash(&state, subagent).await?;
    }
    Ok(Json(summarise(runtime, &trashed).await?))
}

/// Ends the turn of a session and moves the session to the trash.
async fn trash(state: &ServerState, entry: &SessionEntry) -> ApiResult<SessionEntry> {
    let (runtime, journal) = (state.runtime(), state.journal());
    let session = runtime.session(&entry.key).await?;
    let deadline = Instant::now() + RELEASE_GRACE;
    loop {
        match trash_session(&*journal, &entry.key).await {
            Err(JournalError::InUseBy { holder, .. })
                if !holder.is_another() && Instant::now() < deadline =>
            {
                tokio::time::timeout_at(deadline, end_work(&session)).await.unwrap_or(Ok(()))?;
                tokio::time::sleep(TRASH_RETRY_INTERVAL).await;
            }
            trashed => return Ok(trashed?),
        }
    }
}

/// Ends the turn of a session that this process runs, and lets go of the session.
async fn end_work(session: &Session) -> ApiResult<()> {
    if session.activity().await? != SessionActivity::Idle {
        session.cancel().await?;
    }
    session.release().await;
    Ok(())
}

async fn restore(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<Json<SessionSummary>> {
    let journal = state.journal();
    let restored = restore_tree(&*journal, &entry.key).await?;
    Ok(Json(summarise(state.runtime(), &restored).await?))
}
