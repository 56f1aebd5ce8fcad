//! Watchers: events of the sessions that this process runs.
//!
//! Events come in the order of their commits. Each watcher has its own bounded queue, so a watcher that does not read
//! delays nothing else. In a long queue the deltas of an answer are merged. Events that do not fit are read from the
//! journal when the watcher continues. So an event with a `seq` is never lost.

mod catch_up;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use longhaul_journal::Journal;
use longhaul_protocol::{AttemptId, Event, EventKind, Seq, SessionId};
use tokio::sync::Notify;

use crate::runtime::lock;
use catch_up::CatchUp;

/// The most events that wait for a watcher.
const MAX_QUEUED_EVENTS: usize = 1024;
/// Deltas are merged in a queue that has at least this many events.
const MERGE_DELTAS_FROM: usize = 256;

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// Something happened.
    Event(Event),
    /// The watcher was too slow for some events.
    Missed {
        /// The number of missed events.
        events: u64,
        /// The first record among them. `None` if none of them was recorded. [`Watcher::next`] reads missed records
        /// from the journal, and reports them here only if that fails.
        from: Option<Seq>,
    },
}

/// The records of one session whose events did not fit into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordGap {
    /// The session's key in its events. The session may have been renamed since.
    key: String,
    from: Seq,
    through: Seq,
    events: u64,
}

/// The events that did not fit into a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MissedEvents {
    /// The number of events without a record.
    live: u64,
    gaps: BTreeMap<Option<SessionId>, RecordGap>,
}

impl MissedEvents {
    fn add(&mut self, event: &Event, id: Option<SessionId>) {
        let Some(seq) = event.seq else {
            self.live += 1;
            return;
        };
        let new = || RecordGap { key: event.session.clone(), from: seq, through: seq, events: 0 };
        let gap = self.gaps.entry(id).or_insert_with(new);
        gap.through = seq;
        gap.events += 1;
    }

    fn is_empty(&self) -> bool {
        self.live == 0 && self.gaps.is_empty()
    }

    /// The report for a watcher that does not read the missed events from the journal.
    pub(crate) fn to_watched(&self) -> Watched {
        let events = self.live + self.gaps.values().map(|gap| gap.events).sum::<u64>();
        Watched::Missed { events, from: self.gaps.values().map(|gap| gap.from).min() }
    }
}

/// Sees every event from its creation until it is dropped.
pub struct Watcher {
    queue: Arc<WatchQueue>,
    catch_up: CatchUp,
    /// Keeps the session in memory, because a new one would have another hub.
    _watched: Arc<dyn Send + Sync>,
}

#[derive(Debug)]
struct WatchQueue {
    state: Mutex<QueueState>,
    changed: Notify,
    scope: WatchScope,
    /// The client behind this watcher can't answer questions.
    is_unattended: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchScope {
    Events,
    /// Also the newest record, for a watcher that reads the records itself.
    EventsAndHeads,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<QueuedItem>,
    missed: MissedEvents,
    /// The newest record among the missed events.
    missed_head: Option<Seq>,
    closed: bool,
}

#[derive(Debug)]
enum QueuedItem {
    Event(Event),
    /// A record that has no event.
    Head(Seq),
}

/// The next item of a watcher's queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NextItem {
    Event(Event),
    Missed(MissedEvents),
    /// Every record up to this one is on disk, and every event before it has been taken.
    Head(Seq),
    Nothing,
    /// The hub is closed, and everything was taken.
    End,
}

impl Watcher {
    /// Notes that this watcher is for others, who may not be able to answer a question.
    pub(crate) fn set_unattended(&self) {
        self.queue.is_unattended.store(true, Ordering::Relaxed);
    }

    /// A watcher that never sees anything.
    pub(crate) fn closed() -> Self {
        let hub = EventHub::default();
        hub.close();
        hub.join(Arc::new(()), WatchScope::Events, None).0
    }

