//! A backup is the file of the default engine: one snapshot of the database as a `journal.db`. `longhaul restore` puts it into a
//! home, and `longhaul journal copy` into a database.

use std::path::Path;

use longhaul_journal::engine::{JournalRebuild, ScannedRow};
use longhaul_journal::{Error, Result, VerifyReport};

use crate::snapshot::Snapshot;

/// Writes the journal to a new file, and verifies the file.
pub(crate) fn write_backup(snapshot: &Snapshot, file: &Path) -> Result<VerifyReport> {
    let mut copy = JournalRebuild::begin_copy(file)?;
    for stream in snapshot.streams()? {
        let Some(name) = &stream.name else { continue };
        copy.add_stream(name)?;
        snapshot.scan(stream.number, name, |row| match row {
            ScannedRow::Record(record) => copy.add_record(&record),
            ScannedRow::Unreadable(seq, reason) => {
                let reason = reason.to_owned();
                Err(Error::Damaged { stream: name.clone(), seq, reason })
            }
        })?;
    }
    snapshot.scan_blobs(|hash, bytes| hash.map_or(Ok(()), |hash| copy.add_blob(hash, bytes)))?;
    let (report, lost) = copy.finish(&[])?;
    Ok(VerifyReport { damage: report.damage.into_iter().chain(lost).collect(), ..report })
}
