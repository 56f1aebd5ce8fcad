//! What any engine must promise. Nothing here knows which engine it talks to: an engine gives a place, the suite
//! opens journals there, several at a time as several processes would, and checks every promise through the trait.

mod append;
mod bodies;
mod leases;
mod lifecycle;
mod search;
mod sessions;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Append, Journal, records};
use longhaul_protocol::{NewRecord, Note, Record, SessionId, SessionRecord, StreamName};

pub(crate) use append::*;
pub(crate) use bodies::*;
pub(crate) use leases::*;
pub(crate) use lifecycle::*;
pub(crate) use search::*;
pub(crate) use sessions::*;

/// How long a lease stands where its expiry is the point.
pub(crate) const LEASE_EXPIRY: Duration = Duration::from_millis(1_500);

/// A place where an engine keeps a journal. Each call opens it anew, as another process would.
pub(crate) trait Place: Send + Sync {
    /// With leases that outlast any test.
    fn open(&self) -> impl Future<Output = Arc<dyn Journal>> + Send;

    /// With leases that expire after [`LEASE_EXPIRY`].
    fn open_expiring(&self) -> impl Future<Output = Arc<dyn Journal>> + Send;
}

/// A stream that no other test uses.
fn a_stream() -> StreamName {
    StreamName::session(SessionId::generate())
}

fn note(text: &str) -> NewRecord {
    SessionRecord::Note(Note::new(text)).encode()
}

/// Appends notes with these texts, one append each.
pub(crate) async fn append_notes(journal: &dyn Journal, stream: &StreamName, texts: &[&str]) {
    for text in texts {
        journal.append(Append::to(stream).record(note(text))).await.unwrap();
    }
}

/// Every record of a stream, page by page.
pub(crate) async fn read_all(journal: &dyn Journal, stream: &StreamName) -> Vec<Record> {
    records(journal, stream, 1).collect().await.unwrap()
}

/// The texts of the notes in a stream.
async fn texts(journal: &dyn Journal, stream: &StreamName) -> Vec<String> {
    let text = |record: &Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Note(note)) => note.text,
        other => panic!("not a note: {other:?}"),
    };
    read_all(journal, stream).await.iter().map(text).collect()
}

/// Makes a test of each promise, for the place that the expression gives.
macro_rules! conformance {
    ($place:expr; $($promise:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            conformance::$promise(&$place).await;
        }
    )* };
}
pub(crate) use conformance;
