//! The overview of all sessions: first one message for each active or recent session, then one for each change.
//!
//! One task looks at the sessions for all followers. It looks at once when something happens in this process, and once
//! a second for what other processes do. A follower can't resume: after a reconnect it gets all sessions again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use longhaul_agent::{Error, Runtime, Watcher, now, parent_of};
use longhaul_journal::{Error as JournalError, Journal, SessionEntry, all_sessions};
use longhaul_protocol::{At, Cause, Outcome, Question, QuestionKind, Seq, SessionId, StreamName};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use super::feed::EventFeed;
use super::log::{EventFrame, EventLog, JoinPoint};
use crate::api::session_summary::{ContextFill, Doing, ParentSession, SessionState, read_doing};
use crate::problem::ApiResult;

/// How often the sessions are looked at, for what other processes do.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long changes are collected before the next look.
const GATHER_TIME: Duration = Duration::from_millis(100);
/// Idle sessions that the overview begins with: the ones that were used last.
const MAX_RECENT: usize = 100;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A session in the overview.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionMessage {
    /// Always `session`.
    #[serde(rename = "type")]
    kind: &'static str,
    key: String,
    id: String,
    /// Absent if the session was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<SessionState>,
    /// What it is doing, in words.
    doing: Option<String>,
    /// The question that waits for an answer.
    question: Option<QuestionInBrief>,
    /// What began the turn that is open.
    cause: Option<Cause>,
    /// The session that started it as its subagent.
    parent: Option<ParentSession>,
    /// How the last turn ended: `completed`, `cancelled`, `failed` or `limit`.
    #[schemars(with = "Option<String>")]
    last_outcome: Option<Outcome>,
    /// The first line of why the last turn failed, or of which limit ended it.
    failure: Option<String>,
    /// US dollars since midnight UTC, as far as prices are known, with compactions and memory.
    cost_today: f64,
    /// How full the context is, as in a list of sessions.
    context: Option<ContextFill>,
}