    /// The next event. `None` when the runtime has ended. Every event with a `seq` comes once, in the order of its
    /// session. Cancel-safe.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.next_waiting().await {
                return Some(watched);
            }
            if lock(&self.queue.state).is_end() {
                return None;
            }
            self.wait().await;
        }
    }

    /// The next event that has already happened, including those that did not fit into the queue. `None` when all
    /// were seen.
    pub async fn next_waiting(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.catch_up.next().await {
                return Some(watched);
            }
            match self.take() {
                NextItem::Event(event) => return Some(Watched::Event(event)),
                NextItem::Missed(missed) => self.catch_up.begin(missed),
                NextItem::Head(_) => {}
                NextItem::Nothing | NextItem::End => return None,
            }
        }
    }

    /// The next event in the queue, without reading the journal: missed records are reported as [`Watched::Missed`].
    pub fn try_next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.catch_up.next_without_reading() {
                return Some(watched);
            }
            match self.take() {
                NextItem::Event(event) => return Some(Watched::Event(event)),
                NextItem::Missed(missed) => return Some(missed.to_watched()),
                NextItem::Head(_) => {}
                NextItem::Nothing | NextItem::End => return None,
            }
        }
    }

    /// Waits until the queue may have changed.
    pub(crate) async fn wait(&self) {
        self.queue.changed.notified().await;
    }

    /// Takes the first item of the queue.
    pub(crate) fn take(&self) -> NextItem {
        let mut state = lock(&self.queue.state);
        match state.items.pop_front() {
            Some(QueuedItem::Event(event)) => return NextItem::Event(event),
            Some(QueuedItem::Head(head)) => return NextItem::Head(head),
            None => {}
        }
        let missed = std::mem::take(&mut state.missed);
        let head = state.missed_head.take().map(QueuedItem::Head);
        state.items.extend(head);
        match missed.is_empty() {
            true if state.is_end() => NextItem::End,
            true => NextItem::Nothing,
            false => NextItem::Missed(missed),
        }
    }
}

impl QueueState {
    fn is_end(&self) -> bool {
        self.closed && self.items.is_empty() && self.missed.is_empty()
    }
}

