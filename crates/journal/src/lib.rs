//! The journal: append-only, hash-chained streams of records, shared by many processes.
//!
//! Everything that Longhaul knows is a record in one of these streams. Folding the records gives the state, which is
//! never stored beside them.
//!
//! # What this crate promises
//!
//! - **An append that returned is durable**: it survives `kill -9` and power loss. One that did not return is either
//!   complete or absent.
//! - **One writer wins.** The other gets [`Error::Conflict`] with the true head; one whose lease was taken over gets
//!   [`Error::Fenced`], however late it comes.
//! - **Damage is detected.** Every record is checked against its hash when it is read. Undamaged records stay readable.
//! - **Cost doesn't grow with the past.** Loading a session costs as much as its newest epoch; a read holds one page of
//!   records in memory.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `journal`, `shared` | the trait [`Journal`] that engines implement, and so does an `Arc` of one |
//! | `append`, `prepared_append`, `lease`, `chain` | an append; what can be checked before its commit; the lease that permits it; the hash chain |
//! | `cursor` | paging: all records of a stream, all sessions |
//! | `inbox` | inputs and orders for a session |
//! | `names`, `lifecycle` | keys of sessions; rename, pin, trash, restore, delete |
//! | `cluster` | several nodes that share a journal: who they are, where a session may run, what is due |
//! | `copy` | a whole journal copied to another one, of any engine |
//! | `stream_copy` | copies of records as another stream, for forks |
//! | `export`, `export_file`, `import`, `import_mark` | a session as a file; its format; its import, and the record of that |
//! | `erasure` | erasing a record wherever the session repeats it |
//! | `subscribers` | connections between processes for live events |
//! | `search`, `stems` | the searchable text of a record; tokenising and stemming |
//! | `vectors` | vectors of an embedding model, if the user has one |
//! | `question`, `scoring` | what a question says: words, person, time; how records are ranked for it |
//! | `conformance` | the test suite that every engine passes, behind a feature |
//! | `verify_report` | the result of verifying a journal |
//! | `home` | the folder with all files: its lock, private files, atomic replacement |
//! | `sqlite` | the default engine: one SQLite file, many processes, group commit, search index, backup |
//!
//! All but `sqlite` work for any engine, and so do its search index and its wake socket. [`engine`] is what another
//! engine needs of this crate.
//!
//! # Example
//!
//! ```
//! use longhaul_journal::{Append, Home, Journal, SqliteJournal, records};
//! use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode, SessionId, StreamName};
//!
//! # let folder = std::env::temp_dir().join(format!("longhaul-doc-{}", std::process::id()));
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let journal = SqliteJournal::open(&Home::create(&folder)?).await?;
//! let inbox = StreamName::inbox(SessionId::generate());
//! let input = Input::new(InputId::generate(), "hello", JoinMode::Join);
//!
//! journal.append(Append::to(&inbox).record(InboxRecord::Input(input).encode())).await?;
//!
//! let mut inputs = records(&journal, &inbox, 1);
//! while let Some(record) = inputs.next().await? {
//!     assert_eq!(record.kind, "input");
//! }
//! # journal.close().await;
//! # Ok::<(), longhaul_journal::Error>(()) }).unwrap();
//! # std::fs::remove_dir_all(folder).unwrap();
//! ```

mod append;
mod chain;
mod cluster;
#[cfg(feature = "conformance")]
pub mod conformance;
mod copy;
mod cursor;
mod erasure;
mod error;
mod export;
mod export_file;
mod home;
mod import;
mod import_mark;
mod inbox;
mod journal;
mod lease;
mod lifecycle;
mod names;
mod prepared_append;
mod question;
mod scoring;
mod search;
mod shared;
mod sqlite;
mod stems;
mod stream_copy;
mod subscribers;
mod vectors;
mod verify_report;

pub use append::{Append, Blob, Expected, Head};
pub use cluster::{
    Cluster, DueSession, NodeHealth, NodeReport, NodeState, RunPermission, make_portable, node_names,
    place_session,
};
pub use copy::{CopyProgress, CopyReport, copy_journal};
pub use cursor::{RecordCursor, SessionCursor, all_sessions, record_at, records};
pub use erasure::erase_record;
pub use error::{Error, Result};
pub use export::{ExportReport, Imported, export_session};
pub use export_file::verify_export;
pub use home::{Home, ReplacingFile};
pub use import::import_session;
pub use import_mark::{
    Author, ImportMark, ImportOptions, SessionPlace, first_import_key, import_mark, newest_import,
    session_place,
};
pub use inbox::{accept, accept_with_blobs, check_size, put, put_with_blobs};
pub use journal::{Journal, Page, SessionEntry, StreamSize, WakeSignal, WakeSignals};
pub use lease::{Holder, Lease};
pub use lifecycle::{
    DeletedSession, SessionTimes, delete_session, finish_deletions, pin_session, rename_session,
    restore_session, session_times, trash_session, unpin_session,
};
pub use names::{bind_session_key, name_session, name_session_with, resolve};
pub use scoring::{BM25_B, BM25_K1};
pub use search::{
    FoundSessions, FoundStreams, SearchAnswer, SearchHit, SearchQuery, SearchScope, WeightedWord,
    sessions_with_words,
};
pub use sqlite::{ReadThread, RestoreReport, SqliteJournal, SqliteOptions, restore, verify_home};
pub use stems::stems;
pub use stream_copy::{RecordCopy, begin_with_copies};
pub use subscribers::{Subscriber, Subscribers, Subscription};
pub use vectors::{RecordVector, UnembeddedRecord, VectorSlot};
pub use verify_report::{Damage, VerifyReport};

/// What a salvage needs of the SQLite engine.
pub mod rebuild {
    pub use crate::chain::ChainLink;
    pub use crate::home::io_error;
    pub use crate::sqlite::{JournalRebuild, StreamNumber, decode_gone};
}

/// What another engine shares with the SQLite engine: the hash chain, the fold of names, the search index of a home, and
/// the wake socket of a process.
pub mod engine {
    pub use crate::chain::{ChainCheck, ChainLink};
    pub use crate::names::{NameChange, NamedSession, Names};
    pub use crate::prepared_append::PreparedAppend;
    pub use crate::sqlite::wake_socket::{self, WakeSocket};
    pub use crate::sqlite::{
        ErasedPlace, IndexSource, JournalRebuild, ScannedRow, SearchIndex, StreamNumber, check_page,
        decode_gone, encode_gone,
    };
}
