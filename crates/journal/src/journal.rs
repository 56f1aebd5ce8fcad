use std::path::Path;

use async_trait::async_trait;
use longhaul_protocol::{At, Hash, Record, Seq, SessionId, StreamName};
use tokio::sync::broadcast;

use crate::{Append, Blob, Call, Callers, Frequencies, Head, Hit, Holder, Lease, Report, Result, Search};

/// Streams that survive. An engine keeps the promises of this crate's first page; one suite of tests checks them
/// for any engine. No method takes a time: the engine has a clock.
///
/// A future that is dropped before it is done may or may not have had its effect, as with a crash.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Adds records to the end of a stream: durable when it returns, and then they are returned as they stand.
    async fn append(&self, append: Append) -> Result<Vec<Record>>;

    /// Records of a stream from a place on, at most a page of them; empty at the end. Each was checked against
    /// its hash; the first that does not match ends the page, and is the error if it is the first of all.
    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>>;

    /// The end of a stream; [`Head::EMPTY`] if there is none such.
    async fn head(&self, stream: &StreamName) -> Result<Head>;

    /// Where the newest record of kind `epoch_started` stands: loading a session begins there.
    async fn newest_epoch(&self, stream: &StreamName) -> Result<Option<Seq>>;

    /// How much a stream holds.
    async fn size(&self, stream: &StreamName) -> Result<Size>;

    /// The record that was appended with this key.
    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>>;

    /// All streams, by name.
    async fn streams(&self) -> Result<Vec<StreamName>>;

    /// The session that a key leads to.
    async fn session(&self, key: &str) -> Result<Option<SessionEntry>>;

    /// The session with this id, if a key leads to it.
    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>>;

    /// Sessions in the order of their keys, after a key, at most so many.
    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>>;

    /// Takes the lease on a stream if it is free: never taken, released, expired, or its holder is gone.
    async fn acquire(&self, stream: &StreamName) -> Result<Lease>;

    /// Puts the expiry of a lease off. An append does so by itself.
    async fn renew(&self, lease: &Lease) -> Result<()>;

    /// Gives a lease back. One that was taken over is left alone.
    async fn release(&self, lease: &Lease) -> Result<()>;

    /// Who holds the lease on a stream.
    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>>;

    /// Tells the holder of a stream's lease, in whatever process, that something concerns it; if nobody holds it, the
    /// holder of [`StreamName::host`]. Nobody is told if there is no such process or if it can't be reached: a ring
    /// is a hint, the records are the fact.
    async fn ring(&self, stream: &StreamName) -> Result<()>;

    /// The rings that reach this process from now on.
    async fn rings(&self) -> Result<Rings>;

    /// Calls a process to hear, line by line, what happens in a stream. Nothing, if it can't be reached; one that has nothing
    /// to say of it hangs up, or, if it is of an older version, says nothing.
    async fn call(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Call>>;

    /// Those who call this process from now on. They go to whoever asked for them last.
    async fn callers(&self) -> Result<Callers>;

    /// The bytes of a blob, checked against their hash.
    async fn blob(&self, hash: Hash) -> Result<Vec<u8>>;

    /// Removes the bodies of these records for good, all or none, with what was found through them and the blobs
    /// that only they refer to. A stub says when and why; the chain still verifies.
    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()>;

    /// Removes a stream with all its records. Refused while another holds its lease.
    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()>;

    /// Removes blobs that no record refers to. There are none unless something went wrong; how many there were.
    async fn drop_unused_blobs(&self) -> Result<u64>;

    /// Has everything that was committed written through to the disk once more, and the heads noted. An append is durable when it
    /// returns; this is for whoever wants to hear so.
    async fn sync(&self) -> Result<()>;

    /// Adds records exactly as they are, with their places, times and hashes, if they go on where their streams
    /// end, under the lease on the session that they belong to. This is how an export comes back.
    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()>;

    /// Finds records by words. The index catches up with the streams that are asked for before it answers.
    async fn search(&self, search: &Search) -> Result<Vec<Hit>>;

    /// In how many records these words stand, each in any of its forms. The index says so as it is; it does not catch up.
    async fn frequencies(&self, words: &[String]) -> Result<Frequencies>;

    /// Reads everything and says what is not as it was committed.
    async fn verify(&self) -> Result<Report>;

    /// Writes a consistent copy of everything to a new file, while everything runs.
    async fn backup(&self, file: &Path) -> Result<Report>;

    /// Finishes what is under way and lets go of everything. Whatever comes after is refused.
    async fn close(&self);
}

/// How much one read may return. At least one record always comes, however large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most so many records.
    pub records: usize,
    /// No further record once the bodies come to this many bytes.
    pub bytes: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { records: 512, bytes: 1 << 20 }
    }
}

/// How much a stream holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Size {
    /// How many records.
    pub records: u64,
    /// The bytes of their bodies and of the blobs that they refer to. A blob that two streams share counts for each.
    pub bytes: u64,
}

/// A session as a listing shows it, with what is needed to load it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SessionEntry {
    /// How people find it.
    pub key: String,
    /// What never changes.
    pub id: SessionId,
    /// Whether it was put away.
    pub trashed: bool,
    /// Whether it stays whatever retention says.
    pub pinned: bool,
    /// The end of its stream.
    pub head: Head,
    /// When the last record came.
    pub last_at: Option<At>,
    /// Where its newest epoch begins.
    pub epoch_from: Option<Seq>,
    /// The end of its inbox.
    pub inbox_head: Seq,
}

/// Rings as they come.
#[derive(Debug)]
pub struct Rings(pub(crate) broadcast::Receiver<StreamName>);

/// That something concerns a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ring {
    /// This stream.
    For(StreamName),
    /// So many came that some were dropped: look at everything.
    Many,
    /// No ring will come any more.
    Closed,
}

impl Rings {
    /// The next ring.
    pub async fn next(&mut self) -> Ring {
        match self.0.recv().await {
            Ok(stream) => Ring::For(stream),
            Err(broadcast::error::RecvError::Lagged(_)) => Ring::Many,
            Err(broadcast::error::RecvError::Closed) => Ring::Closed,
        }
    }
}
