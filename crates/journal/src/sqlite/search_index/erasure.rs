//! Erasing records from the index (J10).
//!
//! A record is taken out of every list of postings that has its slot, so its words need not be known, and a stem that no
//! other record has goes with it, as its vector does. The index marks the records before the journal writes their stubs, takes them out
//! afterwards, rewrites its file, and drops the marks last. A concurrent search can't add them again: it reads the journal under the lock
//! of the index, where the stubs are by then.
//!
//! | killed | in the files | next |
//! | --- | --- | --- |
//! | before the marks | everything | as if nothing happened |
//! | after the marks, before the stubs | everything, and the marks | a search finds the records; a second `erase` erases them |
//! | after the stubs, before the words are out | the words, and the marks | the next search, or a second `erase`, takes out the words of the marked records |
//! | after the words are out | copies of them in unused bytes or in the log, and the marks | the next search rewrites the file; so do the searches after it, while another process that reads keeps the log |
//! | after the file is rewritten | the marks alone | the next search drops them |
//!
//! A stream that is removed goes the same way, with one mark: the removal of its records is the stub.

use longhaul_protocol::{Body, Record, Seq, StreamName};
use rusqlite::{Connection, Transaction, params};

use super::chunk_store::{StoredChunk, chunks_of, save_chunk};
use super::cursor::{cursor, drop_stream};
use super::posting_list::Slot;
use super::postings::RemovedSlots;
use super::vectors::delete_vector;
use super::{IndexError, IndexResult, IndexSource, begin_change};
use crate::Page;
use crate::sqlite::rows::ScannedRow;

/// A record by its stream and place.
pub type ErasedPlace = (StreamName, Seq);

/// The place in a mark that stands for a whole stream.
const WHOLE_STREAM: Seq = 0;

/// All records of a stream.
pub(super) fn whole_stream(stream: &StreamName) -> ErasedPlace {
    (stream.clone(), WHOLE_STREAM)
}

/// Marks records that are going to be erased.
pub(super) fn mark(db: &Connection, places: &[ErasedPlace]) -> IndexResult<()> {
    let change = begin_change(db)?;
    for (stream, seq) in places {
        insert_mark(&change, stream, *seq)?;
    }
    change.commit()?;
    Ok(())
}

/// Drops the marks of records whose words are in no byte of the file.
pub(super) fn unmark(db: &Connection, places: &[ErasedPlace]) -> IndexResult<()> {
    let change = begin_change(db)?;
    for (stream, seq) in places {
        change
            .prepare_cached("DELETE FROM erasing WHERE stream = ?1 AND seq = ?2")?
            .execute(params![stream.as_str(), sql_seq(*seq)])?;
    }
    change.commit()?;
    Ok(())
}

/// Takes records out of the index. Their marks stay until the file is rewritten.
pub(super) fn erase_records(db: &Connection, places: &[ErasedPlace]) -> IndexResult<()> {
    let change = begin_change(db)?;
    let mut removed = RemovedSlots::default();
    for (stream, seq) in places {
        if *seq == WHOLE_STREAM {
            drop_stream(&change, stream)?;
        } else if let Some((mut stored, place)) = indexed_place(&change, stream, *seq)? {
            let slot = Slot { chunk: stored.chunk, place };
            removed.insert(slot);
            delete_vector(&change, slot)?;
            stored.records[place] = stored.records[place].erased();
            save_chunk(&change, &stored)?;
        }
    }
    removed.remove(&change)?;
    change.commit()?;
    Ok(())
}

/// The marked records that the journal has erased already, and the marked streams: their erasure was cut short.
pub(super) fn interrupted_erasures(
    db: &Connection,
    journal: &dyn IndexSource,
) -> IndexResult<Vec<ErasedPlace>> {
    let marks: Vec<(String, i64)> = db
        .prepare_cached("SELECT stream, seq FROM erasing")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut interrupted = Vec::new();
    for (stream, seq) in marks {
        let Ok(stream) = stream.parse::<StreamName>() else { continue };
        let seq = seq.unsigned_abs();
        // What the journal still has may be about to be erased by another process: the mark stays.
        let is_gone = match seq {
            WHOLE_STREAM => journal.head(&stream).map_err(IndexError::Journal)?.is_none(),
            seq => {
                record_at(journal, &stream, seq)?.is_none_or(|record| matches!(record.body, Body::Gone(_)))
            }
        };
        if is_gone {
            interrupted.push((stream, seq));
        }
    }
    Ok(interrupted)
}

/// Takes a whole stream out. Returns what has to be unmarked once the file is rewritten; `None` if the index had nothing of it.
pub(super) fn erase_stream(db: &Connection, stream: &StreamName) -> IndexResult<Option<ErasedPlace>> {
    let change = begin_change(db)?;
    let is_marked = change
        .prepare_cached("SELECT 1 FROM erasing WHERE stream = ?1 AND seq = ?2")?
        .exists(params![stream.as_str(), sql_seq(WHOLE_STREAM)])?;
    let was_there = drop_stream(&change, stream)?;
    if was_there {
        insert_mark(&change, stream, WHOLE_STREAM)?;
    }
    change.commit()?;
    Ok((was_there || is_marked).then(|| whole_stream(stream)))
}

/// The chunk of an indexed record, and its place in there.
fn indexed_place(
    change: &Transaction<'_>,
    stream: &StreamName,
    seq: Seq,
) -> IndexResult<Option<(StoredChunk, usize)>> {
    let Some(cursor) = cursor(change, stream)? else { return Ok(None) };
    for stored in chunks_of(change, cursor.id)? {
        if let Some(place) = stored.records.iter().position(|record| record.seq == seq) {
            return Ok(Some((stored, place)));
        }
    }
    Ok(None)
}

fn insert_mark(change: &Transaction<'_>, stream: &StreamName, seq: Seq) -> IndexResult<()> {
    change
        .prepare_cached("INSERT OR IGNORE INTO erasing (stream, seq) VALUES (?1, ?2)")?
        .execute(params![stream.as_str(), sql_seq(seq)])?;
    Ok(())
}

fn record_at(journal: &dyn IndexSource, stream: &StreamName, seq: Seq) -> IndexResult<Option<Record>> {
    let Some((number, _)) = journal.head(stream).map_err(IndexError::Journal)? else {
        return Ok(None);
    };
    let one =
        journal.page((number, stream), seq, Page { records: 1, bytes: 0 }).map_err(IndexError::Journal)?;
    Ok(one.into_iter().find_map(|found| match found {
        ScannedRow::Record(record) if record.seq == seq => Some(record),
        _ => None,
    }))
}

fn sql_seq(seq: Seq) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
