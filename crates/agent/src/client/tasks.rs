//! The tasks of a session, for a program that holds it.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{EndedTask, EventKind, StreamName, TaskId};
use tokio::task::spawn_blocking;

use crate::client::session::Session;
use crate::session::state::State;
use crate::{Error, Result, Watched};

/// How often it is looked whether a session has settled, if nothing is heard: another process may have it by now.
const LOOK: Duration = Duration::from_secs(2);

/// How a session has come to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is nothing left to do.
    Rests,
    /// A person has to answer a question.
    Asks,
}

impl Session {
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
        let tasks = Arc::clone(&self.runtime.tasks);
        let killed = spawn_blocking(move || tasks.kill(task)).await.unwrap_or(Ok(()));
        killed.map_err(|error| Error::Keeper(Arc::new(error)))
    }

    /// Looks at what became of its tasks while nobody was there, and watches those that run. A turn that is open goes on.
    pub async fn look_in(&self) -> Result<()> {
        self.shared.awake(&self.runtime).await
    }

    /// Returns when no task of the session runs, no end of one is about to begin a turn, and no turn is open; or when a person
    /// is asked something. Whoever watches sees meanwhile what comes of them.
    pub async fn settle(&self) -> Result<Settled> {
        let mut watcher = self.watch();
        let mut state = State::default();
        loop {
            let id = self.known().await?;
            // One that fails again and again is left alone for a while.
            if !id.is_some_and(|id| self.runtime.failures.too_early(id)) {
                // Where another process has it by now, that is what there is to say.
                self.shared.awake(&self.runtime).await?;
            }
            let head = match id {
                Some(id) => self.runtime.journal.head(&StreamName::session(id)).await?.seq,
                None => 0,
            };
            if state.head != head || head == 0 {
                state = self.state().await?;
            }
            if !state.questions.is_empty() {
                return Ok(Settled::Asks);
            }
            let wakes = state.tasks.wakes(self.runtime.config.settings.exec.wake);
            let has_more =
                state.turn.is_some() || state.again.is_some() || !state.waiting.is_empty() || wakes;
            if !has_more && state.tasks.running().next().is_none() {
                return Ok(Settled::Rests);
            }
            let news = async {
                loop {
                    let watched = watcher.next().await.ok_or(Error::Suspended)?;
                    if may_settle(&watched) {
                        return Ok::<(), Error>(());
                    }
                }
            };
            tokio::time::timeout(LOOK, news).await.unwrap_or(Ok(()))?;
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
