use std::path::Path;

use async_trait::async_trait;
use longhaul_protocol::{At, Hash, Record, Seq, SessionId, StreamName};
use tokio::sync::broadcast;

use crate::{
    Append, Blob, Cluster, FoundStreams, Head, Holder, Lease, RecordVector, Result, SearchAnswer, SearchHit,
    SearchQuery, Subscribers, Subscription, UnembeddedRecord, VerifyReport,
};

/// A journal. An engine keeps the promises on this crate's first page, and one test suite checks them for any engine.
/// No method takes a time, because the engine has a clock.
///
/// A future that is dropped early may or may not have had its effect, as after a crash.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends records to a stream. They are durable when this returns them as committed.
    async fn append(&self, append: Append) -> Result<Vec<Record>>;

    /// Reads a page of records from a position on. Empty at the end of the stream. Each record is checked against its
    /// hash. A damaged record ends the page. If it would be the first of the page, it is an error.
    /// [`records`](crate::records) reads page by page.
    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>>;

    /// The records of one kind in a stream, in their order. For streams of which most records are of other kinds. Skips damaged
    /// records.
    async fn records_of_kind(&self, stream: &StreamName, kind: &str) -> Result<Vec<Record>>;

    /// The head of a stream; [`Head::EMPTY`] if there is no such stream.
    async fn head(&self, stream: &StreamName) -> Result<Head>;

    /// The position of the newest record of kind `epoch_started` up to the record `through`, where loading a session begins.
    async fn newest_epoch(&self, stream: &StreamName, through: Seq) -> Result<Option<Seq>>;

    /// The size of a stream.
    async fn size(&self, stream: &StreamName) -> Result<StreamSize>;

    /// The position of the record that was appended with this key.
    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>>;

    /// All streams, by name.
    async fn streams(&self) -> Result<Vec<StreamName>>;

    /// The session with this key.
    async fn session(&self, key: &str) -> Result<Option<SessionEntry>>;

    /// The session with this id, if it has a key.
    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>>;

    /// At most `limit` sessions in the order of their keys, after a key. [`all_sessions`](crate::all_sessions) lists all.
    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>>;

    /// Acquires the lease on a stream, if it was never taken, is released or expired, or its holder is gone.
    async fn acquire_lease(&self, stream: &StreamName) -> Result<Lease>;

    /// Renews a lease, so that it expires later. An append also does this.
    async fn renew_lease(&self, lease: &Lease) -> Result<()>;

    /// Releases a lease. Does nothing if another process has taken it over.
    async fn release_lease(&self, lease: &Lease) -> Result<()>;

    /// The holder of the lease on a stream.
    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>>;

    /// The holder of the lease on a stream, if no other process could take the lease now: the holder is not gone, and the lease has
    /// not expired. A holder that is alive but stopped, or on a machine that died, lets its lease expire.
    async fn live_holder(&self, stream: &StreamName) -> Result<Option<Holder>>;

    /// The nodes that share this journal. `None` for a journal that one machine has alone.
    fn cluster(&self) -> Option<&dyn Cluster> {
        None
    }

    /// The stream whose lease is held by the process that would run a session which no process holds.
    async fn host_for(&self, _session: &StreamName) -> Result<StreamName> {
        Ok(StreamName::host())
    }

    /// Returns as soon as it is certain that no other process holds this lease now. An effect on the world begins only
    /// after this, because the machine may have slept or been cut off since the last append. Fails like
    /// [`renew_lease`](Self::renew_lease). An engine whose processes are all on this machine has nothing to ask.
    async fn confirm_lease(&self, _lease: &Lease) -> Result<()> {
        Ok(())
    }

    /// Wakes the process that holds the lease on a stream. If the lease is free, wakes the holder of
    /// [`host_for`](Self::host_for). It is no error if there is no such process or it can't be reached: a wake is a hint, the
    /// records are the fact.
    async fn wake_holder(&self, stream: &StreamName) -> Result<()>;

    /// The wakes that reach this process from now on.
    async fn wake_signals(&self) -> Result<WakeSignals>;

    /// Subscribes to the lines that the holder of a stream sends. `None` if it can't be reached. A holder that does
    /// not serve the stream disconnects. A holder of an older version sends nothing.
    async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>>;

    /// The subscribers of this process from now on. Only the last caller of this method gets them.
    async fn subscribers(&self) -> Result<Subscribers>;

    /// Wakes a process of this home on behalf of another node, once for each stream. Returns whether the process could be
    /// reached. An engine of one machine has no other nodes.
    async fn wake_here(&self, _: &Holder, _streams: &[StreamName]) -> Result<bool> {
        Ok(false)
    }

    /// Subscribes to a stream of a process of this home on behalf of another node; `None` if the process can't be reached.
    async fn subscribe_here(&self, _: &Holder, _: &StreamName) -> Result<Option<Subscription>> {
        Ok(None)
    }

    /// The bytes of a blob, checked against their hash.
    async fn blob(&self, hash: Hash) -> Result<Vec<u8>>;

    /// Erases the bodies of these records for good, all or none, with their search entries and the blobs that only
    /// they refer to. A stub says when and why. The chain still verifies.
    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()>;

    /// Removes a stream with all its records. Refused while another process holds its lease.
    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()>;

    /// Removes blobs that no record refers to, and returns how many there were. Normally there are none.
    async fn drop_unused_blobs(&self) -> Result<u64>;

    /// Moves all commits from the log to the main file and writes the known heads. Appends are durable without this.
    /// It is for a caller that wants a confirmation.
    async fn sync(&self) -> Result<()>;

    /// Adds records with their positions, times and hashes unchanged, if they continue their streams, under the lease
    /// on their session. Imports and forks use this.
    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()>;

    /// Finds records by words. Updates the index for the searched streams first.
    async fn search(&self, search: &SearchQuery) -> Result<SearchAnswer>;

    /// The utterances of a stream that have no vector of this embedding model yet, the oldest first, at most `limit`. Another
    /// model drops the vectors of the one before it. An engine without vectors has none to make.
    async fn unembedded(&self, _: &StreamName, _model: &str, _limit: usize) -> Result<Vec<UnembeddedRecord>> {
        Ok(Vec::new())
    }

    /// Stores vectors of this embedding model. Those of records that were erased meanwhile are left out.
    async fn put_vectors(&self, _model: &str, _vectors: Vec<RecordVector>) -> Result<()> {
        Ok(())
    }

    /// Finds records whose vectors are near to that of a question. The words only choose what a hit shows.
    async fn search_vectors(
        &self,
        _: &SearchQuery,
        _model: &str,
        _vector: Vec<f32>,
    ) -> Result<Vec<SearchHit>> {
        Ok(Vec::new())
    }

    /// The streams that have a record with all of the words, in any of their forms. Updates the index first.
    async fn streams_with_words(&self, words: &str) -> Result<FoundStreams>;

    /// Reads everything and reports what is not as it was committed.
    async fn verify(&self) -> Result<VerifyReport>;

    /// Writes a consistent copy to a new file, while other processes append.
    async fn backup(&self, file: &Path) -> Result<VerifyReport>;

    /// Finishes the work under way and closes the journal. Later calls get `Closed`.
    async fn close(&self);
}

