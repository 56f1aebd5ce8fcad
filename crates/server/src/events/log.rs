//! The newest events of one session, each serialised once and shared by all followers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use longhaul_protocol::{AttemptId, Event, EventKind, Seq};
use tokio::sync::watch;

use crate::problem::Problem;

/// The most events in a log. A follower that is further behind is closed.
const MAX_FRAMES: usize = 4_096;
/// The most bytes of a log, apart from its newest event.
const MAX_BYTES: usize = 4 << 20;
/// Events that a follower takes at a time.
const READ_BATCH: usize = 64;

/// An event as a server-sent event.
#[derive(Debug, Clone)]
pub(crate) struct EventFrame {
    /// The record of the event; `None` for a live event.
    pub(crate) seq: Option<Seq>,
    pub(crate) bytes: Bytes,
    /// The answer that was being received before this event, and the length of its text by then.
    answer: Option<(AttemptId, usize)>,
}

impl EventFrame {
    pub(crate) fn of_event(event: &Event) -> Self {
        // An event is plain data with string keys, which always serialises. JSON escapes newlines, so no text can
        // begin a field of its own.
        let json = serde_json::to_string(event).unwrap_or_default();
        Self::new(event.seq, &json)
    }

    pub(crate) fn new(seq: Option<Seq>, json: &str) -> Self {
        let text = match seq {
            Some(seq) => format!("id: {seq}\ndata: {json}\n\n"),
            None => format!("data: {json}\n\n"),
        };
        Self { seq, bytes: Bytes::from(text), answer: None }
    }
}

/// The newest events of a session. Followers read it at their own pace.
pub(crate) struct EventLog {
    state: Mutex<LogState>,
    /// The number of events so far. Wakes followers.
    written: watch::Sender<u64>,
    /// The last record of a replay, which fills the log faster than a client can read.
    replay_through: Seq,
}

#[derive(Default)]
struct LogState {
    frames: VecDeque<EventFrame>,
    /// The number of the first frame.
    first: u64,
    bytes: usize,
    /// The last record that the log has seen.
    position: Seq,
    /// The log has the events of all records between this one and `position`.
    complete_after: Seq,
    partial: Option<PartialAnswer>,
    has_ended: bool,
    /// Why the session can't be followed.
    failure: Option<Problem>,
}

/// The text so far of the answer that is being received.
struct PartialAnswer {
    attempt: AttemptId,
    text: String,
    /// The newest event of it, from which the others of its fields come.
    newest: Option<Event>,
}

/// Where a follower begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JoinPoint {
    /// The range of records whose events the follower reads from the journal first: after the one, through the other.
    pub(crate) catch_up: Option<(Seq, Seq)>,
    /// The event with the text so far of the open answer, which comes next.
    pub(crate) partial: Option<Bytes>,
    pub(crate) cursor: LogCursor,
}

/// A follower's place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogCursor {
    /// The number of the next frame.
    next: u64,
    /// The follower has the events of all records up to this one.
    seen: Seq,
}

/// What a follower finds in a log.
pub(crate) enum LogRead {
    Frames(Vec<EventFrame>),
    /// The follower is too slow: the next events are no longer there.
    Lagged,
    /// The session can't be followed any more.
    Ended,
}

