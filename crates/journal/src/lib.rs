//! Streams that survive: append-only, hash-chained lists of records, shared by many processes.
//!
//! Everything that Longhaul knows is a record in one of these streams. State is what folding them gives; it is
//! never stored beside them.
//!
//! # What this crate promises
//!
//! - **An append that returned is there**, after `kill -9` and after power loss; one that did not is there whole or
//!   not at all.
//! - **One writer wins.** The other gets [`Error::Conflict`] with the true head; one whose lease was taken over gets
//!   [`Error::Fenced`], however late it comes.
//! - **Damage is found and named.** Every record that is read was checked against its hash first. What can still be
//!   read stays readable.
//! - **Nothing grows with the past.** Loading a session costs what its newest epoch costs; a read holds one page
//!   of records in memory.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `append`, `lease`, `chain` | what an append is; who may make one; the hash that ties records together |
//! | `cursor` | paging: all records of a stream, all sessions |
//! | `inbox`, `names`, `lifetime`, `copying`, `export`, `import`, `erasing` | what is built on the trait alone and works for any engine |
//! | `calls` | connections between processes, for whoever tells another what happens while it happens |
//! | `search`, `stems` | what of a record can be found, and how text is split into words, for any engine |
//! | `home` | the folder that everything lives in: its lock, private files, atomic replacement |
//! | `sqlite` | the default engine: one file, many processes, group commit |
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
//! let input = Input { id: InputId::generate(), text: "hello".into(), images: vec![], mode: JoinMode::Join };
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
mod calls;
mod chain;
mod copying;
mod cursor;
mod erasing;
mod error;
mod export;
mod home;
mod import;
mod inbox;
mod journal;
mod lease;
mod lifetime;
mod names;
mod search;
mod sqlite;
mod stems;
mod verify;

pub use append::{Append, Blob, Expected, Head};
pub use calls::{Call, Caller, Callers};
pub use copying::{Copied, begin_with_copies};
pub use cursor::{RecordCursor, SessionCursor, all_sessions, record_at, records};
pub use erasing::erase_record;
pub use error::{Error, Result};
pub use export::{Exported, Imported, export_session, import_session, verify_export};
pub use home::{Home, ReplacingFile};
pub use import::{
    Author, ImportMark, ImportOptions, SessionPlace, first_import_key, import_mark, newest_import,
    session_place,
};
pub use inbox::{accept, check_size, put};
pub use journal::{Journal, Page, Ring, Rings, SessionEntry, Size};
pub use lease::{Holder, Lease};
pub use lifetime::{
    Deleted, Times, delete_session, finish_deletions, pin_session, rename_session, restore_session,
    session_times, trash_session, unpin_session,
};
pub use names::{name_session, resolve};
pub use search::{Frequencies, Hit, Match, Search, is_unspaced};
pub use sqlite::{Restored, Salvaged, SqliteJournal, SqliteOptions, restore, salvage, verify_home};
pub use stems::stems;
pub use verify::{Damage, Report};
