//! Following a session that another process runs, and being followed.
//!
//! The records are the truth: each comes once, in its order, and none is missing, whoever writes them. What is only shown (words as
//! they come, waits) is told by the process that has the session, and so is that there are new records, so that nobody has to look
//! for them. A look once a second is only the fallback.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `course` | from records and lines to what a follower sees. Pure |
//! | `reading` | the task behind a follower: whom it calls, and when it reads |
//! | `telling` | the other end: what callers are told of the sessions here |
//! | `line` | what is said on the connection between the two |

mod progress;
mod reader;
mod server;
mod wire;

use std::sync::Arc;

use longhaul_journal::{Holder, Journal};
use longhaul_protocol::{Event, Record, SessionId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::Result;
use crate::client::watch::Watched;
use crate::session::state::State;

pub(crate) use server::tell_callers;

/// How much may wait for a follower that doesn't read. Then the connection stands still until whoever tells gives it up, and
/// nothing of record is lost by that.
const WAITING: usize = 256;

/// Sees what happens in a session, whoever runs it and whether anybody does, for as long as it lives.
pub struct Follower {
    followed: mpsc::Receiver<Result<Followed>>,
    holder: watch::Receiver<Option<Holder>>,
    reading: JoinHandle<()>,
}

/// What a follower comes upon.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A record, and the event that it makes.
    Record(Box<Record>, Option<Box<Event>>),
    /// Something that is only shown.
    Live(Box<Event>),
}

impl Follower {
    /// Follows a session from this state on.
    pub(crate) fn from_state(journal: Arc<dyn Journal>, key: &str, id: SessionId, state: State) -> Self {
        let (tell, followed) = mpsc::channel(WAITING);
        let (show, holder) = watch::channel(None);
        let reading = tokio::spawn(reader::read(journal, key.to_owned(), id, state, tell, show));
        Self { followed, holder, reading }
    }

    /// What watchers see of what comes next; nothing, when the session can't be read any more. Giving up on this loses nothing.
    ///
    /// Never that events were missed: what was is made good from the records.
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

    /// What comes next, with every record; nothing, when the journal is closed. Giving up on this loses nothing.
    pub async fn step(&mut self) -> Result<Option<Followed>> {
        self.followed.recv().await.transpose()
    }

    /// The process that was last seen to run the session, or that would: up to a second ago.
    pub fn holder(&self) -> Option<Holder> {
        self.holder.borrow().clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
