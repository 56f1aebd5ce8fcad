//! Watchers: whoever wants to see what happens in a session.
//!
//! Events come in the order of their commits. A watcher has a queue of its own; one that doesn't read holds up nobody, is told
//! how many events it missed, and from which record to read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use longhaul_protocol::{AttemptId, Event, EventKind, Seq};
use tokio::sync::Notify;

use crate::runtime::lock;

/// How many events may wait for a watcher.
const WAITING: usize = 1024;

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// Something happened.
    Event(Event),
    /// The watcher was too slow for these.
    Missed {
        /// How many.
        events: u64,
        /// The first record among them; absent if nothing of record was among them.
        from: Option<Seq>,
    },
}

/// Sees what happens from now on, for as long as it lives.
pub struct Watcher {
    queue: Arc<Queue>,
    /// What is watched stays the same as long as somebody watches it.
    _watched: Arc<dyn Send + Sync>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    missed: u64,
    missed_from: Option<Seq>,
    closed: bool,
}

impl Watcher {
    /// What comes next; nothing when the runtime has ended.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            match self.take() {
                Next::Ready(watched) => return Some(watched),
                Next::Over => return None,
                Next::Nothing => self.queue.came.notified().await,
            }
        }
    }

    /// What is there already.
    pub fn try_next(&mut self) -> Option<Watched> {
        match self.take() {
            Next::Ready(watched) => Some(watched),
            Next::Nothing | Next::Over => None,
        }
    }

    fn take(&self) -> Next {
        let mut waiting = lock(&self.queue.waiting);
        if let Some(event) = waiting.events.pop_front() {
            return Next::Ready(Watched::Event(event));
        }
        let (events, from) = (std::mem::take(&mut waiting.missed), waiting.missed_from.take());
        match (events, waiting.closed) {
            (0, true) => Next::Over,
            (0, false) => Next::Nothing,
            _ => Next::Ready(Watched::Missed { events, from }),
        }
    }
}

enum Next {
    Ready(Watched),
    Nothing,
    Over,
}

impl Queue {
    /// What doesn't fit is counted, and so is all that follows until the watcher has caught up: no event overtakes another.
    fn push(&self, event: &Event) {
        let mut waiting = lock(&self.waiting);
        if waiting.missed == 0 && waiting.events.len() < WAITING {
            waiting.events.push_back(event.clone());
        } else {
            waiting.missed += 1;
            waiting.missed_from = waiting.missed_from.or(event.seq);
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
    closed: bool,
}

impl Hub {
    /// A new watcher, which keeps what it watches.
    pub(crate) fn watch(&self, watched: Arc<dyn Send + Sync>) -> Watcher {
        let queue = Arc::new(Queue::default());
        let mut inner = lock(&self.inner);
        if let Some(partial) = &inner.partial {
            queue.push(partial);
        }
        lock(&queue.waiting).closed = inner.closed;
        inner.watchers.retain(|watcher| watcher.strong_count() > 0);
        inner.watchers.push(Arc::downgrade(&queue));
        Watcher { queue, _watched: watched }
    }

    /// Shows an event to everybody.
    pub(crate) fn show(&self, event: &Event) {
        let mut inner = lock(&self.inner);
        if let (EventKind::TextDelta { text }, Some(partial)) = (&event.kind, &mut inner.partial)
            && let EventKind::Partial { text: so_far, .. } = &mut partial.kind
        {
            so_far.push_str(text);
        }
        inner.watchers.retain(|watcher| {
            watcher.upgrade().is_some_and(|queue| {
                queue.push(event);
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