/// The limits of one read. A read returns at least one record, however large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The most records.
    pub records: usize,
    /// The page ends with the record that makes the bodies reach this many bytes.
    pub bytes: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { records: 512, bytes: 1 << 20 }
    }
}

/// The size of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StreamSize {
    /// Its records.
    pub records: u64,
    /// Bytes of their bodies and of the blobs that they refer to. A blob that two streams share counts for each.
    pub bytes: u64,
}

/// A session in a listing, with the data that is needed to load it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SessionEntry {
    /// The key by which people find it. It can change.
    pub key: String,
    /// The id. It never changes.
    pub id: SessionId,
    /// Whether it is in the trash.
    pub trashed: bool,
    /// Whether retention never removes it.
    pub pinned: bool,
    /// The head of its stream.
    pub head: Head,
    /// The time of its last record.
    pub last_at: Option<At>,
    /// The first record of its newest epoch.
    pub epoch_from: Option<Seq>,
    /// The head of its inbox.
    pub inbox_head: Seq,
}

/// Receives the wakes of this process.
#[derive(Debug)]
pub struct WakeSignals(pub(crate) broadcast::Receiver<StreamName>);

/// A hint that a session has something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeSignal {
    /// Something changed that concerns the holder of this stream.
    Stream(StreamName),
    /// Some wakes were dropped because there were too many: check every session.
    Lagged,
    /// The journal is closed; no wake will come.
    Closed,
}

impl WakeSignals {
    /// The next wake.
    pub async fn next(&mut self) -> WakeSignal {
        match self.0.recv().await {
            Ok(stream) => WakeSignal::Stream(stream),
            Err(broadcast::error::RecvError::Lagged(_)) => WakeSignal::Lagged,
            Err(broadcast::error::RecvError::Closed) => WakeSignal::Closed,
        }
    }
}
