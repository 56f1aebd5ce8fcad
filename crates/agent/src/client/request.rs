//! What a client asks of a session, and what came of it.

use longhaul_protocol::{CompactDone, QuestionId, Seq, TurnEnded};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::session::{Session, Settled};
use super::watch::{Watched, Watcher};
use crate::{Error, Result};

/// What a client asks of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Answer this text.
    Send(String),
    /// Finish the open turn, or what waits in the inbox.
    Resume,
    /// Run the turn that failed again; end the wait before a retry.
    Retry,
    /// Go on from the text of an interrupted answer.
    Continue,
    /// Wait until no task runs and the turns that their ends begin are over.
    Settle,
    /// Compact the context. The text says what the summary should focus on.
    Compact(Option<String>),
}

impl Request {
    /// What is left of the request when the process that accepted it is gone: its input is in the inbox, so it is not sent again.
    pub fn after_handover(self) -> Self {
        match self {
            Self::Settle | Self::Compact(_) => self,
            Self::Send(_) | Self::Resume | Self::Retry | Self::Continue => Self::Resume,
        }
    }

    /// Whether the client waits for the outcome of a turn.
    pub fn is_about_a_turn(&self) -> bool {
        !matches!(self, Self::Settle | Self::Compact(_))
    }
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestOutcome {
    /// The turn ended.
    Ended(TurnEnded),
    /// The context was compacted.
    Compacted(CompactDone),
    /// The compaction failed for this reason.
    NotCompacted(String),
    /// The session has settled, which only [`Request::Settle`] waits for.
    Settled(Settled),
    /// There was nothing to do.
    Nothing,
    /// No process runs the session any more, and this handle can't run it. What was accepted stays in the inbox.
    Abandoned,
}

impl From<Option<TurnEnded>> for RequestOutcome {
    fn from(ended: Option<TurnEnded>) -> Self {
        ended.map_or(Self::Nothing, Self::Ended)
    }
}

/// A request that a session works on, in this process or another one. Dropping it stops the waiting, not the turn.
pub struct PendingRequest {
    events: UnboundedReceiver<Watched>,
    work: JoinHandle<(Option<Watcher>, Result<RequestOutcome>)>,
    cancel: Option<JoinHandle<()>>,
    session: Session,
    is_about_a_turn: bool,
}

impl PendingRequest {
    /// `watcher` sees the session if this process runs it, and is handed back with the outcome, so that the caller misses no event
    /// between two requests.
    /// `seen` is the last record that the caller has shown.
    pub(super) fn start(
        session: &Session,
        request: Request,
        mut watcher: Option<Watcher>,
        seen: Option<Seq>,
    ) -> Self {
        let (sender, events) = unbounded_channel();
        let is_about_a_turn = request.is_about_a_turn();
        let runner = session.clone();
        let work = tokio::spawn(async move {
            let sink = EventSink { events: &sender, watcher: &mut watcher, seen };
            let outcome = runner.complete(request, Some(sink)).await;
            (watcher, outcome)
        });
        Self { events, work, cancel: None, session: session.clone(), is_about_a_turn }
    }

    /// The next event; none when the request is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Watched> {
        self.events.recv().await
    }

    /// What came of the request. Events that were not read are dropped.
    pub async fn outcome(self) -> Result<RequestOutcome> {
        self.into_outcome().await.1
    }

    /// The outcome, and the watcher that was lent.
    pub(super) async fn into_outcome(mut self) -> (Option<Watcher>, Result<RequestOutcome>) {
        match (&mut self.work).await {
            Ok(done) => done,
            Err(error) => {
                let (key, reason) = (self.session.key().to_owned(), error.to_string());
                (None, Err(Error::Worker { key, reason }))
            }
        }
    }

    /// Answers an open question of the session.
    pub async fn answer(&self, question: QuestionId, answer: &str) -> Result<()> {
        self.session.answer(question, answer).await
    }

    /// Cancels the turn. The request is over when [`PendingRequest::next`] returns none.
    pub fn cancel(&mut self) {
        if self.cancel.is_none() {
            // A cancel that is taken before the input that it is about ends nothing, so it is repeated until it did. A request that
            // began no turn cancels only the turn that runs now.
            let (session, repeats) = (self.session.clone(), self.is_about_a_turn);
            self.cancel = Some(tokio::spawn(async move { session.cancel_until_ended(repeats).await }));
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.work.abort();
        if let Some(cancel) = &self.cancel {
            cancel.abort();
        }
    }
}

/// Where the events of a request go.
pub(super) struct EventSink<'a> {
    pub(super) events: &'a UnboundedSender<Watched>,
    /// Sees the session if this process runs it.
    pub(super) watcher: &'a mut Option<Watcher>,
    /// The last record that the caller has shown.
    pub(super) seen: Option<Seq>,
}
