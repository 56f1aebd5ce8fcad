//! Work that the user does not wait for: a memory extraction, and the end of a turn that another process runs.

use longhaul_agent::{Result, Session};
use longhaul_memory::Extraction;
use longhaul_protocol::TurnEnded;
use tokio::task::{JoinError, JoinHandle};

use crate::commands::remember::describe_extraction;
use crate::event_printer::EventPrinter;

/// A running memory extraction.
pub(super) type ExtractionTask = JoinHandle<Result<Option<Extraction>>>;

/// The work of a chat in the background. Dropping it stops nothing.
#[derive(Default)]
pub(super) struct BackgroundWork {
    extraction: Option<ExtractionTask>,
    cancel: Option<CancelTask>,
    /// Looks for something that the user should know.
    search: Option<JoinHandle<Vec<String>>>,
}

/// The order to cancel a turn, and the wait for its end. A process that is stopped does not end its turn.
struct CancelTask {
    task: JoinHandle<Result<Option<TurnEnded>>>,
    trigger: CancelTrigger,
}

/// What cancels a turn that was not started at this prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelTrigger {
    /// The Esc key, which says nothing if no turn runs.
    Key,
    /// `/cancel`.
    Command,
}

/// The result of finished work, for the user to read.
pub(super) enum BackgroundOutcome {
    Extraction(std::result::Result<Result<Option<Extraction>>, JoinError>),
    Cancel(std::result::Result<Result<Option<TurnEnded>>, JoinError>, CancelTrigger),
    /// The notes of a search.
    Found(std::result::Result<Vec<String>, JoinError>),
}

impl BackgroundWork {
    /// Waits until a piece of work is done. Never resolves if none runs. Cancel safe.
    pub(super) async fn next(&mut self) -> BackgroundOutcome {
        let Self { extraction, cancel, search } = self;
        tokio::select! {
            Some(done) = finish(extraction) => {
                *extraction = None;
                BackgroundOutcome::Extraction(done)
            }
            Some((done, trigger)) = finish_cancel(cancel) => {
                *cancel = None;
                BackgroundOutcome::Cancel(done, trigger)
            }
            Some(found) = finish(search) => {
                *search = None;
                BackgroundOutcome::Found(found)
            }
            else => std::future::pending().await,
        }
    }

    /// Starts a search whose notes are shown when it is done.
    pub(super) fn start_looking(&mut self, search: impl Future<Output = Vec<String>> + Send + 'static) {
        self.search = Some(tokio::spawn(search));
    }

    /// The running extraction, or a new one.
    pub(super) fn take_extraction(&mut self, session: &Session) -> ExtractionTask {
        self.extraction.take().unwrap_or_else(|| {
            let session = session.clone();
            tokio::spawn(async move { session.extract().await })
        })
    }

    pub(super) fn keep_extraction(&mut self, task: ExtractionTask) {
        self.extraction = Some(task);
    }

    /// Cancels the turn of a session. One order at a time is enough.
    pub(super) fn start_cancel(&mut self, session: &Session, trigger: CancelTrigger) {
        if self.cancel.is_none() {
            let session = session.clone();
            let task = tokio::spawn(async move { session.cancel().await });
            self.cancel = Some(CancelTask { task, trigger });
        }
    }

    /// Waits for the end of the turn that is being cancelled.
    pub(super) async fn finish_cancel(&mut self) -> Option<BackgroundOutcome> {
        let (done, trigger) = finish_cancel(&mut self.cancel).await?;
        self.cancel = None;
        Some(BackgroundOutcome::Cancel(done, trigger))
    }
}

async fn finish<T>(task: &mut Option<JoinHandle<T>>) -> Option<std::result::Result<T, JoinError>> {
    Some(task.as_mut()?.await)
}

async fn finish_cancel(
    cancel: &mut Option<CancelTask>,
) -> Option<(std::result::Result<Result<Option<TurnEnded>>, JoinError>, CancelTrigger)> {
    let CancelTask { task, trigger } = cancel.as_mut()?;
    Some((task.await, *trigger))
}

impl BackgroundOutcome {
    pub(super) fn note(self, printer: &mut EventPrinter) {
        match self {
            // Refused items were noted as events.
            Self::Extraction(Ok(Ok(extracted))) => printer.note(describe_extraction(extracted.as_ref())),
            Self::Extraction(Ok(Err(error))) => {
                printer.note(format!("could not update memory: {error}; will retry later"));
            }
            Self::Cancel(Ok(Ok(Some(_))), _) => printer.note("turn cancelled"),
            Self::Cancel(Ok(Ok(None)), CancelTrigger::Command) => printer.note("no turn is running"),
            Self::Cancel(Ok(Ok(None)), CancelTrigger::Key) => {}
            Self::Cancel(Ok(Err(error)), _) => printer.note(error),
            Self::Found(found) => found.unwrap_or_default().into_iter().for_each(|text| printer.note(text)),
            Self::Extraction(Err(error)) | Self::Cancel(Err(error), _) => printer.note(error),
        }
    }
}