impl SessionMessage {
    /// Whether nothing goes on in the session.
    fn is_quiet(&self) -> bool {
        matches!(self.state, Some(SessionState::Idle | SessionState::Failed | SessionState::Trashed))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct QuestionInBrief {
    id: String,
    text: String,
    /// `approval`, `ask`, `budget`, `plan` or `elicitation`.
    kind: QuestionKind,
    /// The answers to choose from; empty for a question without choices.
    choices: Vec<String>,
    /// Whether the session's own page shows a diff with the question. Without it the user does not see what a yes allows.
    has_diff: bool,
}

impl From<Question> for QuestionInBrief {
    fn from(open: Question) -> Self {
        let Question { id, text, kind, choices, diff, .. } = open;
        Self { id: id.to_string(), text, kind, choices, has_diff: diff.is_some() }
    }
}

/// The feed of the overview, while it has followers.
#[derive(Default)]
pub(crate) struct OverviewFeed {
    feed: Mutex<Weak<EventFeed>>,
    sessions: Arc<tokio::sync::Mutex<Sessions>>,
}

impl OverviewFeed {
    /// The feed, and where a new follower begins: with the sessions as they are now.
    pub(crate) async fn join(&self, runtime: &Runtime) -> ApiResult<(Arc<EventFeed>, JoinPoint)> {
        // Under this lock no change is written between the snapshot and the join.
        let mut sessions = self.sessions.lock().await;
        let feed = self.feed(runtime);
        for message in sessions.look(runtime, now()).await? {
            add_message(feed.log(), &message);
        }
        let mut joined = feed.log().join(Seq::MAX);
        joined.partial = Some(sessions.snapshot());
        Ok((feed, joined))
    }

    fn feed(&self, runtime: &Runtime) -> Arc<EventFeed> {
        let mut known = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = known.upgrade().filter(|feed| !feed.log().has_ended()) {
            return feed;
        }
        let log = Arc::new(EventLog::new(0, 0));
        let task = tokio::spawn(watch(runtime.clone(), self.sessions.clone(), log.clone()));
        let feed = Arc::new(EventFeed::new(log, task.abort_handle(), watch::channel(true).1));
        *known = Arc::downgrade(&feed);
        feed
    }
}

fn add_message(log: &EventLog, message: &SessionMessage) {
    if let Ok(json) = serde_json::to_string(message) {
        log.add_message(&json);
    }
}

/// Writes changes to the log until the runtime ends.
async fn watch(runtime: Runtime, sessions: Arc<tokio::sync::Mutex<Sessions>>, log: Arc<EventLog>) {
    let mut watcher = runtime.watch();
    loop {
        let is_over = tokio::time::timeout(LOOK_INTERVAL, watcher.next()).await == Ok(None);
        if is_over {
            break;
        }
        tokio::time::sleep(GATHER_TIME).await;
        drain(&mut watcher);
        let mut sessions = sessions.lock().await;
        // A journal that can't be read now is looked at again.
        for message in sessions.look(&runtime, now()).await.unwrap_or_default() {
            add_message(&log, &message);
        }
    }
    log.end(None);
}

/// Forgets what the next look finds anyway.
fn drain(watcher: &mut Watcher) {
    while watcher.try_next().is_some() {}
}

/// The sessions as they were last seen.
#[derive(Default)]
struct Sessions {
    known: BTreeMap<SessionId, KnownSession>,
    costs: DayCosts,
}

struct KnownSession {
    entry: SessionEntry,
    parent: Option<SessionId>,
    message: SessionMessage,
}

impl KnownSession {
    /// Whether the session was at rest, and nothing has happened in it since.
    fn is_at_rest(&self, entry: &SessionEntry) -> bool {
        self.entry == *entry && self.message.is_quiet()
    }
}

/// What sessions have cost on a day, by the ledger as it was up to a record.
#[derive(Default)]
struct DayCosts {
    day: i64,
    head: Seq,
    costs: HashMap<SessionId, f64>,
}

impl DayCosts {
    /// Reads the ledger again if it has grown, or a new day has begun.
    async fn update(&mut self, runtime: &Runtime, today: At) -> ApiResult<()> {
        let head = runtime.journal().head(&StreamName::spend()).await?.seq;
        if (self.day, self.head) != (today.0, head) || head == 0 {
            let costs = runtime.day_costs(today).await?;
            *self = Self { day: today.0, head, costs };
        }
        Ok(())
    }

    fn of_session(&self, id: SessionId) -> f64 {
        self.costs.get(&id).copied().unwrap_or(0.0)
    }
}

impl Sessions {
    /// Looks at every session that may have changed. Returns the changes. If it fails, what was known stays, and the next
    /// look finds the same changes.
    async fn look(&mut self, runtime: &Runtime, now: At) -> ApiResult<Vec<SessionMessage>> {
        let journal = runtime.journal();
        let today = At(now.0 - now.0.rem_euclid(DAY_MS));
        self.costs.update(runtime, today).await?;
        let (mut changes, mut seen) = (Vec::new(), BTreeMap::new());
        let entries = all_sessions(&*journal).collect().await?;
        let keys: HashMap<SessionId, String> =
            entries.iter().map(|entry| (entry.id, entry.key.clone())).collect();
        for entry in entries {
            // Its first record says so, and never changes.
            let parent = match self.known.get(&entry.id).filter(|known| known.entry.head.seq > 0) {
                Some(known) => known.parent,
                None => read_parent(&*journal, entry.id).await?,
            };
            let before =
                self.known.get(&entry.id).map(|known| (known.is_at_rest(&entry), known.message.clone()));
            // Memory works for sessions at rest, so their cost may have changed nevertheless.
            let message = match &before {
                Some((true, message)) => message.clone(),
                _ => read_message(&*journal, &entry).await?,
            };
            let link =
                parent.and_then(|id| Some(ParentSession { key: keys.get(&id)?.clone(), id: id.to_string() }));
            let cost_today = self.costs.of_session(entry.id);
            let message = SessionMessage { cost_today, parent: link, ..message };
            if before.is_none_or(|(_, before)| before != message) {
                changes.push(message.clone());
            }
            seen.insert(entry.id, KnownSession { entry, parent, message });
        }
        let deleted = self.known.iter().filter(|(id, _)| !seen.contains_key(id));
        changes.extend(deleted.map(|(_, known)| SessionMessage {
            state: None,
            doing: None,
            question: None,
            ..known.message.clone()
        }));
        self.known = seen;
        Ok(changes)
    }

    /// One message for each active session, and for the idle ones that were used last.
    fn snapshot(&self) -> Bytes {
        let is_shown = |known: &&KnownSession| known.message.state != Some(SessionState::Trashed);
        let mut shown: Vec<&KnownSession> = self.known.values().filter(is_shown).collect();
        let is_idle = |known: &KnownSession| known.message.is_quiet();
        shown.sort_by_key(|known| (is_idle(known), std::cmp::Reverse(known.entry.last_at)));
        let active = shown.iter().take_while(|known| !is_idle(known)).count();
        let mut bytes = Vec::new();
        for known in shown.into_iter().take(active + MAX_RECENT) {
            if let Ok(json) = serde_json::to_string(&known.message) {
                bytes.extend_from_slice(&EventFrame::new(None, &json).bytes);
            }
        }
        Bytes::from(bytes)
    }
}

/// What a session is doing, without its cost and its parent.
async fn read_message(journal: &dyn Journal, entry: &SessionEntry) -> ApiResult<SessionMessage> {
    let Doing { state, doing, question, cause, last_outcome, failure, context } =
        read_doing(journal, entry).await?;
    let question = question.map(|open| QuestionInBrief::from(*open));
    let (key, id, state, kind) = (entry.key.clone(), entry.id.to_string(), Some(state), "session");
    Ok(SessionMessage {
        kind,
        key,
        id,
        state,
        doing,
        question,
        cause,
        parent: None,
        last_outcome,
        failure,
        cost_today: 0.0,
        context,
    })
}

/// The parent of a session whose first record can be read.
async fn read_parent(journal: &dyn Journal, session: SessionId) -> ApiResult<Option<SessionId>> {
    match parent_of(journal, session).await {
        Err(Error::Journal(JournalError::Damaged { .. })) => Ok(None),
        parent => Ok(parent?),
    }
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
