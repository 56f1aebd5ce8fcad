//! The default engine: one SQLite file (WAL, `synchronous=FULL`), shared by many processes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `schema` | the tables and their formats |
//! | `engine` | `SqliteJournal`, which implements the trait with the modules below |
//! | `rows` | reads: from tables to records |
//! | `writer` | one thread that commits the appends of all sessions together (group commit) |
//! | `append`, `lease`, `erase` | what happens inside such a commit |
//! | `readers` | a pool of connections that never wait for the writer, and the thread on which they read |
//! | `open_files` | which journals this process has open, so that it loses none of its file locks |
//! | `wake_socket` | the socket on which other processes wake this one |
//! | `search_index` | the full-text index, in a file of its own; rebuilt when missing, damaged or of another version |
//! | `known_heads` | the last known heads, which show that a tail was lost |
//! | `verify`, `backup` | verify; backup and restore |
//! | `rebuild` | a new journal from the records of a damaged one; only the crate `longhaul-salvage` uses it |

mod append;
mod backup;
mod engine;
mod erase;
mod known_heads;
mod lease;
mod open_files;
mod readers;
mod rebuild;
mod rows;
mod schema;
mod search_index;
mod verify;
pub mod wake_socket;
mod writer;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use backup::{RestoreReport, restore};
pub use engine::{ReadThread, SqliteJournal, SqliteOptions};
pub use rebuild::JournalRebuild;
pub use rows::{ScannedRow, StreamNumber, check_page, decode_gone, encode_gone};
pub use search_index::{ErasedPlace, IndexSource, SearchIndex};
pub use verify::verify_home;

use crate::home::{LockKind, can_write_next_to, lock_holder, with_suffix};
use crate::{Error, Result};

/// How long a statement waits for a lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that may write.
fn connect(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    open(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open(path: &Path, vfs: Option<&str>, access: OpenFlags) -> Result<Connection> {
    open_address(path, path, vfs, access)
}

/// Opens an address, which may be an SQLite URI. Errors name the plain path.
fn open_address(address: &Path, path: &Path, vfs: Option<&str>, access: OpenFlags) -> Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(address, flags, vfs),
        None => Connection::open_with_flags(address, flags),
    };
    let prepare = |db: Connection| {
        db.busy_timeout(BUSY_TIMEOUT)?;
        // A file from elsewhere may have triggers and views. A journal has none.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        // SQLite overwrites deleted bytes (J10), and detects a damaged cell when it reads it (J4).
        db.execute_batch(
            "PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;",
        )?;
        // A commit reaches the disk before it returns (J1). On macOS that needs a call of its own.
        db.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
        )?;
        Ok(db)
    };
    opened.and_then(prepare).map_err(|error| failure(path, &error))
}

/// The process that prevents others from writing. The log is locked through the shared-memory file.
fn lock_owner(path: &Path) -> String {
    let shared_memory = with_suffix(path, "-shm");
    lock_holder(&shared_memory, LockKind::Exclusive)
        .or_else(|| lock_holder(path, LockKind::Exclusive))
        .unwrap_or_else(|| "another process".to_owned())
}

/// Turns an error of SQLite into one that a caller can act on.
fn failure(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.to_owned();
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::DiskFull { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path, reason },
        // SQLite reports this for many reasons. Some are temporary, such as too many open files.
        Some(ErrorCode::CannotOpen) if !can_write_next_to(&path) => Error::ReadOnly { path, reason },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let by = lock_owner(&path);
            Error::Locked { path, by }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt { path, reason },
        _ => Error::Io { path, reason },
    }
}
