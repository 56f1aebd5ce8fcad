//! Following a session that another process runs, and serving the followers of this process's sessions.
//!
//! The records are the truth: a follower gets each of them once and in order, whichever process writes them. Live
//! events (text deltas, waits) come from the process that holds the session. That process also announces new records.
//! Polling the journal once a second is only the fallback.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `progress` | what a follower has seen, and what a record or a line means for it; pure |
//! | `reader` | the task behind a follower: which process it subscribes to, and when it reads the journal |
//! | `server` | the other end: sends the events of this process's sessions to subscribers |
//! | `wire` | the lines between the two |
//! | `connection` | the lines of the holder: over its socket, or directly if this process holds the session |

mod connection;
mod progress;
mod reader;
mod server;
mod wire;

use std::sync::{Arc, Weak};

use longhaul_journal::{Holder, Journal};
use longhaul_protocol::{Event, Record, Seq, SessionId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::Result;
use crate::client::session::Session;
use crate::client::watch::{Attendance, Watched};
use crate::replay::load_through;
use crate::runtime::RuntimeShared;
use crate::session::state::State;

pub(crate) use server::serve_followers;

/// The most items that wait for a follower that does not read. Then its reader stops reading lines until the server
/// closes the connection. No record is lost.
const FOLLOWER_QUEUE_LEN: usize = 256;

/// Where a follower finds what happens in a session.
pub(crate) struct FollowSources {
    journal: Arc<dyn Journal>,
    /// The runtime of this process. A follower does not keep it alive.
    runtime: Option<Weak<RuntimeShared>>,
    /// The follower is for others, who may not be able to answer a question.
    is_unattended: bool,
}

impl FollowSources {
    /// The records, and the socket of the process that holds the session.
    pub(crate) fn journal(journal: Arc<dyn Journal>) -> Self {
        Self { journal, runtime: None, is_unattended: false }
    }

    /// The same, but events of sessions that this runtime holds come directly from it.
    pub(crate) fn with_runtime(journal: Arc<dyn Journal>, runtime: &Arc<RuntimeShared>) -> Self {
        Self { journal, runtime: Some(Arc::downgrade(runtime)), is_unattended: false }
    }
}

/// Follows a session like [`Session::follow`], on behalf of clients that may not be able to answer its questions. One that
/// can calls [`attend`].
pub async fn follow_unattended(session: &Session, after: Seq) -> Result<Follower> {
    let missing = || longhaul_journal::Error::NoSuchSession { key: session.key().to_owned() };
    let id = session.known_id().await?.ok_or_else(missing)?;
    let state = load_through(&**session.journal(), session.key(), id, after).await?;
    let runtime = &session.runtime_handle()?.runtime;
    let sources = FollowSources::with_runtime(session.journal().clone(), runtime);
    Ok(Follower::start(FollowSources { is_unattended: true, ..sources }, session.key(), id, state))
}

/// Tells a session that this process runs that a client which can answer its questions is connected.
pub fn attend(session: &Session) -> Option<Attendance> {
    session.runtime_handle().ok().map(|local| local.slot.hub.attend())
}

/// Sees everything that happens in a session until it is dropped, even if no process runs the session.
pub struct Follower {
    followed: mpsc::Receiver<Result<Followed>>,
    holder: watch::Receiver<Option<Holder>>,
    subscribed: watch::Receiver<bool>,
    reader: JoinHandle<()>,
}

/// One thing that a follower sees.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A record, and its event if it has one.
    Record(Box<Record>, Option<Box<Event>>),
    /// An event that is not recorded.
    Live(Box<Event>),
}

impl Follower {
    /// Follows a session from this state on. Also the events of this process come over its socket.
    pub(crate) fn from_state(journal: Arc<dyn Journal>, key: &str, id: SessionId, state: State) -> Self {
        Self::start(FollowSources::journal(journal), key, id, state)
    }

    /// Follows a session from this state on.
    pub(crate) fn start(sources: FollowSources, key: &str, id: SessionId, state: State) -> Self {
        let (sender, followed) = mpsc::channel(FOLLOWER_QUEUE_LEN);
        let (holder_sender, holder) = watch::channel(None);
        let (subscribed_sender, subscribed) = watch::channel(false);
        let output = reader::FollowOutput { sender, holder: holder_sender, subscribed: subscribed_sender };
        let reader = tokio::spawn(reader::run(sources, key.to_owned(), id, state, output));
        Self { followed, holder, subscribed, reader }
    }

    /// The next event. `None` when the session can't be read any more. Cancel-safe.
    ///
    /// Never returns [`Watched::Missed`], because the records fill every gap.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            match self.step().await.ok()?? {
                Followed::Record(_, Some(event)) | Followed::Live(event) => {
                    return Some(Watched::Event(*event));
                }
                Followed::Record(_, None) => {}
            }
        }
    }

    /// The next record or live event; `None` when the journal is closed. Cancel-safe.
    pub async fn step(&mut self) -> Result<Option<Followed>> {
        self.followed.recv().await.transpose()
    }

    /// Becomes true when the follower hears the process that holds the session, so that it sees every live event from then
    /// on; or when there is none, or it does not answer within a second. Closed when the session can't be read any more.
    pub fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.clone()
    }

    /// The process that runs the session, or would run it, as of the last poll (at most a second ago).
    pub fn holder(&self) -> Option<Holder> {
        self.holder.borrow().clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
