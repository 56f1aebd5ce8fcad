//! Watchers: whoever wants to see what happens in a session.
//!
//! Events come in the order of their commits. A watcher has a queue of its own, and one that doesn't read holds up nobody. In a queue
//! that gets long, the deltas of an answer are merged. What a full queue has no room for is read from the journal once the watcher reads
//! on, so an event that has a seq is never lost.

mod catch_up;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use longhaul_journal::Journal;
use longhaul_protocol::{AttemptId, Event, EventKind, Seq, SessionId};
use tokio::sync::Notify;

use crate::runtime::lock;
use catch_up::CatchUp;

/// How many events may wait for a watcher.
const WAITING: usize = 1024;
/// In a queue that is longer than this, deltas are merged.
const MERGES_FROM: usize = 256;

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// Something happened.
    Event(Event),
    /// The watcher was too slow for these.
    Missed {
        /// How many.
        events: u64,
        /// The first record among them; absent if nothing of record was among them. [`Watcher::next`] reads records that were missed
        /// from the journal, and names them here only if it can't.
        from: Option<Seq>,
    },
}

/// The records of one session whose events had no room in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The key of the session as its events name it; it may have another one by now.
    key: String,
    from: Seq,
    through: Seq,
    events: u64,
}

/// What had no room in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// Events without a record.
    live: u64,
    /// By session.
    gaps: BTreeMap<Option<SessionId>, Gap>,
}

impl Missed {
    fn add(&mut self, event: &Event, id: Option<SessionId>) {
        let Some(seq) = event.seq else {
            self.live += 1;
            return;
        };
        let new = || Gap { key: event.session.clone(), from: seq, through: seq, events: 0 };
        let gap = self.gaps.entry(id).or_insert_with(new);
        gap.through = seq;
        gap.events += 1;
    }

    fn is_empty(&self) -> bool {
        self.live == 0 && self.gaps.is_empty()
    }

    /// What a watcher is told that does not read it from the journal.
    pub(crate) fn told(&self) -> Watched {
        let events = self.live + self.gaps.values().map(|gap| gap.events).sum::<u64>();
        Watched::Missed { events, from: self.gaps.values().map(|gap| gap.from).min() }
    }
}

/// Sees what happens from now on, for as long as it lives.
pub struct Watcher {
    queue: Arc<Queue>,
    catch_up: CatchUp,
    /// What is watched stays the same as long as somebody watches it.
    _watched: Arc<dyn Send + Sync>,
}

#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    came: Notify,
    sees: Sees,
}

/// What a watcher is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sees {
    Events,
    /// And of how far the records go, for somebody who reads them.
    EventsAndHeads,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Queued>,
    missed: Missed,
    /// The newest record among what was missed.
    missed_head: Option<Seq>,
    closed: bool,
}

#[derive(Debug)]
enum Queued {
    Event(Event),
    /// A record that makes no event.
    Head(Seq),
}

/// What there is for a watcher.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Event(Event),
    Missed(Missed),
    /// Everything up to this record is on disk, and all that was shown before it has been seen.
    Head(Seq),
    Nothing,
    Over,
}

impl Watcher {
    /// A watcher that never sees anything.
    pub(crate) fn closed() -> Self {
        let hub = Hub::default();
        hub.close();
        hub.join(Arc::new(()), Sees::Events, None).0
    }

    /// What comes next; nothing when the runtime has ended. Events that have a seq all come, each once and in the order of their
    /// session. Giving up on this loses nothing.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.next_waiting().await {
                return Some(watched);
            }
            if lock(&self.queue.waiting).is_over() {
                return None;
            }
            self.came().await;
        }
    }

    /// The next of what has happened so far, records that had no room included; nothing when all of it was seen.
    pub async fn next_waiting(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.catch_up.next().await {
                return Some(watched);
            }
            match self.take() {
                Next::Event(event) => return Some(Watched::Event(event)),
                Next::Missed(missed) => self.catch_up.begin(missed),
                Next::Head(_) => {}
                Next::Nothing | Next::Over => return None,
            }
        }
    }

    /// What is there already. Records that were missed are not read: the watcher is told how many, and from where to read.
    pub fn try_next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.catch_up.next_without_reading() {
                return Some(watched);
            }
            match self.take() {
                Next::Event(event) => return Some(Watched::Event(event)),
                Next::Missed(missed) => return Some(missed.told()),
                Next::Head(_) => {}
                Next::Nothing | Next::Over => return None,
            }
        }
    }

    /// Waits until there may be something.
    pub(crate) async fn came(&self) {
        self.queue.came.notified().await;
    }

    /// The first of what is there.
    pub(crate) fn take(&self) -> Next {
        let mut waiting = lock(&self.queue.waiting);
        match waiting.queue.pop_front() {
            Some(Queued::Event(event)) => return Next::Event(event),
            Some(Queued::Head(head)) => return Next::Head(head),
            None => {}
        }
        let missed = std::mem::take(&mut waiting.missed);
        let head = waiting.missed_head.take().map(Queued::Head);
        waiting.queue.extend(head);
        match missed.is_empty() {
            true if waiting.is_over() => Next::Over,
            true => Next::Nothing,
            false => Next::Missed(missed),
        }
    }
}

impl Waiting {
    /// Whether everything was seen and nothing more will come.
    fn is_over(&self) -> bool {
        self.closed && self.queue.is_empty() && self.missed.is_empty()
    }
}

impl Queue {
    fn new(sees: Sees) -> Self {
        Self { waiting: Mutex::default(), came: Notify::new(), sees }
    }

