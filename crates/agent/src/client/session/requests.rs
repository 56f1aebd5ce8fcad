//! Requests that wait for their outcome: a message, a compaction, the end of the open turn.

use longhaul_journal::Error as JournalError;
use longhaul_protocol::{CompactDone, Seq, StreamName, TurnEnded};

use super::{Link, Session};
use crate::client::local::run_here;
use crate::client::request::{EventSink, PendingRequest, Request, RequestMark, RequestOutcome, Settled};
use crate::worker::WorkerStop;
use crate::{Error, Result};

impl Session {
    /// Sends a text and waits for the end of the turn that answers it.
    pub async fn send(&self, text: impl Into<String>) -> Result<TurnEnded> {
        match self.complete(Request::Send(text.into().into()), None).await? {
            RequestOutcome::Ended(ended) => Ok(ended),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Err(Error::Suspended),
        }
    }

    /// Waits for the end of the open turn, or of the turn that the inbox begins. `None` if there is neither.
    pub async fn resume(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Resume).await
    }

    /// Ends the wait before a retry. If the last turn failed, runs it again. `None` if there was nothing to do.
    pub async fn retry(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Retry).await
    }

    /// Continues an answer that a failure, a crash or the user interrupted. Otherwise waits for the open turn. `None`
    /// if there was neither.
    pub async fn go_on(&self) -> Result<Option<TurnEnded>> {
        self.complete_turn(Request::Continue).await
    }

    /// Returns when no task runs and no turn is open, or when a question waits for an answer.
    pub async fn settle(&self) -> Result<Settled> {
        match self.complete(Request::Settle, None).await? {
            RequestOutcome::Settled(settled) => Ok(settled),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(Settled::Idle),
        }
    }

    /// Compacts the context, at once or between two steps of the open turn. `None` if nothing has happened since the
    /// last compaction.
    pub async fn compact(&self) -> Result<Option<CompactDone>> {
        self.compact_with(None).await
    }

    /// Like [`compact`](Self::compact). `focus` says what the summary should focus on.
    pub async fn compact_with(&self, focus: Option<String>) -> Result<Option<CompactDone>> {
        match self.complete(Request::Compact(focus), None).await? {
            RequestOutcome::Compacted(done) => Ok(Some(done)),
            RequestOutcome::NotCompacted(reason) => Err(Error::NotCompacted { reason }),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(None),
        }
    }

    async fn complete_turn(&self, request: Request) -> Result<Option<TurnEnded>> {
        match self.complete(request, None).await? {
            RequestOutcome::Ended(ended) => Ok(Some(ended)),
            RequestOutcome::Abandoned => Err(Error::NotRunning { key: self.key().to_owned() }),
            _ => Ok(None),
        }
    }

    /// Starts a request. The returned value has its events and its outcome.
    pub fn begin(&self, request: Request) -> PendingRequest {
        PendingRequest::start(self, request, self.watcher(), None)
    }

    /// Carries out a request in the process that runs the session. If no other process does, this one takes the
    /// session.
    pub(in crate::client) async fn complete(
        &self,
        mut request: Request,
        mut sink: Option<EventSink<'_>>,
    ) -> Result<RequestOutcome> {
        let asked = request.clone();
        let mark = RequestMark::new(self.head().await?);
        let (mut current, mut is_handed_over) = (mark, false);
        loop {
            let here = match &self.link {
                Link::Local(local) => run_here(local, &request, current, sink.as_mut()).await,
                Link::Detached { .. } => Ok(RequestOutcome::Abandoned),
            };
            let outcome = match (here, self.known_id().await?) {
                // What was sent is in the inbox, and the node that has to answer is away.
                (Err(WorkerStop::HeldElsewhere(error)), _) if is_handed_over && waits_for_node(&error) => {
                    return Err(error.into());
                }
                (Ok(RequestOutcome::Abandoned) | Err(WorkerStop::HeldElsewhere(_)), Some(id)) => {
                    self.remote(id).run(&request, current, sink.as_mut()).await?
                }
                (Ok(RequestOutcome::Abandoned), None) => RequestOutcome::Nothing,
                (Err(WorkerStop::TakenOver(_)), _) => RequestOutcome::Abandoned,
                (outcome, _) => outcome.map_err(WorkerStop::into_error)?,
            };
            match outcome {
                RequestOutcome::Abandoned if self.can_run() => {}
                RequestOutcome::Nothing if is_handed_over => {
                    return Ok(self.recorded_outcome(&asked, mark).await?.unwrap_or(outcome));
                }
                outcome => return Ok(outcome),
            }
            // The request is in the inbox. Its outcome may be on record already; otherwise it is resumed.
            if let Some(outcome) = self.recorded_outcome(&asked, mark).await? {
                return Ok(outcome);
            }
            is_handed_over = true;
            request = request.after_handover();
            current = RequestMark::new(self.head().await?);
        }
    }

    /// The last record of the session; 0 if it was never used.
    async fn head(&self) -> Result<Seq> {
        match self.known_id().await? {
            Some(id) => Ok(self.journal.head(&StreamName::session(id)).await?.seq),
            None => Ok(0),
        }
    }

    async fn recorded_outcome(&self, request: &Request, mark: RequestMark) -> Result<Option<RequestOutcome>> {
        match self.known_id().await? {
            Some(id) => self.remote(id).recorded_outcome(request, mark).await,
            None => Ok(None),
        }
    }
}

/// Whether only a node that is away may run the session.
fn waits_for_node(error: &JournalError) -> bool {
    matches!(error, JournalError::OtherNode { is_live: false, .. })
}