impl EventLog {
    /// A log that begins after this record. What comes up to `replay_through` is a replay.
    pub(crate) fn new(after: Seq, replay_through: Seq) -> Self {
        let state = LogState { position: after, complete_after: after, ..LogState::default() };
        Self { state: Mutex::new(state), written: watch::Sender::new(0), replay_through }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        // Each change is complete before the lock is released, even by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the event of a record, or only notes that a record has none.
    pub(crate) fn add_record(&self, seq: Seq, event: Option<&Event>) {
        let frame = event.map(EventFrame::of_event);
        let mut state = self.lock();
        state.position = seq;
        if let Some(frame) = frame {
            state.push(frame);
        }
        self.announce(&state);
    }

    /// Adds an event that is not on record.
    pub(crate) fn add_live(&self, event: &Event) {
        let frame = EventFrame::of_event(event);
        let mut state = self.lock();
        state.push(frame);
        state.extend_partial(event);
        self.announce(&state);
    }

    /// Adds a message that belongs to no record.
    pub(crate) fn add_message(&self, json: &str) {
        let mut state = self.lock();
        state.push(EventFrame::new(None, json));
        self.announce(&state);
    }

    /// Notes that an answer begins, or that none is being received any more.
    pub(crate) fn set_attempt(&self, attempt: Option<AttemptId>) {
        self.lock().partial =
            attempt.map(|attempt| PartialAnswer { attempt, text: String::new(), newest: None });
    }

    /// Ends every follower after it has read the log. `failure` says why the session can't be followed.
    pub(crate) fn end(&self, failure: Option<Problem>) {
        let mut state = self.lock();
        state.failure = failure;
        state.has_ended = true;
        self.announce(&state);
        self.written.send_modify(|_| {});
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Why the session can't be followed any more.
    pub(crate) fn failure(&self) -> Option<Problem> {
        self.lock().failure.clone()
    }

    fn announce(&self, state: &LogState) {
        self.written.send_replace(state.first + state.frames.len() as u64);
    }

    /// Where a follower begins that has the events of all records up to `after`.
    pub(crate) fn join(&self, after: Seq) -> JoinPoint {
        let state = self.lock();
        let end = state.first + state.frames.len() as u64;
        let catch_up = (after < state.complete_after).then_some((after, state.position));
        let first_new = state.frames.iter().position(|frame| frame.seq.is_some_and(|seq| seq > after));
        let (next, seen) = match (catch_up, first_new) {
            (Some((_, through)), _) => (end, through),
            (None, Some(index)) => (state.first + index as u64, after),
            (None, None) => (end, after),
        };
        let partial = match state.frames.get(usize::try_from(next - state.first).unwrap_or(usize::MAX)) {
            // The deltas after this event are still in the log. Those before it are not for this follower.
            Some(frame) => frame.answer.and_then(|(attempt, length)| state.partial_frame(attempt, length)),
            None => {
                state.partial.as_ref().and_then(|open| state.partial_frame(open.attempt, open.text.len()))
            }
        };
        JoinPoint { catch_up, partial, cursor: LogCursor { next, seen } }
    }

    /// Where a follower goes on that a replay has overtaken: the journal has what it misses. None if it was too slow for what
    /// happens.
    pub(crate) fn rejoin(&self, cursor: &LogCursor) -> Option<JoinPoint> {
        (cursor.seen < self.replay_through).then(|| self.join(cursor.seen))
    }

    /// The next events of a follower. Waits for them. Cancel-safe.
    pub(crate) async fn read(&self, cursor: &mut LogCursor) -> LogRead {
        let mut written = self.written.subscribe();
        loop {
            written.mark_unchanged();
            if let Some(read) = self.read_now(cursor) {
                return read;
            }
            if written.changed().await.is_err() {
                return LogRead::Ended;
            }
        }
    }

    fn read_now(&self, cursor: &mut LogCursor) -> Option<LogRead> {
        let state = self.lock();
        if cursor.next < state.first {
            return Some(LogRead::Lagged);
        }
        let skipped = usize::try_from(cursor.next - state.first).unwrap_or(usize::MAX);
        let new: Vec<EventFrame> = state.frames.iter().skip(skipped).take(READ_BATCH).cloned().collect();
        if new.is_empty() {
            return state.has_ended.then_some(LogRead::Ended);
        }
        cursor.next += new.len() as u64;
        let seen = cursor.seen;
        cursor.seen = new.iter().filter_map(|frame| frame.seq).fold(seen, Seq::max);
        Some(LogRead::Frames(
            new.into_iter().filter(|frame| frame.seq.is_none_or(|seq| seq > seen)).collect(),
        ))
    }
}

impl LogState {
    fn push(&mut self, mut frame: EventFrame) {
        frame.answer = self.partial.as_ref().map(|open| (open.attempt, open.text.len()));
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        while self.frames.len() > 1 && (self.frames.len() > MAX_FRAMES || self.bytes > MAX_BYTES) {
            let Some(oldest) = self.frames.pop_front() else { return };
            self.first += 1;
            self.bytes -= oldest.bytes.len();
            self.complete_after = oldest.seq.unwrap_or(self.complete_after);
        }
    }

    fn extend_partial(&mut self, event: &Event) {
        match (&event.kind, &mut self.partial) {
            (EventKind::Partial { attempt, text }, partial) => {
                let newest = Some(event.clone());
                *partial = Some(PartialAnswer { attempt: *attempt, text: text.clone(), newest });
            }
            (EventKind::TextDelta { text }, Some(partial)) => {
                partial.text.push_str(text);
                partial.newest = Some(event.clone());
            }
            _ => {}
        }
    }

    /// The first part of the answer that is being received, if it is still this one.
    fn partial_frame(&self, attempt: AttemptId, length: usize) -> Option<Bytes> {
        let open = self.partial.as_ref().filter(|open| open.attempt == attempt)?;
        let PartialAnswer { text, newest, .. } = open;
        let text = text.get(..length)?.to_owned();
        let kind = EventKind::Partial { attempt, text };
        let event = Event { seq: None, kind, ..newest.clone()? };
        Some(EventFrame::of_event(&event).bytes)
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