impl WatchQueue {
    fn new(scope: WatchScope) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), scope, is_unattended: AtomicBool::new(false) }
    }

    /// Queues an event. If it does not fit, counts it and every further one until the watcher has caught up, so that
    /// no event overtakes another.
    fn push(&self, event: &Event, id: Option<SessionId>) {
        let mut state = lock(&self.state);
        let is_complete = state.missed.is_empty();
        if is_complete && state.items.len() >= MERGE_DELTAS_FROM && self.merge_delta(&mut state.items, event)
        {
            // The delta was appended to a queued one.
        } else if is_complete && state.items.len() < MAX_QUEUED_EVENTS {
            state.items.push_back(QueuedItem::Event(event.clone()));
        } else {
            state.missed.add(event, id);
            state.missed_head =
                event.seq.or(state.missed_head).filter(|_| self.scope == WatchScope::EventsAndHeads);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Appends a delta to the last queued event of its session, if that is a delta of the same kind. `false` if not.
    fn merge_delta(&self, items: &mut VecDeque<QueuedItem>, event: &Event) -> bool {
        let last = match self.scope {
            WatchScope::Events => items.iter_mut().rev().find_map(|item| match item {
                QueuedItem::Event(last) if last.session == event.session => Some(last),
                _ => None,
            }),
            // A delta must not move to the other side of a head.
            WatchScope::EventsAndHeads => match items.back_mut() {
                Some(QueuedItem::Event(last)) => Some(last),
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

    /// Queues a head. It replaces a head at the end of the queue, so it always fits.
    fn push_head(&self, head: Seq) {
        if self.scope == WatchScope::Events {
            return;
        }
        let mut state = lock(&self.state);
        let has_missed = !state.missed.is_empty();
        match state.items.back_mut() {
            _ if has_missed => state.missed_head = Some(head),
            Some(QueuedItem::Head(last)) => *last = head,
            _ => state.items.push_back(QueuedItem::Head(head)),
        }
        drop(state);
        self.changed.notify_one();
    }
}

/// The watchers of one session, or of all sessions of a runtime.
#[derive(Debug, Default)]
pub(crate) struct EventHub {
    state: Mutex<HubState>,
    /// Clients that follow without a watcher of their own, and could answer a question.
    attendants: Arc<AtomicUsize>,
}

/// While this is held, the session counts a client that can answer its questions.
#[derive(Debug)]
pub struct Attendance(Arc<AtomicUsize>);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct HubState {
    watchers: Vec<Weak<WatchQueue>>,
    /// The text so far of the streaming answer. It is the first event of a watcher that joins now.
    partial: Option<Event>,
    /// The newest record; 0 until a worker has loaded the session.
    head: Seq,
    closed: bool,
}

impl EventHub {
    /// Adds a watcher. It keeps `watched` in memory and reads missed records from `journal`.
    pub(crate) fn watch(&self, watched: Arc<dyn Send + Sync>, journal: Arc<dyn Journal>) -> Watcher {
        self.join(watched, WatchScope::Events, Some(journal)).0
    }

    /// Adds a watcher that also gets heads. Returns the newest record before everything that it will see.
    pub(crate) fn watch_with_heads(&self, watched: Arc<dyn Send + Sync>) -> (Watcher, Seq) {
        self.join(watched, WatchScope::EventsAndHeads, None)
    }

    /// Counts a client that can answer questions.
    pub(crate) fn attend(&self) -> Attendance {
        self.attendants.fetch_add(1, Ordering::Relaxed);
        Attendance(self.attendants.clone())
    }

    fn join(
        &self,
        watched: Arc<dyn Send + Sync>,
        scope: WatchScope,
        journal: Option<Arc<dyn Journal>>,
    ) -> (Watcher, Seq) {
        let queue = Arc::new(WatchQueue::new(scope));
        let mut state = lock(&self.state);
        if let Some(partial) = &state.partial {
            queue.push(partial, None);
        }
        lock(&queue.state).closed = state.closed;
        state.watchers.retain(|watcher| watcher.strong_count() > 0);
        state.watchers.push(Arc::downgrade(&queue));
        (Watcher { queue, catch_up: CatchUp::new(journal), _watched: watched }, state.head)
    }

    /// Whether a client that can answer questions is connected: any watcher that is not marked as unattended.
    pub(crate) fn is_attended(&self) -> bool {
        let attends = |queue: Arc<WatchQueue>| !queue.is_unattended.load(Ordering::Relaxed);
        self.attendants.load(Ordering::Relaxed) > 0
            || lock(&self.state).watchers.iter().filter_map(Weak::upgrade).any(attends)
    }

    /// Sends the head of a record without an event.
    pub(crate) fn advance_head(&self, head: Seq) {
        let mut state = lock(&self.state);
        state.head = head;
        state.watchers.iter().filter_map(Weak::upgrade).for_each(|queue| queue.push_head(head));
    }

    /// Shows an event to every watcher. `id` is the id of its session, which an event with a `seq` needs.
    pub(crate) fn show(&self, event: &Event, id: Option<SessionId>) {
        let mut state = lock(&self.state);
        state.head = event.seq.unwrap_or(state.head);
        if let (EventKind::TextDelta { text }, Some(partial)) = (&event.kind, &mut state.partial)
            && let EventKind::Partial { text: so_far, .. } = &mut partial.kind
        {
            so_far.push_str(text);
        }
        state.watchers.retain(|watcher| {
            watcher.upgrade().is_some_and(|queue| {
                queue.push(event, id);
                true
            })
        });
    }

    /// Begins an attempt. A watcher that joins from now on first gets its text so far.
    pub(crate) fn begin_partial(&self, attempt: AttemptId, like: &Event) {
        let kind = EventKind::Partial { attempt, text: String::new() };
        lock(&self.state).partial = Some(Event { seq: None, kind, ..like.clone() });
    }

    /// Ends the attempt. If its text counts, it is now a message.
    pub(crate) fn end_partial(&self) {
        lock(&self.state).partial = None;
    }

    /// Ends every watcher after it has seen its queued events.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        for queue in state.watchers.drain(..).filter_map(|watcher| watcher.upgrade()) {
            lock(&queue.state).closed = true;
            queue.changed.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
