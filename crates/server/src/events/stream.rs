//! The stream of one client.

use std::sync::Arc;

use axum::body::Bytes;
use longhaul_agent::{Attendance, RecordedEvents, Session};
use longhaul_protocol::Seq;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::body::{BodyWriter, COMMENT_INTERVAL, FAILURE_DELAY_MS, RECONNECT_DELAY_MS, WriterStop};
use super::feed::{EventFeed, failure_event};
use super::followers::CountedFollower;
use super::log::{EventFrame, JoinPoint, LogCursor, LogRead};
use crate::problem::Problem;

/// The named event for clients that asked for it: scripts of a page don't see comments.
const PING: &[u8] = b"event: ping\ndata: {}\n\n";
/// Events of the journal are sent in parts of about this many bytes.
const CATCH_UP_PART_BYTES: usize = 64 << 10;

/// What a stream needs besides its feed.
pub(crate) struct StreamContext {
    /// The session, for records that the feed no longer has. `None` in the overview, which has none.
    pub(crate) session: Option<Session>,
    /// Bounds how many streams read old records at once, because each holds the state of its session meanwhile.
    pub(crate) catch_ups: Arc<Semaphore>,
    /// Whether the client gets the event `ping` at the beginning and with each comment.
    pub(crate) has_pings: bool,
    /// Counts this follower as long as its stream is open.
    pub(crate) follower: CountedFollower,
    /// Tells the session that a person may answer its questions.
    pub(crate) attendance: Option<Attendance>,
}

/// Writes the events of a session from a join point on, until the client, the session or the server ends.
pub(crate) async fn write_stream(
    mut writer: BodyWriter,
    feed: Arc<EventFeed>,
    joined: JoinPoint,
    context: StreamContext,
) {
    let StreamContext { session, catch_ups, has_pings, follower, attendance } = context;
    let written = async {
        // The client sees at once that the stream is open.
        writer.write(Bytes::from_static(b": open\n\n")).await?;
        if has_pings {
            writer.write(Bytes::from_static(PING)).await?;
        }
        let mut next = Some(joined);
        while let Some(JoinPoint { catch_up, partial, mut cursor }) = next {
            if let (Some((after, through)), Some(session)) = (catch_up, &session) {
                write_recorded(&mut writer, session, after, through, &catch_ups).await?;
            }
            if let Some(partial) = partial {
                writer.write(partial).await?;
            }
            next = match write_live(&mut writer, &feed, &mut cursor, has_pings).await? {
                LiveEnd::Overtaken => feed.log().rejoin(&cursor),
                LiveEnd::Ended => None,
            };
        }
        Ok::<(), StreamStop>(())
    };
    let stop = written.await;
    drop((follower, attendance));
    let delay_ms = match stop {
        Err(StreamStop::Writer(WriterStop::Gone)) => return,
        Err(StreamStop::Writer(WriterStop::Shutdown)) => RECONNECT_DELAY_MS,
        Err(StreamStop::Unreadable(problem)) => {
            let key = session.as_ref().map_or("", Session::key);
            let _ = writer.write(EventFrame::of_event(&failure_event(key, &problem)).bytes).await;
            FAILURE_DELAY_MS
        }
        Ok(()) if feed.log().failure().is_some() => FAILURE_DELAY_MS,
        Ok(()) => RECONNECT_DELAY_MS,
    };
    writer.end_with_retry(delay_ms);
}

/// Why a stream ends.
enum StreamStop {
    Writer(WriterStop),
    /// The session can't be read.
    Unreadable(Problem),
}

impl From<WriterStop> for StreamStop {
    fn from(stop: WriterStop) -> Self {
        Self::Writer(stop)
    }
}

impl From<longhaul_agent::Error> for StreamStop {
    fn from(error: longhaul_agent::Error) -> Self {
        Self::Unreadable(error.into())
    }
}

/// Writes the events of a range of records. The state of the session and the permit for it are held only while parts are made: a
/// client that does not keep up gives both back, and the rest is read anew once it has read.
async fn write_recorded(
    writer: &mut BodyWriter,
    session: &Session,
    mut after: Seq,
    through: Seq,
    catch_ups: &Semaphore,
) -> Result<(), StreamStop> {
    loop {
        let permit = tokio::select! {
            permit = catch_ups.acquire() => permit.map_err(|_| WriterStop::Shutdown)?,
            stop = writer.stopped() => return Err(stop.into()),
        };
        let mut events = session.recorded_events(after, through).await?;
        let unsent = loop {
            let (part, last) = next_part(&mut events, after).await?;
            if part.is_empty() {
                return Ok(());
            }
            after = last;
            if let Some(unsent) = writer.try_write(part)? {
                break unsent;
            }
        };
        drop((events, permit));
        writer.write(unsent).await?;
        writer.wait_for_room().await?;
    }
}

/// The next events of about [`CATCH_UP_PART_BYTES`], and the record of the last one. Empty at the end of the range.
async fn next_part(events: &mut RecordedEvents, mut last: Seq) -> Result<(Bytes, Seq), StreamStop> {
    let mut part = Vec::new();
    while part.len() < CATCH_UP_PART_BYTES {
        let Some(event) = events.next().await? else { break };
        last = event.seq.unwrap_or(last);
        part.extend_from_slice(&EventFrame::of_event(&event).bytes);
    }
    Ok((Bytes::from(part), last))
}

/// Why there is nothing more to write.
enum LiveEnd {
    /// The log no longer has the next event.
    Overtaken,
    /// The session can't be followed any more.
    Ended,
}

/// Writes what comes.
async fn write_live(
    writer: &mut BodyWriter,
    feed: &EventFeed,
    cursor: &mut LogCursor,
    has_pings: bool,
) -> Result<LiveEnd, WriterStop> {
    let mut comments = interval_at(Instant::now() + COMMENT_INTERVAL, COMMENT_INTERVAL);
    comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let read = tokio::select! {
            biased;
            stop = writer.stopped() => return Err(stop),
            _ = comments.tick() => {
                writer.write(Bytes::from_static(b":\n\n")).await?;
                if has_pings {
                    writer.write(Bytes::from_static(PING)).await?;
                }
                continue;
            }
            read = feed.log().read(cursor) => read,
        };
        match read {
            LogRead::Frames(frames) => {
                for frame in frames {
                    writer.write(frame.bytes).await?;
                }
            }
            LogRead::Lagged => return Ok(LiveEnd::Overtaken),
            LogRead::Ended => return Ok(LiveEnd::Ended),
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
