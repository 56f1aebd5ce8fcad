//! The task that feeds a follower.

use std::time::Duration;

use longhaul_journal::{Error as JournalError, Holder, records};
use longhaul_protocol::{Seq, SessionId, StreamName};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::client::follow::connection::HolderConnection;
use crate::client::follow::progress::{FollowProgress, LineAction};
use crate::client::follow::{FollowSources, Followed};
use crate::session::state::State;
use crate::{Error, Result};

/// How often the reader checks which process holds the session, and whether there are records that were not announced.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the reader polls the records while the holder of the session announces nothing. Such a holder has an
/// older version or is on another machine.
pub(super) const UNANNOUNCED_POLL_INTERVAL: Duration = Duration::from_millis(100);

struct FollowReader {
    sources: FollowSources,
    key: String,
    id: SessionId,
    stream: StreamName,
    progress: FollowProgress,
    connection: Option<HolderConnection>,
    /// The process that held the session, or would take it, at the last poll.
    holder: Option<Holder>,
    /// Set if the last poll found records that were not announced. Holds the newest announced record at that time.
    unannounced_since: Option<Seq>,
    output: FollowOutput,
}

/// Where the reader writes what it finds.
pub(super) struct FollowOutput {
    pub(super) sender: mpsc::Sender<Result<Followed>>,
    pub(super) holder: watch::Sender<Option<Holder>>,
    pub(super) subscribed: watch::Sender<bool>,
}

/// Why the reader stops.
enum ReaderStop {
    FollowerDropped,
    Failed(Error),
}

impl From<JournalError> for ReaderStop {
    fn from(error: JournalError) -> Self {
        Self::Failed(error.into())
    }
}

type ReaderResult<T> = std::result::Result<T, ReaderStop>;

pub(super) async fn run(
    sources: FollowSources,
    key: String,
    id: SessionId,
    state: State,
    output: FollowOutput,
) {
    let (progress, stream) = (FollowProgress::new(&key, state), StreamName::session(id));
    let mut reader = FollowReader {
        sources,
        key,
        id,
        stream,
        progress,
        connection: None,
        holder: None,
        unannounced_since: None,
        output,
    };
    while let Err(ReaderStop::Failed(error)) = reader.follow().await {
        match error {
            Error::Journal(error) if error.may_pass() => tokio::time::sleep(POLL_INTERVAL).await,
            Error::Journal(JournalError::Closed) => return,
            error => {
                let _ = reader.output.sender.send(Err(error)).await;
                return;
            }
        }
    }
}

impl FollowReader {
    /// Follows the session until an error, or until the follower is dropped.
    async fn follow(&mut self) -> ReaderResult<()> {
        loop {
            self.poll().await?;
            let until = Instant::now() + POLL_INTERVAL;
            while Instant::now() < until && self.handle_next(until).await? {}
        }
    }

    /// Finds the holder, subscribes to it, and reads records that it did not announce.
    async fn poll(&mut self) -> ReaderResult<()> {
        let holder = self.find_holder().await?;
        if holder != self.holder {
            self.output.holder.send_replace(holder.clone());
            let is_gone = holder.is_none();
            self.holder = holder;
            if is_gone {
                self.read_all().await?;
                if let Some(warning) = self.progress.abandoned_turn() {
                    self.send(warning).await?;
                }
            }
        }
        if let Some(holder) = self.holder.clone()
            && !self.connection.as_ref().is_some_and(|open| open.is_current(&holder, &self.sources, self.id))
        {
            self.connection = HolderConnection::open(&self.sources, holder, self.id).await?;
        }
        match &self.connection {
            Some(HolderConnection { announced: Some(announced), .. }) => {
                self.read_unannounced(*announced).await
            }
            Some(connection) if connection.age() < POLL_INTERVAL => Ok(()),
            _ => self.read_all().await,
        }
    }

