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
    missed: u64,
    missed_from: Option<Seq>,
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
    Ready(Watched),
    /// Everything up to this record is on disk, and all that was shown before it has been seen.
    Head(Seq),
    Nothing,
    Over,
}

impl Watcher {
    /// What comes next; nothing when the runtime has ended.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            match self.take() {
                Next::Ready(watched) => return Some(watched),
                Next::Over => return None,
                Next::Head(_) => {}
                Next::Nothing => self.came().await,
            }
        }
    }

    /// What is there already.
    pub fn try_next(&mut self) -> Option<Watched> {
        loop {
            match self.take() {
                Next::Ready(watched) => return Some(watched),
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
            Some(Queued::Event(event)) => return Next::Ready(Watched::Event(event)),
            Some(Queued::Head(head)) => return Next::Head(head),
            None => {}
        }
        let (events, from) = (std::mem::take(&mut waiting.missed), waiting.missed_from.take());
        let head = waiting.missed_head.take().map(Queued::Head);
        waiting.queue.extend(head);
        match (events, waiting.closed) {
            (0, true) => Next::Over,
            (0, false) => Next::Nothing,
            _ => Next::Ready(Watched::Missed { events, from }),
        }
    }
}

impl Queue {
    fn new(sees: Sees) -> Self {
        Self { waiting: Mutex::default(), came: Notify::new(), sees }
    }

    /// What doesn't fit is counted, and so is all that follows until the watcher has caught up: no event overtakes another.
    fn push(&self, event: &Event) {
        let mut waiting = lock(&self.waiting);
        if waiting.missed == 0 && waiting.queue.len() < WAITING {
            waiting.queue.push_back(Queued::Event(event.clone()));
        } else {
            waiting.missed += 1;
            waiting.missed_from = waiting.missed_from.or(event.seq);
            waiting.missed_head =
                event.seq.or(waiting.missed_head).filter(|_| self.sees == Sees::EventsAndHeads);
        }
        drop(waiting);
        self.came.notify_one();
    }

    /// One head stands for all before it, so there is always room for it.
    fn push_head(&self, head: Seq) {
        if self.sees == Sees::Events {
            return;
        }
        let mut waiting = lock(&self.waiting);
        let has_missed = waiting.missed > 0;
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
    /// A new watcher, which keeps what it watches.
    pub(crate) fn watch(&self, watched: Arc<dyn Send + Sync>) -> Watcher {
        self.join(watched, Sees::Events).0
    }

    /// A new watcher that is told also how far the records go, and the newest record before all that it will see.
    pub(crate) fn watch_with_heads(&self, watched: Arc<dyn Send + Sync>) -> (Watcher, Seq) {
        self.join(watched, Sees::EventsAndHeads)
    }

    fn join(&self, watched: Arc<dyn Send + Sync>, sees: Sees) -> (Watcher, Seq) {
        let queue = Arc::new(Queue::new(sees));
        let mut inner = lock(&self.inner);
        if let Some(partial) = &inner.partial {
            queue.push(partial);
        }
        lock(&queue.waiting).closed = inner.closed;
        inner.watchers.retain(|watcher| watcher.strong_count() > 0);
        inner.watchers.push(Arc::downgrade(&queue));
        (Watcher { queue, _watched: watched }, inner.head)
    }

    /// The records go so far, and the last of them makes no event.
    pub(crate) fn recorded(&self, head: Seq) {
        let mut inner = lock(&self.inner);
        inner.head = head;
        inner.watchers.iter().filter_map(Weak::upgrade).for_each(|queue| queue.push_head(head));
    }

    /// Shows an event to everybody.
    pub(crate) fn show(&self, event: &Event) {
        let mut inner = lock(&self.inner);
        inner.head = event.seq.unwrap_or(inner.head);
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
