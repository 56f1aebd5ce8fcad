//! Vectors of an embedding model for what was said in sessions, by the slots of the records.
//!
//! They are a cache as the rest of the index is. Vectors of another model, or of another length, are dropped, and the records count as
//! not embedded. A kill between a call of the model and the store costs that call once more.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::chunk::{decode_chunk, decode_weights};
use super::posting_list::Slot;
use super::searched_records::{SearchedRecords, SearchedStream};
use super::{IndexResult, IndexSource, begin_change, cursor};
use crate::scoring::RecordFlags;
use crate::search::SearchableText;
use crate::sqlite::rows::ScannedRow;
use crate::vectors::{quantize, similarity};
use crate::{Page, RecordVector, UnembeddedRecord, VectorSlot};

/// The most characters of a record that are embedded. Small models take no more.
const MAX_EMBEDDED_CHARS: usize = 2_000;

/// The records of an indexed stream without a vector of this model, at most `limit`. Tool output gets none: there is much of it, and
/// it can be about anything.
pub(super) fn unembedded(
    db: &Connection,
    journal: &dyn IndexSource,
    stream: &SearchedStream,
    model: &str,
    limit: usize,
) -> IndexResult<Vec<UnembeddedRecord>> {
    use_model(db, model, None)?;
    let Some(cursor) = cursor::cursor(db, &stream.1)? else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(
        "SELECT chunk, embedded, weights, places FROM chunks WHERE stream = ?1 ORDER BY number",
    )?;
    let mut chunks = statement.query([cursor.id.0])?;
    let mut found = Vec::new();
    while let Some(row) = chunks.next()? {
        let chunk: i64 = row.get(0)?;
        let done = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        let records = decode_chunk(blob(row, 2)?, blob(row, 3)?);
        for (place, record) in records.iter().enumerate().skip(done) {
            if found.len() == limit {
                return Ok(found);
            }
            if record.flags.has(RecordFlags::SPEECH)
                && let Some(text) = text_of(journal, stream, record.seq)
            {
                found.push(UnembeddedRecord { slot: VectorSlot { chunk, place }, text });
            }
        }
    }
    Ok(found)
}

fn text_of(journal: &dyn IndexSource, (number, name): &SearchedStream, seq: u64) -> Option<String> {
    let page = journal.page((*number, name), seq, Page { records: 1, bytes: 0 }).ok()?;
    let Some(ScannedRow::Record(record)) = page.first() else { return None };
    let text = SearchableText::from_record(record)?.text;
    Some(text.chars().take(MAX_EMBEDDED_CHARS).collect::<String>()).filter(|text| !text.trim().is_empty())
}

/// Stores vectors. Those of records that were erased meanwhile are left out, and a record with an empty one needs none any more.
pub(super) fn put_vectors(db: &Connection, model: &str, vectors: &[RecordVector]) -> IndexResult<()> {
    let mut lengths = vectors.iter().map(|record| record.vector.len());
    let dimension = lengths.find(|length| *length > 0);
    if use_model(db, model, dimension)? == VectorSpace::Changed {
        return Ok(());
    }
    let change = begin_change(db)?;
    for RecordVector { slot: VectorSlot { chunk, place }, vector } in vectors {
        let weights = |row: &Row<'_>| Ok(decode_weights(blob(row, 0)?).nth(*place));
        let known = change
            .prepare_cached("SELECT weights FROM chunks WHERE chunk = ?1")?
            .query_row([chunk], weights)
            .optional()?;
        let Some((flags, _)) = known.flatten() else { continue };
        let place = i64::try_from(*place).unwrap_or(i64::MAX);
        if let Some(bytes) = quantize(vector)
            && Some(vector.len()) == dimension
            && !flags.has(RecordFlags::ERASED)
        {
            change
                .prepare_cached("INSERT OR REPLACE INTO vectors (chunk, place, vector) VALUES (?1, ?2, ?3)")?
                .execute(params![chunk, place, bytes])?;
        }
        change
            .prepare_cached("UPDATE chunks SET embedded = max(embedded, ?2 + 1) WHERE chunk = ?1")?
            .execute(params![chunk, place])?;
    }
    Ok(change.commit()?)
}

/// The nearest records with how near they are, the nearest first.
pub(super) fn nearest(
    db: &Connection,
    searched: &SearchedRecords<'_>,
    model: &str,
    vector: &[f32],
    limit: usize,
) -> IndexResult<Vec<(usize, f32)>> {
    let space = stored_space(db)?;
    let Some(wanted) = quantize(vector).filter(|_| space == Some((model.to_owned(), vector.len()))) else {
        return Ok(Vec::new());
    };
    let mut near: Vec<(usize, f32)> = Vec::new();
    let mut statement = db.prepare_cached("SELECT place, vector FROM vectors WHERE chunk = ?1")?;
    for (chunk, start) in searched.chunk_starts()? {
        let mut rows = statement.query([chunk])?;
        while let Some(row) = rows.next()? {
            let place = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
            let record = start.saturating_add(place);
            if record < searched.count() {
                near.push((record, similarity(&wanted, blob(row, 1)?)));
            }
        }
    }
    near.sort_unstable_by(|(one, a), (other, b)| b.total_cmp(a).then(other.cmp(one)));
    near.truncate(limit);
    Ok(near)
}

/// Takes the vector of a record out.
pub(super) fn delete_vector(change: &Transaction<'_>, slot: Slot) -> rusqlite::Result<()> {
    let place = i64::try_from(slot.place).unwrap_or(i64::MAX);
    change.execute("DELETE FROM vectors WHERE chunk = ?1 AND place = ?2", [slot.chunk, place])?;
    Ok(())
}

/// Whether the vectors in the file are of the wanted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VectorSpace {
    Same,
    /// They were of another one, and are gone.
    Changed,
}

/// Drops the vectors if they are of another model, or have another length.
fn use_model(db: &Connection, model: &str, dimension: Option<usize>) -> IndexResult<VectorSpace> {
    let length = dimension.unwrap_or(0);
    let stored = stored_space(db)?;
    let space = match &stored {
        Some((known, stored)) if known != model || (*stored > 0 && length > 0 && *stored != length) => {
            VectorSpace::Changed
        }
        _ => VectorSpace::Same,
    };
    // A length of 0 is not known yet.
    if space == VectorSpace::Same && stored.is_some_and(|(_, stored)| stored > 0 || length == 0) {
        return Ok(space);
    }
    let change = begin_change(db)?;
    if space == VectorSpace::Changed {
        change.execute_batch("DELETE FROM vectors; UPDATE chunks SET embedded = 0")?;
    }
    change.execute_batch("DELETE FROM vector_space")?;
    let length = i64::try_from(length).unwrap_or(0);
    change.execute("INSERT INTO vector_space (model, length) VALUES (?1, ?2)", params![model, length])?;
    change.commit()?;
    Ok(space)
}

fn blob<'row>(row: &'row Row<'_>, column: usize) -> rusqlite::Result<&'row [u8]> {
    Ok(row.get_ref(column)?.as_blob()?)
}

fn stored_space(db: &Connection) -> rusqlite::Result<Option<(String, usize)>> {
    db.prepare_cached("SELECT model, length FROM vector_space")?
        .query_row([], |row| Ok((row.get(0)?, usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0))))
        .optional()
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
