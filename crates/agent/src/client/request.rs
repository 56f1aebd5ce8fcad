//! The requests of a client to a session, and their outcomes.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::Blob;
use longhaul_protocol::{
    BlobRef, CompactDone, Event, Image, Input, InputId, JoinMode, OrderId, QuestionId, Seq, TurnEnded,
};
use longhaul_tools::Attachment;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::session::Session;
use super::watch::{Watched, Watcher};
use crate::{Error, Result};

/// How soon a cancel is repeated if it came before the input that it concerns.
const CANCEL_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Events of a request that wait for its caller. More wait in the watcher, which merges them (T14).
const MAX_WAITING_EVENTS: usize = 256;

/// What a user says to a session: a text, and images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// The words.
    pub text: String,
    /// The images, in the order in which the model sees them.
    pub images: Vec<AttachedImage>,
}

/// An image that a user sends along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedImage {
    /// Such as `image/png`.
    pub media_type: String,
    /// The content of the file.
    pub bytes: Arc<[u8]>,
}

impl AttachedImage {
    /// Images that one message may have.
    pub const MAX_PER_MESSAGE: usize = 20;

    /// Checks an image that a program sent, and that its bytes are what the sender says. `shown` names it in the error.
    pub fn check(bytes: Vec<u8>, media_type: &str, shown: &str) -> std::result::Result<Self, String> {
        match Attachment::check_image(bytes, shown)? {
            Attachment::Image { media_type: found, bytes } if found == media_type => {
                Ok(Self { media_type: found.to_owned(), bytes: bytes.into() })
            }
            Attachment::Image { media_type: found, .. } => {
                Err(format!("{shown}: the image is {found}, not {media_type:?}"))
            }
            Attachment::Text(_) => Err(format!("{shown} is not an image")),
        }
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: vec![] }
    }
}

impl UserMessage {
    /// The input for the inbox. [`UserMessage::blobs`] has the bytes of its images.
    pub fn input(&self, id: InputId, mode: JoinMode) -> Input {
        let image = |image: &AttachedImage| Image { data: BlobRef::to(&image.bytes, &image.media_type) };
        let images = self.images.iter().map(image).collect();
        Input { images, ..Input::new(id, self.text.clone(), mode) }
    }

    /// The bytes of the images.
    pub fn blobs(&self) -> Vec<Blob> {
        self.images.iter().map(|image| Blob::new(image.bytes.to_vec())).collect()
    }
}

/// A request of a client to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Answer this message.
    Send(UserMessage),
    /// Finish the open turn, or process the inbox.
    Resume,
    /// Run the failed turn again, or end the wait before a retry.
    Retry,
    /// Continue the text of an interrupted answer.
    Continue,
    /// Wait until no task runs and the turns that their ends begin are over.
    Settle,
    /// Compact the context. The text says what the summary should focus on.
    Compact(Option<String>),
}

impl Request {
    /// The rest of the request after the process that accepted it is gone. Its input is in the inbox, so it is not
    /// sent again.
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

/// How a session has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is nothing left to do.
    Idle,
    /// A question waits for the user's answer.
    WaitingForAnswer,
}

/// The outcome of a request.
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
    /// No process runs the session any more, and this handle can't run it. Accepted inputs stay in the inbox.
    Abandoned,
}

impl From<Option<TurnEnded>> for RequestOutcome {
    fn from(ended: Option<TurnEnded>) -> Self {
        ended.map_or(Self::Nothing, Self::Ended)
    }
}

/// A request that a session works on, in this process or another one. Dropping it ends only the waiting, not the
/// turn.
pub struct PendingRequest {
    events: Receiver<Watched>,
    work: JoinHandle<(Option<Watcher>, Result<RequestOutcome>)>,
    cancel: Option<JoinHandle<()>>,
    session: Session,
    is_about_a_turn: bool,
}

impl PendingRequest {
    /// Starts a request. `watcher` sees the session if this process runs it. The outcome returns it to the caller, so
    /// that the caller misses no event between two requests. `seen` is the last record that the caller has shown.
    pub(super) fn start(
        session: &Session,
        request: Request,
        mut watcher: Option<Watcher>,
        seen: Option<Seq>,
    ) -> Self {
        let (sender, events) = channel(MAX_WAITING_EVENTS);
        let is_about_a_turn = request.is_about_a_turn();
        let runner = session.clone();
        let work = tokio::spawn(async move {
            let sink = EventSink { events: &sender, watcher: &mut watcher, seen };
            let outcome = runner.complete(request, Some(sink)).await;
            (watcher, outcome)
        });
        Self { events, work, cancel: None, session: session.clone(), is_about_a_turn }
    }

    /// The next event. `None` when the request is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Watched> {
        self.events.recv().await
    }

    /// The outcome of the request. Unread events are dropped.
    pub async fn outcome(self) -> Result<RequestOutcome> {
        self.into_outcome().await.1
    }

    /// The outcome, and the watcher that the caller lent.
    pub(super) async fn into_outcome(mut self) -> (Option<Watcher>, Result<RequestOutcome>) {
        // The caller reads no more events, so the work must not wait for a reader.
        self.events.close();
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

    /// Cancels the turn. The request is over when [`PendingRequest::next`] returns `None`.
    pub fn cancel(&mut self) {
        if self.cancel.is_none() {
            // If the worker takes the cancel before the input that it concerns, it ends nothing. So it is repeated
            // until a turn has ended. A request without a turn of its own cancels only the turn that runs now.
            let (session, repeats) = (self.session.clone(), self.is_about_a_turn);
            self.cancel = Some(tokio::spawn(async move { cancel_until_ended(&session, repeats).await }));
        }
    }
}

/// Cancels the running turn. With `repeats`, tries again until a turn has ended.
async fn cancel_until_ended(session: &Session, repeats: bool) {
    while matches!(session.cancel().await, Ok(None)) && repeats {
        tokio::time::sleep(CANCEL_RETRY_INTERVAL).await;
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

/// Where the records of a request are found: the last record before it, and the ids under which it goes into the inbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestMark {
    pub(super) before: Seq,
    pub(super) input: InputId,
    pub(super) order: OrderId,
}

impl RequestMark {
    pub(super) fn new(before: Seq) -> Self {
        Self { before, input: InputId::generate(), order: OrderId::generate() }
    }
}

/// Where the events of a request go.
pub(super) struct EventSink<'a> {
    events: &'a Sender<Watched>,
    /// Sees the session if this process runs it.
    pub(super) watcher: &'a mut Option<Watcher>,
    /// The last record whose event the caller has; `None` before the first.
    seen: Option<Seq>,
}

impl EventSink<'_> {
    /// The last record whose event the caller has; `None` before the first.
    pub(super) fn seen(&self) -> Option<Seq> {
        self.seen
    }

    /// Passes an event on, unless the caller has it: after a handover the records tell again what the worker here had shown.
    /// Waits for a caller that does not read. Meanwhile the watcher merges what comes.
    pub(super) async fn show(&mut self, watched: Watched) {
        if let Watched::Event(Event { seq: Some(seq), .. }) = &watched {
            if self.seen.is_some_and(|seen| *seq <= seen) {
                return;
            }
            self.seen = Some(*seq);
        }
        // A caller that no longer listens still waits for the outcome.
        let _ = self.events.send(watched).await;
    }
}
