//! The line from a running call to its session: what has to be on record while the call runs, and questions to the user.

use longhaul_protocol::{CallId, TaskStarted};
use tokio::sync::{mpsc, oneshot};

/// A running call's line to its session. Without a session at its other end, nothing is recorded and no question is asked.
#[derive(Debug, Clone, Default)]
pub struct CallLine(Option<(CallId, mpsc::UnboundedSender<CallMessage>)>);

/// What a running call says to its session.
#[derive(Debug)]
pub struct CallMessage {
    pub call: CallId,
    pub content: CallMessageContent,
}

#[derive(Debug)]
pub enum CallMessageContent {
    /// The call goes on elsewhere under this id, by which it can be found again.
    RemoteTask {
        task: String,
        /// Confirms that this is on record.
        recorded: oneshot::Sender<()>,
    },
    /// The call starts a task, which goes on if the call does not.
    StartTask {
        task: Box<TaskStarted>,
        /// Confirms that this is on record.
        recorded: oneshot::Sender<()>,
    },
    /// The user has to be asked.
    Ask {
        question: CallQuestion,
        /// Gets the answer. It is dropped if there will be none.
        answer: oneshot::Sender<String>,
    },
}

/// A question of a running call to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallQuestion {
    pub text: String,
    /// Answers to choose from. Empty for a free text.
    pub choices: Vec<String>,
}

impl CallLine {
    pub fn new(call: CallId, session: mpsc::UnboundedSender<CallMessage>) -> Self {
        Self(Some((call, session)))
    }

    /// Asks the user. `None` if the question can't be asked, or the turn ended before there was an answer.
    pub async fn ask(&self, question: CallQuestion) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.send(CallMessageContent::Ask { question, answer })?;
        answered.await.ok()
    }

    /// Records under which id the call goes on elsewhere. Returns when that is durable, or can't be.
    pub async fn record_task(&self, task: &str) {
        let (recorded, confirmed) = oneshot::channel();
        if self.send(CallMessageContent::RemoteTask { task: task.to_owned(), recorded }).is_some() {
            let _ = confirmed.await;
        }
    }

    /// Records that the call starts a task. Returns whether that is durable: only then may the task start.
    pub async fn start_task(&self, task: TaskStarted) -> bool {
        let (recorded, confirmed) = oneshot::channel();
        let sent = self.send(CallMessageContent::StartTask { task: Box::new(task), recorded });
        sent.is_some() && confirmed.await.is_ok()
    }

    fn send(&self, content: CallMessageContent) -> Option<()> {
        let (call, session) = self.0.as_ref()?;
        session.send(CallMessage { call: *call, content }).ok()
    }
}
