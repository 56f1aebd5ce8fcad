//! The default engine: one SQLite file (WAL, `synchronous=FULL`), shared by many processes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `schema` | the tables and their formats |
//! | `rows` | reading: from tables to records |
//! | `writer` | one thread that commits the appends of all sessions together |
//! | `append`, `lease` | what happens inside such a commit |
//! | `readers` | a small pool of connections that never wait for the writer |
//! | `presence` | which journals this process has open, so that none of its locks is lost |
//! | `doorbell` | the socket on which other processes ring this one |
//! | `index` | the search index, in a file of its own |
//! | `heads` | the last known heads, so that a lost tail is said |
//! | `check`, `backup` | verify; backup and restore |
//! | `carve`, `finds`, `mend` | salvage; what a damaged file still holds; making a whole journal of that |
//! | `pages` | SQLite's file format, read without trusting it |

mod append;
mod backup;
mod carve;
mod check;
mod doorbell;
mod engine;
mod erase;
mod finds;
mod heads;
mod index;
mod lease;
mod mend;
mod pages;
mod presence;
mod readers;
mod rows;
mod schema;
mod writer;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use backup::{Restored, restore};
pub use carve::{Salvaged, salvage};
pub use check::verify_home;
pub use engine::{SqliteJournal, SqliteOptions};

use crate::home::{LockKind, beside, can_write_beside, lock_holder};
use crate::{Error, Result};

/// How long a statement waits for a lock of another process before it gives up.
const BUSY: Duration = Duration::from_secs(5);

/// A connection that may write.
fn connect(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    open(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open(path: &Path, vfs: Option<&str>, access: OpenFlags) -> Result<Connection> {
    open_address(path, path, vfs, access)
}

/// Opens what SQLite finds at an address; errors name the path that people know.
fn open_address(address: &Path, path: &Path, vfs: Option<&str>, access: OpenFlags) -> Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(address, flags, vfs),
        None => Connection::open_with_flags(address, flags),
    };
    let prepare = |db: Connection| {
        db.busy_timeout(BUSY)?;
        // A file from elsewhere may have brought some; none of ours has any.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        // Bytes that were deleted are overwritten (J10); a damaged cell is noticed when it is read (J4).
        db.execute_batch(
            "PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;",
        )?;
        // Commits reach the disk before they return (J1); on macOS that takes its own call.
        db.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;",
        )?;
        Ok(db)
    };
    opened.and_then(prepare).map_err(|error| failure(path, &error))
}

/// Whoever keeps others from writing: the log's lock is on the file of shared memory.
fn who_locks(path: &Path) -> String {
    let shared_memory = beside(path, "-shm");
    lock_holder(&shared_memory, LockKind::Exclusive)
        .or_else(|| lock_holder(path, LockKind::Exclusive))
        .unwrap_or_else(|| "another process".to_owned())
}

/// What SQLite said, as something that a caller can act on.
fn failure(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.to_owned();
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::DiskFull { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path, reason },
        // It says so for many reasons; too many open files, for example, is not one that lasts.
        Some(ErrorCode::CannotOpen) if !can_write_beside(&path) => Error::ReadOnly { path, reason },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let by = who_locks(&path);
            Error::Locked { path, by }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt { path, reason },
        _ => Error::Io { path, reason },
    }
}
