//! Everything that happens in one session, for a program that shows it.

use std::time::Duration;

use longhaul_journal::Holder;
use longhaul_protocol::{Event, EventKind, Seq, SessionRecord, StreamName};

use super::follow::Follower;
use super::request::{PendingRequest, Request, RequestOutcome};
use super::session::Session;
use super::watch::{Watched, Watcher};
use crate::Result;
use crate::replay::load_through;
use crate::session::events::event_of;
use crate::session::state::State;

/// The events of a session in this process and, if wanted, in others. An event with a `seq` comes only once.
pub struct SessionEvents {
    session: Session,
    watcher: Option<Watcher>,
    follower: Option<Follower>,
    sources: EventSources,
    /// The last record that was shown.
    seen: Seq,
    /// No process has begun the session yet.
    awaits_beginning: bool,
}

/// How often to check whether another process has begun a session that is new here.
const BEGIN_CHECK_INTERVAL: Duration = Duration::from_millis(300);

/// The processes whose events a program wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSources {
    /// Events of this process. During a request, also those of the process that works on it.
    ThisProcess,
    /// Events of every process.
    AllProcesses,
}

impl SessionEvents {
    pub(super) fn new(session: &Session, sources: EventSources) -> Self {
        let (session, watcher) = (session.clone(), session.watcher());
        // Another process may begin it before the first event is awaited.
        let awaits_beginning = sources == EventSources::AllProcesses && session.id().is_none();
        Self { session, watcher, follower: None, sources, seen: 0, awaits_beginning }
    }

