//! Waiting for a turn, and its result for the client.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{RecordedTurn, Session, TurnLocator, TurnStep};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, Question, QuestionKind, TurnEnded};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::error::{McpError, McpResult};
use super::question::{question_json, question_text};

/// How often a waiting client is told that the turn goes on, and how often to check whether an earlier turn's question holds it up.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The state of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TurnStatus {
    Working,
    /// It goes on when these are answered.
    Asking(Vec<Question>),
    /// Only the question about a plan stays open after the end of its turn.
    Ended {
        ended: Box<TurnEnded>,
        plan: Option<Box<Question>>,
    },
    /// The input was withdrawn, so no turn answers it.
    Withdrawn,
}

impl TurnStatus {
    /// The question about a plan counts only if the turn has completed.
    pub(super) fn ended(ended: TurnEnded, plan: Option<Question>) -> Self {
        let plan = plan.filter(|_| ended.outcome == Outcome::Completed).map(Box::new);
        Self::Ended { ended: Box::new(ended), plan }
    }
}

/// A turn as the result of the call that asked for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnReport {
    /// The key of the session.
    pub(super) session: String,
    /// The number of the turn, once it has begun.
    pub(super) turn: Option<u64>,
    pub(super) status: TurnStatus,
}

impl TurnReport {
    /// Whether the call counts as failed.
    pub(super) fn is_error(&self) -> bool {
        match &self.status {
            TurnStatus::Working | TurnStatus::Asking(_) => false,
            TurnStatus::Ended { ended, .. } => ended.outcome != Outcome::Completed,
            TurnStatus::Withdrawn => true,
        }
    }

    /// The result of a tool call.
    pub(super) fn result(&self) -> Value {
        let (outcome, text, questions) = match &self.status {
            TurnStatus::Working => ("working", "The turn goes on.".to_owned(), vec![]),
            TurnStatus::Asking(questions) => {
                let texts: Vec<String> = questions.iter().map(question_text).collect();
                ("question", texts.join("\n\n"), questions.iter().map(question_json).collect())
            }
            TurnStatus::Ended { ended, plan } => {
                let asked = plan.iter().map(|plan| question_text(plan));
                let said = [ended.text.clone(), ended.error.clone().unwrap_or_default()].into_iter();
                let parts: Vec<String> = said.chain(asked).filter(|part| !part.is_empty()).collect();
                let text = match (parts.is_empty(), ended.outcome) {
                    (true, Outcome::Cancelled) => "The turn was cancelled.".to_owned(),
                    (true, _) => "The turn ended without an answer.".to_owned(),
                    (false, _) => parts.join("\n\n"),
                };
                (outcome_word(ended.outcome), text, plan.iter().map(|plan| question_json(plan)).collect())
            }
            TurnStatus::Withdrawn => {
                ("withdrawn", "The message was withdrawn before a turn began with it.".to_owned(), vec![])
            }
        };
        let mut data = json!({"session": self.session, "outcome": outcome});
        if let Some(turn) = self.turn {
            data["turn"] = json!(turn);
        }
        if !questions.is_empty() {
            data["questions"] = Value::Array(questions);
        }
        tool_result(text, Some(data), self.is_error())
    }
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Limit => "limit",
    }
}

/// The result of a tool call: text for a model, and data for a program.
pub(super) fn tool_result(text: impl Into<String>, data: Option<Value>, is_error: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text.into()}], "isError": is_error});
    if let Some(data) = data {
        result["structuredContent"] = data;
    }
    result
}

/// Notifications that a turn goes on, for a client that wants them.
pub(super) struct Progress {
    token: Value,
    count: u64,
    messages: mpsc::Sender<Value>,
}

impl Progress {
    /// `None` if the client wants no notifications.
    pub(super) fn new(token: Option<Value>, messages: mpsc::Sender<Value>) -> Option<Self> {
        Some(Self { token: token?, count: 0, messages })
    }

    /// A client that does not read misses it.
    fn notify(&mut self, message: &str) {
        self.count += 1;
        let params = json!({"progressToken": self.token, "progress": self.count, "message": message});
        let _ = self
            .messages
            .try_send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
}

/// What ends the waiting for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The end of the turn, or a question: the client has to know it to answer it.
    Question,
    /// The end of the turn only.
    Turn,
}

/// A turn that a client waits for. Dropping it ends nothing but the waiting.
pub(super) struct TurnWait {
    pub(super) session: Session,
    pub(super) locator: TurnLocator,
    /// The number of the turn, if it has begun.
    pub(super) turn: Option<u64>,
    pub(super) until: WaitEnd,
}

impl TurnWait {
    /// Waits until there is something to report. Fails if the server stops first.
    pub(super) async fn run(
        self,
        journal: Arc<dyn Journal>,
        mut stopped: watch::Receiver<bool>,
        mut progress: Option<Progress>,
    ) -> McpResult<TurnReport> {
        let Self { session, locator, mut turn, until } = self;
        let mut follower = session.follow_turn(locator.clone()).await?;
        let mut plan = None;
        let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
        let report = |turn, status| TurnReport { session: session.key().to_owned(), turn, status };
        loop {
            let step = tokio::select! {
                biased;
                step = follower.next() => Some(step?.ok_or_else(McpError::stopping)?),
                _ = stopped.wait_for(|stopped| *stopped) => return Err(McpError::stopping()),
                _ = ticks.tick() => None,
            };
            let Some(step) = step else {
                progress.iter_mut().for_each(|progress| progress.notify("the turn goes on"));
                // The turn before it waits for an answer, so this one does not begin.
                if turn.is_none() && until == WaitEnd::Question {
                    let mut open = session.open_questions().await?;
                    // The next turn settles the question of a plan.
                    open.retain(|open| open.kind != QuestionKind::Plan);
                    // The follower may be behind: the questions are of an earlier turn only if this one has not begun after they were read.
                    if !open.is_empty() && !has_begun(&session, &journal, &locator).await? {
                        return Ok(report(turn, TurnStatus::Asking(open)));
                    }
                }
                continue;
            };
            match step {
                TurnStep::Started { turn: number, .. } => {
                    turn = Some(number);
                    progress.iter_mut().for_each(|progress| progress.notify("the turn has begun"));
                }
                TurnStep::Question(question) if question.kind == QuestionKind::Plan => plan = Some(question),
                TurnStep::Question(question)
                    if until == WaitEnd::Question && follower.is_open(question.id).await? =>
                {
                    let open = session.open_questions().await?;
                    return Ok(report(turn, TurnStatus::Asking(open)));
                }
                TurnStep::Ended(ended) => {
                    return Ok(report(turn, TurnStatus::ended(ended, plan)));
                }
                TurnStep::Withdrawn | TurnStep::PlanSettled => {
                    return Ok(report(turn, TurnStatus::Withdrawn));
                }
                TurnStep::Usage(_) => {
                    progress.iter_mut().for_each(|progress| progress.notify("the model has answered"));
                }
                _ => {}
            }
        }
    }
}

/// Whether the records have the beginning of a turn, or that none will begin.
async fn has_begun(session: &Session, journal: &Arc<dyn Journal>, locator: &TurnLocator) -> McpResult<bool> {
    let Some(id) = session.id() else { return Ok(false) };
    Ok(RecordedTurn::new(&**journal, id, locator.clone()).next().await?.is_some())
}