    /// The process that holds the session. If there is none, the host, which would take it.
    async fn find_holder(&self) -> longhaul_journal::Result<Option<Holder>> {
        let journal = &self.sources.journal;
        let is_there = |holder: &Holder| !holder.is_gone();
        if let Some(holder) = journal.holder(&self.stream).await?.filter(is_there) {
            return Ok(Some(holder));
        }
        let host = journal.host_for(&self.stream).await?;
        Ok(journal.holder(&host).await?.filter(is_there))
    }

    /// Waits for the next line, at most until `until`, and handles it. Returns `false` if the next poll is due at
    /// once.
    async fn handle_next(&mut self, until: Instant) -> ReaderResult<bool> {
        let Some(connection) = &mut self.connection else {
            self.output.subscribed.send_replace(true);
            let interval = if self.holder.is_some() { UNANNOUNCED_POLL_INTERVAL } else { POLL_INTERVAL };
            self.wait(interval, until).await?;
            self.read_all().await?;
            return Ok(true);
        };
        let wait = connection.wait_limit();
        let line = tokio::select! {
            biased;
            () = self.output.sender.closed() => return Err(ReaderStop::FollowerDropped),
            line = connection.lines.next() => line,
            () = tokio::time::sleep_until(until.min(Instant::now() + wait)) => {
                self.output.subscribed.send_replace(true);
                if wait == UNANNOUNCED_POLL_INTERVAL {
                    self.read_all().await?;
                }
                return Ok(true);
            }
        };
        self.output.subscribed.send_replace(true);
        let Some(line) = line else { return self.handle_disconnect(until).await };
        match self.progress.apply_line(line, connection.announced.unwrap_or_default()) {
            LineAction::Nothing => {}
            LineAction::Show(followed) => self.send(followed).await?,
            LineAction::Read(seq) => {
                let announced = connection.announced.unwrap_or_default().max(seq);
                connection.announced = Some(announced);
                self.read_through(announced).await?;
            }
            LineAction::Resubscribe => {
                self.connection = None;
                self.wait(UNANNOUNCED_POLL_INTERVAL, until).await?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles a connection that the holder closed. The journal has the rest. If the holder had announced something,
    /// it has ended, so the reader looks for its successor at once. Otherwise the reader does not contact it again
    /// before the next poll.
    async fn handle_disconnect(&mut self, until: Instant) -> ReaderResult<bool> {
        let had_lines = self.connection.take().is_some_and(|connection| connection.announced.is_some());
        self.read_all().await?;
        self.wait(UNANNOUNCED_POLL_INTERVAL, until).await?;
        Ok(!had_lines)
    }

    async fn wait(&self, wait: Duration, until: Instant) -> ReaderResult<()> {
        tokio::select! {
            () = self.output.sender.closed() => Err(ReaderStop::FollowerDropped),
            () = tokio::time::sleep_until(until.min(Instant::now() + wait)) => Ok(()),
        }
    }

    /// Reads records that the holder has not announced at two polls in a row. After only one poll, the announcement
    /// and the deltas before it may still be on their way.
    async fn read_unannounced(&mut self, announced: Seq) -> ReaderResult<()> {
        let head = self.sources.journal.head(&self.stream).await?;
        if head.seq <= self.progress.head() {
            self.unannounced_since = None;
        } else if self.unannounced_since.replace(announced) == Some(announced) {
            self.unannounced_since = None;
            self.read_all().await?;
        }
        Ok(())
    }

    async fn read_all(&mut self) -> ReaderResult<()> {
        self.read_through(Seq::MAX).await
    }

    /// Reads up to the record `last`, or to the end.
    async fn read_through(&mut self, last: Seq) -> ReaderResult<()> {
        let mut cursor =
            records(&*self.sources.journal, &self.stream, self.progress.head() + 1).through(last);
        while let Some(record) = cursor.next().await? {
            let unreadable = |reason| Error::Unreadable { key: self.key.clone(), reason };
            let followed = self
                .progress
                .apply_record(record)
                .map_err(|reason| ReaderStop::Failed(unreadable(reason)))?;
            for followed in followed {
                self.send(followed).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, followed: Followed) -> ReaderResult<()> {
        self.output.sender.send(Ok(followed)).await.map_err(|_| ReaderStop::FollowerDropped)
    }
}
