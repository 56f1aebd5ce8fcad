//! A consistent copy of everything, and the way back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use longhaul_protocol::StreamName;
use rusqlite::Connection;

use crate::home::{Home, Partial, beside, create_new, io_error, path_text, publish, sync_folder_of};
use crate::sqlite::heads::Noted;
use crate::sqlite::presence::Presence;
use crate::sqlite::readers::{connect_at_rest, connect_to_read, is_at_rest};
use crate::sqlite::schema::{self, FORMAT, FileKind};
use crate::sqlite::{check, connect, failure, heads, rows, writer};
use crate::{Error, Head, Report, Result};

/// What a restore has done.
#[derive(Debug, Clone)]
pub struct Restored {
    /// What is in the journal now.
    pub report: Report,
    /// Where the journal that it replaced is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// Writes a copy of everything to a new file, and reads the copy back.
pub(crate) fn backup(db: &Connection, file: &Path) -> Result<Report> {
    if file.exists() {
        return Err(Error::Exists { path: file.to_owned() });
    }
    let partial = Partial::of(file);
    copy_to(db, partial.path())?;
    let report = check::verify(&connect_at_rest(partial.path(), None)?, None);
    publish(partial.path(), file)?;
    Ok(report)
}

/// Copies a journal as it stands at this moment to a new file.
fn copy_to(db: &Connection, file: &Path) -> Result<()> {
    drop(create_new(file)?);
    db.execute("VACUUM INTO ?1", [path_text(file)?]).map_err(|error| failure(file, &error))?;
    File::open(file).and_then(|file| file.sync_all()).map_err(|error| io_error(file, &error))
}

/// Replaces a home's journal by a backup, after reading all of it. The old one is kept in the trash.
pub fn restore(home: &Home, file: &Path) -> Result<Restored> {
    let bad = |reason: String| Error::BadFile { path: file.to_owned(), reason };
    if Presence::is_open(file) {
        return Err(bad("it is open in this process".to_owned()));
    }
    let kind = schema::file_kind(file).map_err(|error| match error {
        Error::Foreign { reason, .. } => bad(format!("it is not a Longhaul journal ({reason})")),
        other => other,
    })?;
    match kind {
        FileKind::Missing => return Err(bad("there is no such file".to_owned())),
        FileKind::Journal { format } if format > FORMAT => {
            return Err(Error::Newer { path: file.to_owned(), format, known: FORMAT });
        }
        FileKind::Journal { .. } => {}
    }
    // A file at rest is left as it is, with nothing beside it.
    let source = if is_at_rest(file) { connect_at_rest(file, None) } else { connect_to_read(file, None) }?;
    let report = check::verify(&source, None);
    if let Some(damage) = report.damage.first() {
        return Err(bad(format!("the backup is damaged: {damage}")));
    }
    let alone = home.lock_alone("restoring a backup")?;
    refuse_if_locked(&home.journal_file())?;
    let partial = Partial::of(&home.journal_file());
    copy_to(&source, partial.path())?;
    set_write_ahead(partial.path())?;
    // From here on the restore is decided: whoever opens the home finishes it.
    let restoring = restoring_file(home);
    let decide = || fs::rename(partial.path(), &restoring).and_then(|()| sync_folder_of(&restoring));
    decide().map_err(|error| io_error(&restoring, &error))?;
    let kept = replace(home).map_err(|error| Error::Unfinished { reason: error.to_string() })?;
    drop(alone);
    Ok(Restored { report, kept })
}

/// Another program, which knows nothing of the home's lock, may be about to write the file. If it can't even be opened,
/// that is why a backup is restored.
fn refuse_if_locked(journal: &Path) -> Result<()> {
    let try_lock = |db: Connection| {
        db.execute_batch("BEGIN IMMEDIATE; ROLLBACK;").map_err(|error| failure(journal, &error))
    };
    match connect(journal, None).and_then(try_lock) {
        Err(error @ Error::Locked { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Finishes a restore that a crash has cut short.
pub(crate) fn finish_restore(home: &Home) -> Result<()> {
    if restoring_file(home).exists() {
        let _alone = home.lock_alone("finishing a restore")?;
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

/// Puts the restored file into its place. Each step may be the last before a crash: the next run repeats them all,
/// and until the last one `journal.db.restoring` stands.
fn replace(home: &Home) -> Result<Option<PathBuf>> {
    let (path, restoring) = (home.journal_file(), restoring_file(home));
    let said = |error: std::io::Error| io_error(&path, &error);
    let kept = keep_old(home).map_err(said)?;
    heads::write(home, &Noted::of(heads_in(&restoring)?))?;
    for cached in ["search.db", "search.db-wal", "search.db-shm"] {
        let _ = fs::remove_file(home.folder().join("cache").join(cached));
    }
    fs::rename(&restoring, &path).and_then(|()| sync_folder_of(&path)).map_err(said)?;
    Ok(kept)
}

/// Keeps the old journal in the trash, and its log with it, also where only the log is left: left behind, it would be
/// played into the new file.
fn keep_old(home: &Home) -> std::io::Result<Option<PathBuf>> {
    let path = home.journal_file();
    let log = beside(&path, "-wal");
    if !path.exists() && !log.exists() {
        return Ok(None);
    }
    let trash = home.subfolder("trash").map_err(std::io::Error::other)?;
    let kept = trash.join(format!("journal-{}.db", writer::now().0));
    if path.exists() {
        fs::hard_link(&path, &kept)?;
    }
    if log.exists() {
        fs::rename(&log, beside(&kept, "-wal"))?;
    }
    let _ = fs::remove_file(beside(&path, "-shm"));
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