    /// What doesn't fit is counted, and so is all that follows until the watcher has caught up: no event overtakes another.
    fn push(&self, event: &Event, id: Option<SessionId>) {
        let mut waiting = lock(&self.waiting);
        let is_whole = waiting.missed.is_empty();
        if is_whole && waiting.queue.len() >= MERGES_FROM && self.merge(&mut waiting.queue, event) {
            // What waits has grown.
        } else if is_whole && waiting.queue.len() < WAITING {
            waiting.queue.push_back(Queued::Event(event.clone()));
        } else {
            waiting.missed.add(event, id);
            waiting.missed_head =
                event.seq.or(waiting.missed_head).filter(|_| self.sees == Sees::EventsAndHeads);
        }
        drop(waiting);
        self.came.notify_one();
    }

    /// Adds a delta to the last event of its session that waits, if that is one of the same kind.
    fn merge(&self, queue: &mut VecDeque<Queued>, event: &Event) -> bool {
        let last = match self.sees {
            Sees::Events => queue.iter_mut().rev().find_map(|queued| match queued {
                Queued::Event(last) if last.session == event.session => Some(last),
                _ => None,
            }),
            // Among heads every event has its place.
            Sees::EventsAndHeads => match queue.back_mut() {
                Some(Queued::Event(last)) => Some(last),
                _ => None,
            },
        };
        let Some(last) = last.filter(|last| (&last.session, last.turn) == (&event.session, event.turn))
        else {
            return false;
        };
        match (&mut last.kind, &event.kind) {
            (EventKind::TextDelta { text }, EventKind::TextDelta { text: more })
            | (EventKind::ReasoningDelta { text }, EventKind::ReasoningDelta { text: more }) => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }

    /// One head stands for all before it, so there is always room for it.
    fn push_head(&self, head: Seq) {
        if self.sees == Sees::Events {
            return;
        }
        let mut waiting = lock(&self.waiting);
        let has_missed = !waiting.missed.is_empty();
        match waiting.queue.back_mut() {
            _ if has_missed => waiting.missed_head = Some(head),
            Some(Queued::Head(last)) => *last = head,
            _ => waiting.queue.push_back(Queued::Head(head)),
        }
        drop(waiting);
        self.came.notify_one();
    }
}

/// The watchers of one session.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    watchers: Vec<Weak<Queue>>,
    /// The text so far of the answer that is coming, as an event for whoever joins now.
    partial: Option<Event>,
    /// The newest record; nothing is known of it before a worker came.
    head: Seq,
    closed: bool,
}

impl Hub {
    /// A new watcher, which keeps what it watches, and reads what it missed from this journal.
    pub(crate) fn watch(&self, watched: Arc<dyn Send + Sync>, journal: Arc<dyn Journal>) -> Watcher {
        self.join(watched, Sees::Events, Some(journal)).0
    }

    /// A new watcher that is told also how far the records go, and the newest record before all that it will see.
    pub(crate) fn watch_with_heads(&self, watched: Arc<dyn Send + Sync>) -> (Watcher, Seq) {
        self.join(watched, Sees::EventsAndHeads, None)
    }

    fn join(
        &self,
        watched: Arc<dyn Send + Sync>,
        sees: Sees,
        journal: Option<Arc<dyn Journal>>,
    ) -> (Watcher, Seq) {
        let queue = Arc::new(Queue::new(sees));
        let mut inner = lock(&self.inner);
        if let Some(partial) = &inner.partial {
            queue.push(partial, None);
        }
        lock(&queue.waiting).closed = inner.closed;
        inner.watchers.retain(|watcher| watcher.strong_count() > 0);
        inner.watchers.push(Arc::downgrade(&queue));
        (Watcher { queue, catch_up: CatchUp::new(journal), _watched: watched }, inner.head)
    }

    /// The records go so far, and the last of them makes no event.
    pub(crate) fn recorded(&self, head: Seq) {
        let mut inner = lock(&self.inner);
        inner.head = head;
        inner.watchers.iter().filter_map(Weak::upgrade).for_each(|queue| queue.push_head(head));
    }

    /// Shows an event to all_watchers, with the session that it is of. Only an event without a seq may be of none.
    pub(crate) fn show(&self, event: &Event, id: Option<SessionId>) {
        let mut inner = lock(&self.inner);
        inner.head = event.seq.unwrap_or(inner.head);
        if let (EventKind::TextDelta { text }, Some(partial)) = (&event.kind, &mut inner.partial)
            && let EventKind::Partial { text: so_far, .. } = &mut partial.kind
        {
            so_far.push_str(text);
        }
        inner.watchers.retain(|watcher| {
            watcher.upgrade().is_some_and(|queue| {
                queue.push(event, id);
                true
            })
        });
    }

    /// From here on whoever joins gets the text of this attempt.
    pub(crate) fn begin(&self, attempt: AttemptId, like: &Event) {
        let kind = EventKind::Partial { attempt, text: String::new() };
        lock(&self.inner).partial = Some(Event { seq: None, kind, ..like.clone() });
    }

    /// The attempt is over: its text, if it counts, is a message by now.
    pub(crate) fn end(&self) {
        lock(&self.inner).partial = None;
    }

    /// Nothing will come any more.
    pub(crate) fn close(&self) {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        for queue in inner.watchers.drain(..).filter_map(|watcher| watcher.upgrade()) {
            lock(&queue.waiting).closed = true;
            queue.came.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
