//! The session of a subagent: starting it, reading its state, stopping it. Each step may be repeated.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Journal, SessionEntry, bind_session_key, record_at};
use longhaul_protocol::{
    At, CallId, ChildSession, InboxRecord, Input, InputId, JoinMode, NamesRecord, Order, OrderId, OrderKind,
    Outcome, ParentLink, Question, Record, Sender, SessionId, SessionRecord, StreamName, TaskEnded, TaskId,
    TaskStatus, TurnEnded,
};
use longhaul_redact::Redactor;
use longhaul_tools::{OutputLimit, truncate_output};

use crate::Result;
use crate::client::accepted::{RepeatCheck, accept_input, accept_order};
use crate::client::creation::{SessionStart, create_session};
use crate::client::questions::open_questions;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::subagents::watch::ChildWatch;

/// The message about a subagent whose session is gone.
pub(crate) const GONE: &str = "its session was deleted";
/// The key of the order that stops a subagent.
const STOP_KEY: &str = "stop";
/// How often to check whether the tasks of a stopped subagent have ended.
const TASK_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How long its tasks may take to end before its parent goes on without them.
const TASKS_GRACE: Duration = Duration::from_secs(15);
/// How much of its last message the notification of its end has.
const NOTIFIED_OUTPUT: OutputLimit = OutputLimit { lines: 400, bytes: 8 << 10 };
/// Bytes of its last message to keep with the record of its end.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// The state of a subagent, by its records.
pub(crate) enum ChildState {
    /// It has no prompt yet.
    NotStarted,
    Running(RunningChild),
    Ended(ChildEnd),
    /// Its session was deleted.
    Gone,
}

/// A subagent that works.
pub(crate) struct RunningChild {
    /// What it is doing, in words.
    pub(crate) doing: String,
    /// What it said last.
    pub(crate) said: String,
    /// Its questions that wait for a person.
    pub(crate) questions: Vec<Question>,
}

/// How the first turn of a subagent ended. Later turns are a person's, who opened its conversation.
pub(crate) struct ChildEnd {
    pub(crate) ended: TurnEnded,
    pub(crate) duration_ms: u64,
    /// Its parent, or a person who killed the task, stopped it.
    pub(crate) was_stopped: bool,
    /// Its own tasks that could not be ended.
    pub(crate) leftovers: usize,
}

impl ChildEnd {
    pub(crate) fn status(&self) -> TaskStatus {
        match self.ended.outcome {
            Outcome::Completed => TaskStatus::Completed,
            Outcome::Cancelled => TaskStatus::Killed,
            Outcome::Failed | Outcome::Limit => TaskStatus::Failed,
        }
    }

    /// Why it did not complete, and which of its tasks could not be ended.
    pub(crate) fn message(&self) -> Option<String> {
        let leftovers = match self.leftovers {
            0 => None,
            1 => Some("one of its tasks could not be ended and may still run".to_owned()),
            count => Some(format!("{count} of its tasks could not be ended and may still run")),
        };
        let parts: Vec<String> = self.failure().into_iter().chain(leftovers).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn failure(&self) -> Option<String> {
        match self.ended.outcome {
            Outcome::Completed => None,
            Outcome::Cancelled if self.was_stopped => Some("it was stopped".to_owned()),
            Outcome::Cancelled => Some("a person cancelled its turn".to_owned()),
            Outcome::Failed | Outcome::Limit => {
                Some(self.ended.error.clone().unwrap_or_else(|| "its turn failed".to_owned()))
            }
        }
    }

    /// The record of its end, and the text that the record refers to.
    pub(crate) fn task_ended(&self, task_id: TaskId, session: SessionId) -> (TaskEnded, Option<Vec<u8>>) {
        let text = &self.ended.text;
        let kept = &text[..text.floor_char_boundary(MAX_KEPT_BYTES)];
        let shown = truncate_output(kept, NOTIFIED_OUTPUT, task_id.call());
        let output = shown.is_some().then(|| kept.as_bytes().to_vec());
        let ended = TaskEnded {
            task_id,
            status: self.status(),
            exit_code: None,
            duration_ms: self.duration_ms,
            output: output.as_deref().map(|output| longhaul_protocol::BlobRef::to(output, "text/plain")),
            tail: shown.unwrap_or_else(|| kept.to_owned()),
            message: self.message(),
            unasked: self.ended.outcome == Outcome::Cancelled && !self.was_stopped,
            session: Some(session),
        };
        (ended, output)
    }
}

/// The record of the end of a subagent whose turn has none: its session is gone, or it never began.
pub(crate) fn task_ended_without_turn(
    task_id: TaskId,
    session: SessionId,
    status: TaskStatus,
    message: &str,
) -> TaskEnded {
    TaskEnded {
        task_id,
        status,
        exit_code: None,
        duration_ms: 0,
        output: None,
        tail: String::new(),
        message: Some(message.to_owned()),
        unasked: false,
        session: Some(session),
    }
}

/// A subagent that is to start.
pub(super) struct NewChild<'a> {
    pub(super) child: &'a ChildSession,
    pub(super) parent: &'a ParentLink,
    pub(super) work_dir: Option<&'a Path>,
    pub(super) prompt: &'a str,
}

