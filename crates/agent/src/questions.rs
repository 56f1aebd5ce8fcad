//! Answering questions, and ending tasks, from any process.

use std::sync::Arc;

use longhaul_journal::{Journal, Page, put};
use longhaul_keeper::Tasks;
use longhaul_protocol::{
    EndedTask, EventKind, InboxRecord, Order, OrderId, OrderKind, Question, QuestionId, SessionId,
    SessionRecord, StreamName, TaskId,
};
use tokio::task::spawn_blocking;

use crate::load::load;
use crate::session::Session;
use crate::state::State;
use crate::{Error, Result, Watched};

/// Settles an open question of a session, whoever holds it. When this returns the answer is on disk; whoever runs the
/// session goes on with it.
pub async fn answer_question(
    journal: &dyn Journal,
    key: &str,
    session: SessionId,
    question: QuestionId,
    answer: &str,
) -> Result<()> {
    let state = load(journal, key, session).await?;
    let open = unanswered(journal, session, &state).await?;
    if !open.iter().any(|open| open.id == question) {
        let known = match answer_of(journal, session, question).await? {
            Some(answer) => format!("it was settled ({answer})"),
            None if state.question(question).is_some() => "it was answered just now".to_owned(),
            None if open.is_empty() => "none is open".to_owned(),
            None => {
                let ids: Vec<String> = open.iter().map(|open| open.id.to_string()).collect();
                format!("open: {}", ids.join(", "))
            }
        };
        return Err(Error::NoSuchQuestion { key: key.to_owned(), question: question.to_string(), known });
    }
    let kind = OrderKind::Answer { question, answer: answer.to_owned() };
    let order = InboxRecord::Order(Order { id: OrderId::generate(), kind });
    put(journal, session, order.encode()).await?;
    Ok(())
}

/// What a question was settled with, if it ever was one of this session.
async fn answer_of(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
) -> Result<Option<String>> {
    let mut next = 1;
    loop {
        let page = journal.read(&StreamName::session(session), next, Page::default()).await?;
        let Some(last) = page.last() else { return Ok(None) };
        next = last.seq + 1;
        let answer = page.iter().find_map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::Answered(answered)) if answered.id == question => Some(answered.answer),
            _ => None,
        });
        if answer.is_some() {
            return Ok(answer);
        }
    }
}

/// The questions of a session to which no answer was given. One that is in the inbox is one: whoever runs the session next
/// takes it first.
pub async fn unanswered(journal: &dyn Journal, session: SessionId, state: &State) -> Result<Vec<Question>> {
    let mut open = state.questions.clone();
    let mut next = state.inbox_through + 1;
    while !open.is_empty() {
        let page = journal.read(&StreamName::inbox(session), next, Page::default()).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        for record in &page {
            if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(record)
                && let OrderKind::Answer { question, .. } = order.kind
            {
                open.retain(|open| open.id != question);
            }
        }
    }
    Ok(open)
}

/// How a session has come to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is nothing left to do.
    Rests,
    /// A person has to answer a question.
    Asks,
}

impl Session {
    /// Settles an open question. `yes` lets what was asked about happen; `no` doesn't; other words are a no that the model is told.
    pub async fn answer(&self, question: QuestionId, answer: &str) -> Result<()> {
        let missing = || Error::NoSuchQuestion {
            key: self.key().to_owned(),
            question: question.to_string(),
            known: "the session was never used".to_owned(),
        };
        let id = self.known().await?.ok_or_else(missing)?;
        let answer = self.runtime.redactor.redact(answer);
        answer_question(&*self.runtime.journal, self.key(), id, question, &answer).await?;
        self.ring(id).await;
        Ok(())
    }

    /// The ends of tasks that the model has yet to be told.
    pub async fn notifications(&self) -> Result<Vec<EndedTask>> {
        let state = self.state().await?;
        let untold = state.tasks.untold();
        Ok(untold
            .map(|(task, end)| EndedTask { task: task.clone(), end: end.clone(), told: false })
            .collect())
    }

    /// Ends a task, and returns when nothing of it runs any more.
    pub async fn kill(&self, task: TaskId) -> Result<()> {
        let state = self.state().await?;
        if state.tasks.get(task).is_none() {
            let ids: Vec<String> = state.tasks.all().iter().map(|task| task.id().to_string()).collect();
            let known =
                if ids.is_empty() { "it has none".to_owned() } else { format!("it has {}", ids.join(", ")) };
            return Err(Error::NoSuchTask { key: self.key().to_owned(), task: task.to_string(), known });
        }
        kill_task(&self.runtime.tasks, task).await
    }

    /// Looks at what became of its tasks while nobody was there, and watches those that run. A turn that is open goes on.
    pub async fn look_in(&self) -> Result<()> {
        self.shared.awake(&self.runtime).await
    }

    /// Returns when no task of the session runs, no end of one is about to begin a turn, and no turn is open; or when a person
    /// is asked something. Whoever watches sees meanwhile what comes of them.
    pub async fn settle(&self) -> Result<Settled> {
        let mut watcher = self.watch();
        self.shared.awake(&self.runtime).await?;
        loop {
            let state = self.state().await?;
            let wakes = state.tasks.wakes(self.runtime.config.settings.exec.wake);
            if !state.questions.is_empty() {
                return Ok(Settled::Asks);
            }
            if state.turn.is_none() && state.tasks.running().next().is_none() && !wakes {
                return Ok(Settled::Rests);
            }
            loop {
                let watched = watcher.next().await.ok_or(Error::Suspended)?;
                if may_settle(&watched) {
                    break;
                }
            }
        }
    }
}

/// Whether a session may have come to rest with this.
fn may_settle(watched: &Watched) -> bool {
    let Watched::Event(event) = watched else { return true };
    matches!(
        event.kind,
        EventKind::TaskEnded { .. } | EventKind::TurnEnded { .. } | EventKind::Question { .. }
    )
}

/// Ends a task, whatever session it belongs to.
async fn kill_task(tasks: &Arc<Tasks>, task: TaskId) -> Result<()> {
    let tasks = Arc::clone(tasks);
    let killed = spawn_blocking(move || tasks.kill(task)).await.unwrap_or(Ok(()));
    killed.map_err(|error| Error::Keeper(Arc::new(error)))
}
