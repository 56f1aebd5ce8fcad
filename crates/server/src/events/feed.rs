//! One feed for each session that clients follow: it follows the session once, for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use longhaul_agent::{Followed, Runtime, follow_unattended, now};
use longhaul_protocol::{AttemptStarted, Event, EventKind, Record, Seq, SessionId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::log::EventLog;
use crate::problem::Problem;

/// A new feed begins at the cursor of its first follower if that is at most this many records back. So all clients that
/// come back after a restart share one replay.
const MAX_SHARED_CATCH_UP: Seq = 1_024;
/// How often a feed checks that its session still exists, and what its key is.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a stream waits for its feed to hear the session.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The events of one session, for all of its followers. It ends with the last of them.
pub(crate) struct EventFeed {
    log: Arc<EventLog>,
    task: AbortHandle,
    /// Becomes true when the feed hears the session's live events. Closed when it has ended.
    subscribed: watch::Receiver<bool>,
}

impl EventFeed {
    pub(super) fn new(log: Arc<EventLog>, task: AbortHandle, subscribed: watch::Receiver<bool>) -> Self {
        Self { log, task, subscribed }
    }

    /// Waits until the feed misses no live event from now on. A session that can't be heard in time is followed by its records.
    pub(crate) async fn wait_subscribed(&self) {
        let mut subscribed = self.subscribed.clone();
        let _ = tokio::time::timeout(SUBSCRIBE_TIMEOUT, subscribed.wait_for(|subscribed| *subscribed)).await;
    }

    pub(crate) fn log(&self) -> &EventLog {
        &self.log
    }
}

impl Drop for EventFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The feeds of all sessions that have followers.
#[derive(Default)]
pub(crate) struct EventFeeds(Mutex<HashMap<SessionId, Weak<EventFeed>>>);

impl EventFeeds {
    /// The feed of a session, for a follower that has the events up to `after`. `head` is the session's last record.
    pub(crate) fn of_session(
        &self,
        runtime: &Runtime,
        key: &str,
        id: SessionId,
        after: Seq,
        head: Seq,
    ) -> Arc<EventFeed> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&id).and_then(Weak::upgrade).filter(|feed| !feed.log.has_ended()) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let start = if head.saturating_sub(after) <= MAX_SHARED_CATCH_UP { after } else { head };
        let log = Arc::new(EventLog::new(start, head));
        let (subscribed, is_subscribed) = watch::channel(false);
        let output = FeedOutput { log: log.clone(), subscribed };
        let task = tokio::spawn(follow(runtime.clone(), key.to_owned(), id, start, output));
        let feed = Arc::new(EventFeed::new(log, task.abort_handle(), is_subscribed));
        feeds.insert(id, Arc::downgrade(&feed));
        feed
    }
}

/// Where the task of a feed writes what it finds.
struct FeedOutput {
    log: Arc<EventLog>,
    subscribed: watch::Sender<bool>,
}

/// Writes what happens in a session after this record to the log, until the session can't be followed any more.
async fn follow(runtime: Runtime, mut key: String, id: SessionId, after: Seq, output: FeedOutput) {
    let FeedOutput { log, subscribed } = output;
    let follower = match runtime.session(&key).await {
        Ok(session) => follow_unattended(&session, after).await,
        Err(error) => Err(error),
    };
    let journal = runtime.journal();
    // The feed must not keep the runtime alive.
    drop(runtime);
    let mut checks = tokio::time::interval(SESSION_CHECK_INTERVAL);
    let mut was_trashed = None;
    let failed = async {
        let mut follower = follower?;
        let mut heard = follower.subscribed();
        loop {
            let step = tokio::select! {
                step = follower.step() => step,
                () = async { drop(heard.wait_for(|heard| *heard).await) }, if !*subscribed.borrow() => {
                    subscribed.send_replace(true);
                    continue;
                }
                _ = checks.tick() => match journal.session_with_id(id).await {
                    // It was deleted for good.
                    Ok(None) => return Ok(()),
                    Ok(Some(entry)) => {
                        key = entry.key;
                        // Followers who come back find it in the trash, or restored.
                        if was_trashed.replace(entry.trashed).is_some_and(|was| was != entry.trashed) {
                            return Ok(());
                        }
                        continue;
                    }
                    Err(_) => continue,
                },
            };
            match step? {
                Some(Followed::Record(record, mut event)) => {
                    note_attempt(&log, &record);
                    event.iter_mut().for_each(|event| event.session.clone_from(&key));
                    log.add_record(record.seq, event.as_deref());
                }
                Some(Followed::Live(mut event)) => {
                    event.session.clone_from(&key);
                    log.add_live(&event);
                }
                None => return Ok(()),
            }
        }
    };
    let failed: Result<(), longhaul_agent::Error> = failed.await;
    let failure = failed.err().map(Problem::from);
    if let Some(problem) = &failure {
        log.add_live(&failure_event(&key, problem));
    }
    log.end(failure);
}

/// The last event of a stream whose session can't be followed any more.
pub(super) fn failure_event(key: &str, problem: &Problem) -> Event {
    let kind = EventKind::Warning { code: "stream_failed".to_owned(), text: problem.detail.clone() };
    Event { seq: None, at: now(), session: key.to_owned(), turn: None, kind }
}

/// Notes that an answer begins or ends, so that a follower who joins in between gets its text so far.
fn note_attempt(log: &EventLog, record: &Record) {
    match record.kind.as_str() {
        "attempt_started" => log.set_attempt(record.decode().ok().map(|begun: AttemptStarted| begun.attempt)),
        "attempt_ended" | "turn_ended" => log.set_attempt(None),
        _ => {}
    }
}
