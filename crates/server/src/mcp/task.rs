//! Turns as tasks: a task is an input in the inbox of a session, and the turn that answers it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use longhaul_agent::{InboxInput, RecordedTurn, Session, TurnLocator, TurnStep, TurnTarget, inbox_input};
use longhaul_journal::SessionEntry;
use longhaul_protocol::{At, OrderKind, Outcome, Question, QuestionKind, Seq, SessionId};
use serde_json::{Map, Value, json};

use super::error::{McpError, McpResult};
use super::question::{elicitations, question_text};
use super::request::{ClientContext, Revision};
use super::turn::{TurnReport, TurnStatus};
use crate::access::Caller;
use crate::api::session_summary::read_doing;
use crate::problem::Problem;
use crate::state::ServerState;

/// How often a client should ask.
const POLL_INTERVAL_MS: u64 = 500;
/// How long to wait for the outcome of withdrawing an input.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
const WORKING: &str = "working";

/// The id of a task: the session, and the input's place in its inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskId {
    pub(super) session: SessionId,
    pub(super) seq: Seq,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.session, self.seq)
    }
}

impl FromStr for TaskId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (session, seq) = text.rsplit_once('-').ok_or(())?;
        let id = Self { session: session.parse().map_err(drop)?, seq: seq.parse().map_err(drop)? };
        // One task has one id.
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

/// A task as its records have it.
pub(super) struct TurnTask {
    pub(super) id: TaskId,
    pub(super) session: Session,
    input: InboxInput,
    pub(super) report: TurnReport,
    updated_at: At,
    /// What the session is doing, in words.
    doing: Option<String>,
}

impl TurnTask {
    /// The task with this id.
    pub(super) async fn find(state: &ServerState, text: &str) -> McpResult<Self> {
        let missing = || McpError::no_such_task(text);
        let id: TaskId = text.parse().map_err(|()| missing())?;
        let journal = state.journal();
        let entry = journal.session_with_id(id.session).await?.ok_or_else(missing)?;
        if entry.trashed {
            return Err(Problem::in_trash(&entry.key).into());
        }
        let input = inbox_input(&*journal, id.session, id.seq).await?.ok_or_else(missing)?;
        Self::read(state, &entry, id, input).await
    }

    async fn read(
        state: &ServerState,
        entry: &SessionEntry,
        id: TaskId,
        input: InboxInput,
    ) -> McpResult<Self> {
        let (journal, session) = (state.journal(), state.runtime().session_of(entry));
        let (mut turn, mut updated_at, mut plan) = (None, input.at, None);
        let (mut asked, mut status): (Vec<Question>, _) = (Vec::new(), TurnStatus::Working);
        let mut steps = RecordedTurn::new(&*journal, id.session, locator(&input));
        while let Some(recorded) = steps.next().await? {
            updated_at = recorded.at;
            match recorded.step {
                TurnStep::Started { turn: number, .. } => turn = Some(number),
                TurnStep::Question(question) if question.kind == QuestionKind::Plan => plan = Some(question),
                TurnStep::Question(question) => asked.push(question),
                TurnStep::Answered(answered) => asked.retain(|open| open.id != answered),
                TurnStep::Ended(ended) => status = TurnStatus::ended(ended, plan.take()),
                TurnStep::Withdrawn => status = TurnStatus::Withdrawn,
                _ => {}
            }
        }
        let mut doing = None;
        if status == TurnStatus::Working {
            if !asked.is_empty() {
                // An answer may be in the inbox already.
                let open = session.open_questions().await?;
                asked.retain(|asked| open.iter().any(|open| open.id == asked.id));
            }
            match asked.is_empty() {
                true => doing = read_doing(&*journal, entry).await?.doing,
                false => status = TurnStatus::Asking(asked),
            }
        }
        let report = TurnReport { session: entry.key.clone(), turn, status };
        Ok(Self { id, session, input, report, updated_at, doing })
    }

    /// Where the turn is found in its session.
    pub(super) fn locator(&self) -> TurnLocator {
        locator(&self.input)
    }