    /// The next event. Waits forever if the session can't be followed any more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Watched> {
        loop {
            if self.sources == EventSources::AllProcesses && self.follower.is_none() {
                self.follow_session().await?;
            }
            if self.watcher.is_none() {
                self.watcher = self.session.watcher();
            }
            return Ok(tokio::select! {
                biased;
                Some(watched) = next_here(&mut self.watcher) => watched,
                Some(watched) = next_elsewhere(&self.session, &mut self.follower) => watched,
                () = tokio::time::sleep(BEGIN_CHECK_INTERVAL), if self.awaits_beginning => continue,
                else => std::future::pending().await,
            });
        }
    }

    /// Follows the session from now on. One that has not begun is followed from its beginning, whichever process begins it.
    async fn follow_session(&mut self) -> Result<()> {
        let Some(id) = self.session.known_id().await? else {
            self.awaits_beginning = true;
            return Ok(());
        };
        let state = match std::mem::take(&mut self.awaits_beginning) {
            true => State::default(),
            false => self.session.state().await?,
        };
        self.follower =
            Some(Follower::from_state(self.session.journal().clone(), self.session.key(), id, state));
        Ok(())
    }

    /// Whether an event was not shown before. Marks it as shown. The event of a record can come both from this
    /// process and from the journal.
    pub fn is_new(&mut self, event: &Event) -> bool {
        if event.seq.is_some_and(|seq| seq <= self.seen) {
            return false;
        }
        self.seen = event.seq.unwrap_or(self.seen);
        true
    }

    /// The text of an input that was taken with this record, unless it was shown before.
    pub async fn new_input(&self, seq: Option<Seq>) -> Result<Option<String>> {
        let (Some(id), Some(seq)) = (self.session.id(), seq.filter(|seq| *seq > self.seen)) else {
            return Ok(None);
        };
        let stream = StreamName::session(id);
        let record = longhaul_journal::record_at(&**self.session.journal(), &stream, seq).await?;
        Ok(match record.as_ref().map(SessionRecord::decode) {
            Some(Ok(SessionRecord::InputTaken(input))) if input.sender.is_person() => Some(input.text),
            Some(Ok(SessionRecord::InputTaken(input))) => {
                Some(format!("[from {}] {}", input.sender, input.text))
            }
            _ => None,
        })
    }

    /// Goes back to the beginning of the open turn, but at most this many records, and follows the session from
    /// there.
    pub async fn rewind_to_turn(&mut self, records: u64) -> Result<()> {
        let Some(id) = self.session.id() else { return Ok(()) };
        let after = self.turn_start(records).await?;
        let state = load_through(&**self.session.journal(), self.session.key(), id, after).await?;
        self.follower =
            Some(Follower::from_state(self.session.journal().clone(), self.session.key(), id, state));
        self.seen = after;
        Ok(())
    }

    /// The events of the open turn so far, from its beginning or from the last `records` records. Reads only the
    /// journal.
    pub async fn of_open_turn(&mut self, records: u64) -> Result<Vec<Event>> {
        let Some(id) = self.session.id() else { return Ok(vec![]) };
        let (journal, key) = (&**self.session.journal(), self.session.key());
        let after = self.turn_start(records).await?;
        let mut state = load_through(journal, key, id, after).await?;
        let stream = StreamName::session(id);
        let mut cursor = longhaul_journal::records(journal, &stream, after + 1);
        let mut events = Vec::new();
        while let Some(record) = cursor.next().await? {
            events.extend(event_of(&state, key, &record));
            let unreadable = |reason| crate::Error::Unreadable { key: key.to_owned(), reason };
            state.apply(&record).map_err(unreadable)?;
        }
        self.seen = after;
        Ok(events)
    }

    /// The record after which the open turn began.
    async fn turn_start(&self, records: u64) -> Result<Seq> {
        let Some(id) = self.session.id() else { return Ok(0) };
        let (journal, stream) = (&**self.session.journal(), StreamName::session(id));
        let head = journal.head(&stream).await?.seq;
        let from = head.saturating_sub(records);
        let mut cursor = longhaul_journal::records(journal, &stream, from + 1);
        let mut last_end = None;
        while let Some(record) = cursor.next().await? {
            if record.seq > head {
                break;
            }
            if record.kind == "turn_ended" {
                last_end = Some(record.seq);
            }
        }
        Ok(last_end.unwrap_or(if from == 0 { 0 } else { head }))
    }

    /// Starts a request. Its events come from [`PendingRequest::next`] until [`SessionEvents::finish`] has returned its outcome.
    pub fn begin(&mut self, request: Request) -> PendingRequest {
        // From now on the process that works on the request supplies the events.
        self.follower = None;
        self.awaits_beginning = false;
        let seen = Some(self.seen).filter(|seen| *seen > 0);
        PendingRequest::start(&self.session, request, self.watcher.take(), seen)
    }

    /// The outcome of a request. The caller has already seen all its events.
    pub async fn finish(&mut self, pending: PendingRequest) -> Result<RequestOutcome> {
        let (watcher, outcome) = pending.into_outcome().await;
        self.watcher = watcher;
        outcome
    }
}

async fn next_here(watcher: &mut Option<Watcher>) -> Option<Watched> {
    watcher.as_mut()?.next().await
}

/// The next event of the session from another process.
async fn next_elsewhere(session: &Session, follower: &mut Option<Follower>) -> Option<Watched> {
    loop {
        let following = follower.as_mut()?;
        let Some(watched) = following.next().await else {
            // The next request finds the session again.
            *follower = None;
            return None;
        };
        if is_from_elsewhere(session, following, &watched) {
            return Some(watched);
        }
    }
}

/// Whether the watcher of this process does not show an event of the follower too. The event of a record is shown only
/// once anyway.
///
/// A follower stays connected to this process when the session is free, and learns with up to a second's delay that this
/// process has taken it again. So text counts as another process's only while one is known to hold the session.
fn is_from_elsewhere(session: &Session, follower: &Follower, watched: &Watched) -> bool {
    let Watched::Event(event) = watched else { return true };
    let holder = follower.holder();
    match event.kind {
        _ if event.seq.is_some() => true,
        EventKind::TextDelta { .. } | EventKind::ReasoningDelta { .. } | EventKind::Partial { .. } => {
            !session.has_worker_here() && holder.as_ref().is_some_and(Holder::is_another)
        }
        _ => holder.as_ref().is_none_or(Holder::is_another),
    }
}