/// Whether a subagent has its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildStart {
    Started,
    /// A worker holds its session, so its first record can't be written yet. Without that record it has no parent: no limit, scope or
    /// permission mode of its parent would hold for it.
    Held,
}

/// Starts a subagent: binds its key, writes its first record, and puts its prompt into its inbox. Steps that were done already change nothing.
pub(super) async fn start_child(
    journal: &dyn Journal,
    redactor: &Redactor,
    new: NewChild<'_>,
) -> Result<ChildStart> {
    let NewChild { child: ChildSession { session, key }, parent, work_dir, prompt } = new;
    bind_session_key(journal, key, *session).await?;
    match create_session(journal, key, *session, work_dir, Some(parent)).await? {
        SessionStart::Begun | SessionStart::BegunBefore => {}
        SessionStart::BegunBy(_) => return Ok(ChildStart::Held),
    }
    let sender = Sender::Parent { session: parent.session, call: parent.call };
    let input = Input { sender, ..Input::new(InputId::generate(), prompt, JoinMode::Join) };
    let record = redactor.redact_record(InboxRecord::Input(input).encode());
    let key = prompt_key(parent.call);
    accept_input(journal, *session, 0, record, vec![], Some((&key, RepeatCheck::Key))).await?;
    Ok(ChildStart::Started)
}

/// The key of a subagent's prompt in its inbox.
fn prompt_key(call: CallId) -> String {
    format!("agent/{call}")
}

/// The parent of a session, by its first record. `None` if it is no subagent, or was imported.
pub(crate) async fn parent_link(
    journal: &dyn Journal,
    id: SessionId,
) -> longhaul_journal::Result<Option<Box<ParentLink>>> {
    let stream = StreamName::session(id);
    let first = record_at(journal, &stream, 1).await?;
    let parent = match first.map(|first| SessionRecord::decode(&first)) {
        Some(Ok(SessionRecord::SessionCreated(created))) => created.parent,
        _ => None,
    };
    // The file of an import may name any session.
    let is_imported = parent.is_some() && !journal.records_of_kind(&stream, "imported").await?.is_empty();
    Ok(parent.filter(|_| !is_imported))
}

/// The state of a subagent.
pub(crate) async fn read_child(journal: &dyn Journal, id: SessionId) -> Result<ChildState> {
    let Some(entry) = journal.session_with_id(id).await? else {
        return Ok(if is_deleted(journal, id).await? { ChildState::Gone } else { ChildState::NotStarted });
    };
    if entry.inbox_head == 0 {
        return Ok(ChildState::NotStarted);
    }
    if let Some(end) = last_record_as_end(journal, &entry).await? {
        return Ok(ChildState::Ended(end));
    }
    let state = load(journal, &entry.key, id).await?;
    let is_in_first_turn = state.turn_count == 0 || state.turn.as_ref().is_some_and(|turn| turn.number == 1);
    if is_in_first_turn {
        if entry.trashed {
            return Ok(ChildState::Gone);
        }
        let questions = open_questions(journal, id, &state).await?;
        let doing = match &state.turn {
            Some(_) => state.describe_open_work(),
            None => "about to begin its turn".to_owned(),
        };
        let said = state.turn.map(|turn| turn.text).unwrap_or_default();
        return Ok(ChildState::Running(RunningChild { doing, said, questions }));
    }
    let ends = journal.records_of_kind(&StreamName::session(id), "turn_ended").await?;
    Ok(match ends.first() {
        Some(first) => child_end(journal, id, first).await?.map_or(ChildState::Gone, ChildState::Ended),
        None => ChildState::Gone,
    })
}

/// The end of the first turn, if it is the last record. For most subagents that have ended it is.
async fn last_record_as_end(journal: &dyn Journal, entry: &SessionEntry) -> Result<Option<ChildEnd>> {
    let last = record_at(journal, &StreamName::session(entry.id), entry.head.seq).await?;
    match last.filter(|last| last.kind == "turn_ended") {
        Some(last) => Ok(child_end(journal, entry.id, &last).await?.filter(|end| end.ended.turn == 1)),
        None => Ok(None),
    }
}

async fn child_end(journal: &dyn Journal, id: SessionId, record: &Record) -> Result<Option<ChildEnd>> {
    let Ok(SessionRecord::TurnEnded(ended)) = SessionRecord::decode(record) else { return Ok(None) };
    let was_stopped = journal.find(&StreamName::inbox(id), STOP_KEY).await?.is_some();
    let At(made) = id.made_at();
    let duration_ms = u64::try_from(record.at.0.saturating_sub(made)).unwrap_or(0);
    Ok(Some(ChildEnd { ended, duration_ms, was_stopped, leftovers: 0 }))
}