    /// Whether nothing about the task changes any more.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.report.status, TurnStatus::Ended { .. } | TurnStatus::Withdrawn)
    }

    /// Cancels the turn, or withdraws the input if no turn has it yet.
    pub(super) async fn cancel(&self) -> McpResult<()> {
        if self.has_ended() {
            return Ok(());
        }
        if let Some(turn) = self.report.turn {
            return self.cancel_turn(turn).await;
        }
        let mut follower = self.session.follow_turn(self.locator()).await?;
        self.session.put_order(OrderKind::Withdraw { input: self.input.id }, None).await?;
        // A turn may have taken the input just before the order, which then changes nothing.
        let settled = async {
            loop {
                match follower.next().await? {
                    Some(TurnStep::Started { turn, .. }) => return self.cancel_turn(turn).await,
                    Some(TurnStep::Withdrawn) | None => return Ok(()),
                    Some(_) => {}
                }
            }
        };
        // If no process runs the session, the next one withdraws the input.
        tokio::time::timeout(CANCEL_GRACE, settled).await.unwrap_or(Ok(()))
    }

    async fn cancel_turn(&self, turn: u64) -> McpResult<()> {
        // The order must not end the next turn.
        if self.session.state().await?.turn.is_some_and(|open| open.number == turn) {
            self.session.put_order(OrderKind::Cancel, None).await?;
        }
        Ok(())
    }

    /// The task in the form of the client's revision, with its result or its questions.
    pub(super) fn to_json(&self, client: &ClientContext, caller: &Caller) -> Value {
        let mut task = self.base(client);
        match (&self.report.status, client.revision) {
            (_, Revision::Handshake) | (TurnStatus::Working | TurnStatus::Withdrawn, _) => {}
            (TurnStatus::Asking(questions), Revision::Stateless) if client.has_forms => {
                task.insert("inputRequests".to_owned(), elicitations(questions, caller));
            }
            (TurnStatus::Asking(_), Revision::Stateless) => {}
            (TurnStatus::Ended { ended, .. }, Revision::Stateless) => {
                if ended.outcome != Outcome::Cancelled {
                    task.insert("result".to_owned(), self.report.result());
                }
            }
        }
        Value::Object(task)
    }

    /// The answer to the call that made the task.
    pub(super) fn created(&self, client: &ClientContext) -> Value {
        let mut task = self.base(client);
        match client.revision {
            Revision::Handshake => json!({"task": task}),
            Revision::Stateless => {
                task.insert("resultType".to_owned(), json!("task"));
                // Questions come with `tasks/get`.
                if matches!(self.report.status, TurnStatus::Asking(_)) {
                    task.insert("status".to_owned(), json!(WORKING));
                }
                Value::Object(task)
            }
        }
    }

    fn status(&self, client: &ClientContext) -> &'static str {
        match (&self.report.status, client.revision) {
            (TurnStatus::Asking(_), Revision::Stateless) if client.has_forms => "input_required",
            (TurnStatus::Working | TurnStatus::Asking(_), _) => WORKING,
            (TurnStatus::Withdrawn, _) => "cancelled",
            (TurnStatus::Ended { ended, .. }, revision) => match (ended.outcome, revision) {
                (Outcome::Cancelled, _) => "cancelled",
                (Outcome::Failed | Outcome::Limit, Revision::Handshake) => "failed",
                _ => "completed",
            },
        }
    }

    fn base(&self, client: &ClientContext) -> Map<String, Value> {
        let mut task = Map::new();
        task.insert("taskId".to_owned(), json!(self.id.to_string()));
        task.insert("status".to_owned(), json!(self.status(client)));
        let message = match &self.report.status {
            TurnStatus::Asking(questions) => questions.first().map(question_text),
            _ => self.doing.clone(),
        };
        if let Some(message) = message {
            task.insert("statusMessage".to_owned(), json!(message));
        }
        task.insert("createdAt".to_owned(), json!(self.input.at.to_string()));
        task.insert("lastUpdatedAt".to_owned(), json!(self.updated_at.max(self.input.at).to_string()));
        // A task is kept as long as its session.
        let (ttl, interval) = match client.revision {
            Revision::Handshake => ("ttl", "pollInterval"),
            Revision::Stateless => ("ttlMs", "pollIntervalMs"),
        };
        task.insert(ttl.to_owned(), Value::Null);
        task.insert(interval.to_owned(), json!(POLL_INTERVAL_MS));
        task
    }
}

fn locator(input: &InboxInput) -> TurnLocator {
    TurnLocator::new(TurnTarget::Input(input.id), input.after)
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
