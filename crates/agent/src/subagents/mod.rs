//! Subagents: sessions that work for another session (A1–A3).
//!
//! A subagent is an ordinary session whose first record names its parent. To its parent it is a task: it is waited for, goes to the
//! background, is announced, listed, read and stopped by the code that does this for commands.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `tool` | the tool `agent`: its arguments, and what they allow the subagent to do |
//! | `run` | one call: admission, start, waiting, going to the background, stopping |
//! | `admission` | the limits of a tree: how many there may be, and how many at once |
//! | `child` | the session of a subagent: starting it, reading its state, stopping it |
//! | `watch` | waiting for news of a subagent, in whichever process it runs |
//! | `questions` | its questions at its parent, and the answers on their way back |
//! | `lineage` | whether a subagent that is resumed is still wanted |
//! | `kinds` | kinds of subagents: Markdown files of the home and of trusted projects |
//! | `tree` | the sessions of a tree, for people and programs |
//!
//! Starting one, and a crash in between:
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `tool_started` | the call, with the id and the key of its subagent | the call goes on: it is admitted and started |
//! | `child_admitted`, in the tree | that it may start | the same; it is counted once, by its id |
//! | `task_started` | that it runs, to its parent | the same: the call is open until the subagent has its prompt |
//! | its name | the key | the same: a key that is bound is not bound again |
//! | `session_created` | its first record, with its parent | the same |
//! | `input`, in its inbox | its prompt, once by its key | it runs, in whichever process finds it; the call waits for it again |
//! | `tool_finished` of a call that does not wait | the task | its parent watches it |
//!
//! Its end:
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `turn_ended` of its first turn | what it said last | its parent has work: the end is recorded, and its tasks are ended before that |
//! | `task_ended` with `tool_finished`: one append | the result | nothing |
//! | `task_ended` in the background | the end | the model is notified before its next step; an idle parent wakes for it |
//! | `notification` | that the model knows | nothing |
//!
//! Stopping it:
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the order to cancel the parent's turn, or to kill the task | that order | the subagent does nothing before it has checked whether its parent wants it; the parent stops it |
//! | `order` in its inbox | that it is to stop | it ends as cancelled, without another call of a model |
//! | its `turn_ended`, before its own tasks are over | the end of its turn | its parent ends them, then records the end |
//! | a cancel before it was started | nothing of it | it is released from the tree, and never starts |
//!
//! A question:
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `question` in the subagent | the question | its parent shows it, under the same id |
//! | `question` in the parent | both | nothing |
//! | the answer in the parent's inbox | the answer | it is put into the subagent's inbox, then taken |
//! | the answer in the subagent's inbox, before `answered` in the parent | the same | the same: it is there once, by its key |
//!
//! Never: a subagent that starts twice, or runs after it was stopped; a result that arrives twice or not at all, or at another session.

pub(crate) mod admission;
pub(crate) mod child;
pub(crate) mod kinds;
pub(crate) mod lifecycle;
pub(crate) mod lineage;
pub(crate) mod questions;
mod run;
mod tool;
pub(crate) mod tree;
pub(crate) mod watch;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use longhaul_protocol::{ParentLink, SessionId, TaskStatus};
use longhaul_tools::{SubagentStatus, SubagentTasks};

use crate::runtime::RuntimeShared;
use child::{ChildState, read_child, stop_child};
pub(crate) use run::LOCAL_TARGET;
#[cfg(test)]
pub(crate) use tool::definition as agent_definition;
pub(crate) use tool::{AGENT_TOOL, AgentTool};
use watch::ChildWatch;

/// The instructions of a subagent, in addition to its prompt.
const INSTRUCTIONS: &str = "You are a subagent: another agent started you, and your first message is its prompt. You see nothing of its \
    conversation, and it sees nothing of yours but your last message, which is your result: put everything into it that the other agent \
    needs. Your background tasks end with you, so wait for those that matter.";

/// The instructions of a subagent, after those of every session.
pub(crate) fn subagent_instructions(common: &str, parent: &ParentLink) -> String {
    let parts = [Some(common), Some(INSTRUCTIONS), parent.instructions.as_deref()];
    let parts = parts.into_iter().flatten().map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

/// The subagents of a runtime's sessions, for the task tools.
pub(crate) struct RuntimeSubagents(pub(crate) Weak<RuntimeShared>);

impl RuntimeSubagents {
    fn runtime(&self) -> Result<Arc<RuntimeShared>, String> {
        self.0.upgrade().ok_or_else(|| "the runtime is shutting down".to_owned())
    }
}

#[async_trait]
impl SubagentTasks for RuntimeSubagents {
    async fn look(&self, session: SessionId) -> Result<SubagentStatus, String> {
        let runtime = self.runtime()?;
        let state = read_child(&*runtime.journal, session).await.map_err(|error| error.to_string())?;
        Ok(status_of(&state))
    }

    async fn wait_for_end(&self, session: SessionId) {
        let Ok(runtime) = self.runtime() else { return };
        let mut watch = ChildWatch::new(&runtime, session).await;
        loop {
            match read_child(&*runtime.journal, session).await {
                Ok(ChildState::NotStarted | ChildState::Running(_)) => watch.wait_for_news().await,
                // The event that led here is consumed, so wait before reading again.
                Err(_) => tokio::time::sleep(run::RETRY_DELAY).await,
                Ok(ChildState::Ended(_) | ChildState::Gone) => return,
            }
        }
    }

    async fn stop(&self, session: SessionId) -> Result<(), String> {
        let runtime = self.runtime()?;
        stop_child(&runtime, session).await.map_err(|error| error.to_string())
    }
}

/// The state of a subagent, for the model that started it.
pub(crate) fn status_of(state: &ChildState) -> SubagentStatus {
    match state {
        ChildState::NotStarted => SubagentStatus {
            status: TaskStatus::Running,
            duration_ms: None,
            message: Some("it is about to start".to_owned()),
            said: String::new(),
        },
        ChildState::Running(running) => SubagentStatus {
            status: TaskStatus::Running,
            duration_ms: None,
            message: Some(running.doing.clone()),
            said: running.said.clone(),
        },
        ChildState::Ended(end) => SubagentStatus {
            status: end.status(),
            duration_ms: Some(end.duration_ms),
            message: end.message(),
            said: end.ended.text.clone(),
        },
        ChildState::Gone => SubagentStatus {
            status: TaskStatus::Lost,
            duration_ms: None,
            message: Some(child::GONE.to_owned()),
            said: String::new(),
        },
    }
}
