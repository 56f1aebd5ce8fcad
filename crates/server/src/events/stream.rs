//! The stream of one client.

use std::sync::Arc;

use axum::body::Bytes;
use longhaul_agent::Session;
use longhaul_protocol::Seq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::body::{BodyWriter, COMMENT_INTERVAL, WriterStop};
use super::feed::EventFeed;
use super::log::{EventFrame, JoinPoint, LogCursor, LogRead};

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
    pub(crate) follower: OwnedSemaphorePermit,
}

/// Writes the events of a session from a join point on, until the client, the session or the server ends.
pub(crate) async fn write_stream(
    mut writer: BodyWriter,
    feed: Arc<EventFeed>,
    joined: JoinPoint,
    context: StreamContext,
) {
    let written = async {
        // The client sees at once that the stream is open.
        writer.write(Bytes::from_static(b": open\n\n")).await?;
        if context.has_pings {
            writer.write(Bytes::from_static(PING)).await?;
        }
        let mut next = Some(joined);
        while let Some(JoinPoint { catch_up, partial, mut cursor }) = next {
            if let (Some((after, through)), Some(session)) = (catch_up, &context.session) {
                write_recorded(&mut writer, session, after, through, &context.catch_ups).await?;
            }
            if let Some(partial) = partial {
                writer.write(partial).await?;
            }
            next = match write_live(&mut writer, &feed, &mut cursor, context.has_pings).await? {
                LiveEnd::Overtaken => feed.log().rejoin(&cursor),
                LiveEnd::Ended => None,
            };
        }
        Ok::<(), WriterStop>(())
    };
    let stop = written.await;
    drop(context.follower);
    if stop != Err(WriterStop::Gone) {
        writer.end_with_retry();
    }
}

/// Writes the events of a range of records.
async fn write_recorded(
    writer: &mut BodyWriter,
    session: &Session,
    after: Seq,
    through: Seq,
    catch_ups: &Semaphore,
) -> Result<(), WriterStop> {
    let _permit = tokio::select! {
        permit = catch_ups.acquire() => permit.map_err(|_| WriterStop::Shutdown)?,
        stop = writer.stopped() => return Err(stop),
    };
    // A session that can't be read ends the stream. The client comes back for the rest.
    let mut events = session.recorded_events(after, through).await.map_err(|_| WriterStop::Shutdown)?;
    let mut part = Vec::new();
    while let Some(event) = events.next().await.map_err(|_| WriterStop::Shutdown)? {
        part.extend_from_slice(&EventFrame::of_event(&event).bytes);
        if part.len() >= CATCH_UP_PART_BYTES {
            writer.write(Bytes::from(std::mem::take(&mut part))).await?;
        }
    }
    if part.is_empty() { Ok(()) } else { writer.write(Bytes::from(part)).await }
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