/// What subagents cost so far, with those that they started, in US dollars. `None` if a price is unknown.
pub(crate) async fn cost_of_subagents(journal: &dyn Journal, mut ids: Vec<SessionId>) -> Result<Option<f64>> {
    let mut cost = Some(0.0);
    while let Some(id) = ids.pop() {
        let stream = StreamName::session(id);
        for record in journal.records_of_kind(&stream, "usage").await? {
            if let Ok(SessionRecord::Usage(usage)) = SessionRecord::decode(&record) {
                cost = cost.zip(usage.cost).map(|(sum, cost)| sum + cost);
            }
        }
        for record in journal.records_of_kind(&stream, "task_started").await? {
            if let Ok(SessionRecord::TaskStarted(task)) = SessionRecord::decode(&record) {
                ids.extend(task.session);
            }
        }
    }
    Ok(cost)
}

/// Whether a session without a name had one.
async fn is_deleted(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    let deleted = journal.records_of_kind(&StreamName::names(), "session_deleted").await?;
    let is_of_child = |record: &Record| matches!(NamesRecord::decode(record), Ok(NamesRecord::Deleted(deleted)) if deleted.id == id);
    Ok(deleted.iter().any(is_of_child))
}

/// Whether the last record of a subagent is the end of its first turn. Loads nothing, so it may be false although the turn has ended.
pub(crate) async fn has_ended(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    let Some(entry) = journal.session_with_id(id).await? else { return Ok(false) };
    Ok(last_record_as_end(journal, &entry).await?.is_some())
}

/// Whether a subagent works, or is about to. Calls that wait for a place in their tree ask this often, so nothing is loaded.
pub(super) async fn is_child_active(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    let Some(entry) = journal.session_with_id(id).await? else { return Ok(!is_deleted(journal, id).await?) };
    if entry.trashed || last_record_as_end(journal, &entry).await?.is_some() {
        return Ok(false);
    }
    Ok(journal.records_of_kind(&StreamName::session(id), "turn_ended").await?.is_empty())
}

/// Puts the order to stop into the inbox of a subagent. It is there once.
pub(crate) async fn order_stop(journal: &dyn Journal, id: SessionId) -> Result<()> {
    put_order(journal, id, OrderKind::Cancel, STOP_KEY).await
}

/// Orders a session to kill one of its tasks. The order is there once.
pub(crate) async fn order_kill(journal: &dyn Journal, id: SessionId, task: TaskId) -> Result<()> {
    put_order(journal, id, OrderKind::Kill { task }, &format!("end/{task}")).await
}

async fn put_order(journal: &dyn Journal, id: SessionId, kind: OrderKind, key: &str) -> Result<()> {
    let order = Order { id: OrderId::generate(), kind };
    // It has no words that could be a secret.
    accept_order(journal, &Redactor::default(), id, order, Some(key)).await.map(drop)
}

/// Stops a subagent with everything that it runs. Returns when it is over.
pub(crate) async fn stop_child(runtime: &Arc<RuntimeShared>, id: SessionId) -> Result<()> {
    let mut watch = ChildWatch::new(runtime, id).await;
    loop {
        match read_child(&*runtime.journal, id).await? {
            ChildState::NotStarted | ChildState::Gone => return Ok(()),
            ChildState::Ended(_) => return end_child_tasks(runtime, id).await.map(drop),
            ChildState::Running(_) => {
                order_stop(&*runtime.journal, id).await?;
                watch.wake().await;
                watch.wait_for_news().await;
            }
        }
    }
}

/// How many tasks of a subagent run, by its records.
pub(crate) async fn count_running_tasks(journal: &dyn Journal, id: SessionId) -> Result<usize> {
    let Some(entry) = journal.session_with_id(id).await? else { return Ok(0) };
    Ok(load(journal, &entry.key, id).await?.tasks.running().count())
}

/// Ends the tasks that a subagent left running when its turn ended: its commands, and its own subagents. Returns how many could not
/// be ended in time.
pub(crate) async fn end_child_tasks(runtime: &Arc<RuntimeShared>, id: SessionId) -> Result<usize> {
    let key = match runtime.journal.session_with_id(id).await? {
        Some(entry) => entry.key,
        None => return Ok(0),
    };
    let watch = ChildWatch::new(runtime, id).await;
    let deadline = tokio::time::Instant::now() + TASKS_GRACE;
    loop {
        let state = load(&*runtime.journal, &key, id).await?;
        let running: Vec<TaskId> = state.tasks.running().map(|task| task.id()).collect();
        if running.is_empty() || tokio::time::Instant::now() >= deadline {
            return Ok(running.len());
        }
        for task in running {
            order_kill(&*runtime.journal, id, task).await?;
        }
        watch.wake().await;
        tokio::time::sleep(TASK_CHECK_INTERVAL).await;
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
