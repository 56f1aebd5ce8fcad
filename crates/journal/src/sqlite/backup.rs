//! Backup and restore.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use longhaul_protocol::StreamName;
use rusqlite::Connection;

use crate::home::{Home, PartialFile, create_new, io_error, path_str, publish, sync_folder_of, with_suffix};
use crate::sqlite::known_heads::KnownHeads;
use crate::sqlite::open_files::OpenFile;
use crate::sqlite::readers::{connect_at_rest, connect_to_read, is_at_rest};
use crate::sqlite::schema::{self, FORMAT, FileKind};
use crate::sqlite::{connect, failure, known_heads, rows, verify, writer};
use crate::{Error, Head, Result, VerifyReport};

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// The contents of the restored journal.
    pub report: VerifyReport,
    /// Where the replaced journal is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// Writes a consistent copy of the journal to a new file, and verifies the copy.
pub(crate) fn backup(db: &Connection, file: &Path) -> Result<VerifyReport> {
    if file.exists() {
        return Err(Error::Exists { path: file.to_owned() });
    }
    let partial = PartialFile::next_to(file);
    copy_snapshot(db, partial.path())?;
    let report = verify::verify_connection(&connect_at_rest(partial.path(), None)?, None);
    publish(partial.path(), file)?;
    Ok(report)
}

/// Copies one snapshot of a journal to a new file.
fn copy_snapshot(db: &Connection, file: &Path) -> Result<()> {
    drop(create_new(file)?);
    db.execute("VACUUM INTO ?1", [path_str(file)?]).map_err(|error| failure(file, &error))?;
    File::open(file).and_then(|file| file.sync_all()).map_err(|error| io_error(file, &error))
}

/// Replaces a home's journal by a backup, after verifying the backup. The old journal is kept in the trash.
pub fn restore(home: &Home, file: &Path) -> Result<RestoreReport> {
    let bad = |reason: String| Error::BadFile { path: file.to_owned(), reason };
    if OpenFile::is_open(file) {
        return Err(bad("in use by this process".to_owned()));
    }
    let kind = schema::file_kind(file).map_err(|error| match error {
        Error::Foreign { reason, .. } => bad(format!("not a longhaul journal: {reason}")),
        other => other,
    })?;
    match kind {
        FileKind::Missing => return Err(bad("no such file".to_owned())),
        FileKind::Journal { format } if format > FORMAT => {
            return Err(Error::Newer { path: file.to_owned(), format, known: FORMAT });
        }
        FileKind::Journal { .. } => {}
    }
    // Opened as immutable if possible, so that SQLite creates no other file beside it.
    let source = if is_at_rest(file) { connect_at_rest(file, None) } else { connect_to_read(file, None) }?;
    let report = verify::verify_connection(&source, None);
    if let Some(damage) = report.damage.first() {
        return Err(bad(format!("the backup is damaged: {damage}")));
    }
    let home_lock = home.lock_exclusive("restoring a backup")?;
    refuse_if_locked(&home.journal_file())?;
    let partial = PartialFile::next_to(&home.journal_file());
    copy_snapshot(&source, partial.path())?;
    set_write_ahead(partial.path())?;
    // From here on the restore takes effect: the next process that opens the home finishes it.
    let restoring = restoring_file(home);
    let decide = || fs::rename(partial.path(), &restoring).and_then(|()| sync_folder_of(&restoring));
    decide().map_err(|error| io_error(&restoring, &error))?;
    let kept = replace(home).map_err(|error| Error::Unfinished { reason: error.to_string() })?;
    drop(home_lock);
    Ok(RestoreReport { report, kept })
}

/// Refuses if a program that does not know the home's lock is about to write the file. A journal that can't be opened
/// is no reason to refuse, because it may be why the user restores a backup.
fn refuse_if_locked(journal: &Path) -> Result<()> {
    let try_lock = |db: Connection| {
        db.execute_batch("BEGIN IMMEDIATE; ROLLBACK;").map_err(|error| failure(journal, &error))
    };
    match connect(journal, None).and_then(try_lock) {
        Err(error @ Error::Locked { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Finishes a restore that a crash interrupted.
pub(crate) fn finish_restore(home: &Home) -> Result<()> {
    if restoring_file(home).exists() {
        let _home_lock = home.lock_exclusive("finishing a restore")?;
        if restoring_file(home).exists() {
            replace(home)?;
        }
    }
    Ok(())
}

pub(crate) fn restoring_file(home: &Home) -> PathBuf {
    home.folder().join("journal.db.restoring")
}

fn set_write_ahead(path: &Path) -> Result<()> {
    let db = connect(path, None)?;
    db.pragma_update(None, "journal_mode", "wal").map_err(|error| failure(path, &error))?;
    db.close().map_err(|(_, error)| failure(path, &error))
}

/// Moves the restored file into place. After a crash at any step, the next run repeats all steps, because
/// `journal.db.restoring` stays until the last one.
fn replace(home: &Home) -> Result<Option<PathBuf>> {
    let (path, restoring) = (home.journal_file(), restoring_file(home));
    let said = |error: std::io::Error| io_error(&path, &error);
    let kept = move_old_to_trash(home).map_err(said)?;
    known_heads::write(home, &KnownHeads::new(heads_in(&restoring)?))?;
    for cached in ["search.db", "search.db-wal", "search.db-shm"] {
        let _ = fs::remove_file(home.folder().join("cache").join(cached));
    }
    fs::rename(&restoring, &path).and_then(|()| sync_folder_of(&path)).map_err(said)?;
    Ok(kept)
}

/// Moves the old journal and its log to the trash, even if only the log is left. Otherwise SQLite would apply it to
/// the new file.
fn move_old_to_trash(home: &Home) -> std::io::Result<Option<PathBuf>> {
    let path = home.journal_file();
    let log = with_suffix(&path, "-wal");
    if !path.exists() && !log.exists() {
        return Ok(None);
    }
    let trash = home.subfolder("trash").map_err(std::io::Error::other)?;
    let kept = trash.join(format!("journal-{}.db", writer::now().0));
    if path.exists() {
        fs::hard_link(&path, &kept)?;
    }
    if log.exists() {
        fs::rename(&log, with_suffix(&kept, "-wal"))?;
    }
    let _ = fs::remove_file(with_suffix(&path, "-shm"));
    sync_folder_of(&kept)?;
    sync_folder_of(&path)?;
    Ok(Some(kept))
}

fn heads_in(path: &Path) -> Result<BTreeMap<StreamName, Head>> {
    let db = connect_at_rest(path, None)?;
    let read = || -> rusqlite::Result<BTreeMap<StreamName, Head>> {
        let streams = rows::streams(&db)?.into_iter();
        streams
            .map(|(number, name)| Ok((name, rows::head(&db, number)?)))
            .filter(|head| !matches!(head, Ok((_, Head::EMPTY))))
            .collect()
    };
    read().map_err(|error| failure(path, &error))
}
