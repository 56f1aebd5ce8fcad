//! Erasing words from the index (J10).
//!
//! An FTS5 table without content takes no `DELETE`. Its `'delete'` command needs the words that were indexed, and they
//! are known only while the journal has the body. So the index marks the records first, keeps their words in memory
//! while the journal writes the stubs, and then takes the words out. A concurrent search can't add them again: it reads
//! the journal under the lock of the index, where the stubs are by then.
//!
//! | killed | in the files | next |
//! | --- | --- | --- |
//! | before the marks | everything | as if nothing happened |
//! | after the marks, before the stubs | everything, and the marks | a search finds the records; a second `erase` erases them |
//! | after the stubs, before the words are out | the words, and the marks | the next search, or a second `erase`, finds marks whose words are unknown, and clears the whole index |
//! | after the words are out | copies of them in unused bytes | a second `erase` rewrites the file |
//!
//! A stream that is removed goes the same way: its words are taken out first, while the journal has them. If a
//! concurrent search indexes the stream again before it is removed, the whole index is cleared.

use longhaul_protocol::{Body, Record, Seq, StreamName};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::chunk::CHUNK_RECORDS;
use super::cursor::{cursor, drop_cursor, load_chunk, save_chunk};
use super::update::Words;
use super::{IndexError, IndexResult};
use crate::Page;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};

/// A record that is being erased, with its words.
pub(crate) struct WordsToErase {
    stream: StreamName,
    seq: Seq,
    /// `None` if its body is gone already.
    stems: Option<String>,
}

impl WordsToErase {
    pub(super) fn read(journal: &Connection, stream: &StreamName, seq: Seq) -> IndexResult<Self> {
        let record = record_at(journal, stream, seq)?.filter(|record| matches!(record.body, Body::Here(_)));
        let stems =
            record.map(|record| Words::of(journal, &record).map_or_else(String::new, |words| words.stems));
        Ok(Self { stream: stream.clone(), seq, stems })
    }
}

/// Marks records whose words are to be erased.
pub(super) fn mark(db: &mut Connection, places: &[WordsToErase]) -> IndexResult<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for WordsToErase { stream, seq, .. } in places {
        change
            .prepare_cached("INSERT OR IGNORE INTO erasing (stream, seq) VALUES (?1, ?2)")?
            .execute(params![stream.as_str(), sql_seq(*seq)])?;
    }
    change.commit()?;
    Ok(())
}

/// Whether the words of all records are known, so that they could be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Erased {
    Completely,
    /// The index still has words that are unknown. It has to be cleared.
    WordsUnknown,
}

/// Takes the words of records out of the index, and the marks with them.
pub(super) fn erase_words(db: &mut Connection, places: &[WordsToErase]) -> IndexResult<Erased> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for WordsToErase { stream, seq, stems } in places {
        if let Some((id, ordinal)) = indexed_place(&change, stream, *seq)? {
            let Some(stems) = stems else { return Ok(Erased::WordsUnknown) };
            delete_posting(&change, id, ordinal, stems)?;
            let mut chunk = load_chunk(&change, id, ordinal)?;
            let record = &mut chunk[ordinal % CHUNK_RECORDS];
            *record = record.erased();
            save_chunk(&change, id, ordinal / CHUNK_RECORDS * CHUNK_RECORDS, &chunk)?;
        }
        drop_mark(&change, stream, *seq)?;
    }
    merge_segments(&change)?;
    change.commit()?;
    Ok(Erased::Completely)
}

/// Whether an erasure was cut short after its stubs were written: the index has words whose record is erased.
pub(super) fn has_unknown_words(db: &mut Connection, journal: &Connection) -> IndexResult<bool> {
    let marks: Vec<(String, i64)> = db
        .prepare_cached("SELECT stream, seq FROM erasing")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if marks.is_empty() {
        return Ok(false);
    }
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (stream, seq) in marks {
        let Ok(stream) = stream.parse::<StreamName>() else { continue };
        let seq = seq.unsigned_abs();
        let record = record_at(journal, &stream, seq)?;
        let is_gone = record.is_none_or(|record| matches!(record.body, Body::Gone(_)));
        if is_gone && indexed_place(&change, &stream, seq)?.is_some() {
            return Ok(true);
        }
        if is_gone {
            drop_mark(&change, &stream, seq)?;
        }
        // With its body, the erasure may be under way in another process: the mark stays.
    }
    change.commit()?;
    Ok(false)
}

/// Takes the words of a whole stream out, while the journal has its records.
pub(super) fn erase_stream(
    db: &mut Connection,
    journal: &Connection,
    stream: &StreamName,
) -> IndexResult<()> {
    /// Records in memory at once.
    const PAGE: Page = Page { records: 500, bytes: 4 << 20 };
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(cursor) = cursor(&change, stream)? else { return Ok(()) };
    let number = rows::stream_number(journal, stream).map_err(IndexError::Journal)?;
    let Some(number) = number else { return Ok(()) };
    let (mut ordinal, mut next) = (0, 1);
    while ordinal < cursor.records {
        let page = rows::page(journal, (number, stream), next, PAGE).map_err(IndexError::Journal)?;
        let Some(last) = page.last() else { break };
        next = match last {
            ScannedRow::Record(record) => record.seq + 1,
            ScannedRow::Unreadable(seq, _) => seq + 1,
        };
        for found in page {
            let ScannedRow::Record(record) = found else { continue };
            if let Some(ordinal) = ordinal_of(&change, cursor.id, &mut ordinal, record.seq, cursor.records)?
                && let Some(words) = Words::of(journal, &record)
            {
                delete_posting(&change, cursor.id, ordinal, &words.stems)?;
            }
        }
    }
    drop_cursor(&change, stream)?;
    merge_segments(&change)?;
    change.commit()?;
    Ok(())
}

/// The ordinal of a record, searched from `from` on, which moves on to it.
fn ordinal_of(
    db: &Connection,
    id: StreamNumber,
    from: &mut usize,
    seq: Seq,
    records: usize,
) -> IndexResult<Option<usize>> {
    while *from < records {
        let chunk = load_chunk(db, id, *from)?;
        let Some(record) = chunk.get(*from % CHUNK_RECORDS) else { return Ok(None) };
        match record.seq.cmp(&seq) {
            std::cmp::Ordering::Less => *from += 1,
            std::cmp::Ordering::Equal => {
                *from += 1;
                return Ok(Some(*from - 1));
            }
            std::cmp::Ordering::Greater => return Ok(None),
        }
    }
    Ok(None)
}

/// The place of a record whose words the index has.
fn indexed_place(
    change: &Transaction<'_>,
    stream: &StreamName,
    seq: Seq,
) -> IndexResult<Option<(StreamNumber, usize)>> {
    let Some(cursor) = cursor(change, stream)? else { return Ok(None) };
    for first in (0..cursor.records).step_by(CHUNK_RECORDS) {
        let chunk = load_chunk(change, cursor.id, first)?;
        let is_wanted = |record: &super::chunk::IndexedRecord| record.seq == seq;
        if let Some(place) = chunk.iter().position(is_wanted) {
            let is_erased = chunk[place] == chunk[place].erased();
            return Ok((!is_erased).then_some((cursor.id, first + place)));
        }
    }
    Ok(None)
}

fn delete_posting(
    change: &Transaction<'_>,
    id: StreamNumber,
    ordinal: usize,
    stems: &str,
) -> IndexResult<()> {
    change
        .prepare_cached("INSERT INTO postings (postings, rowid, stems) VALUES ('delete', ?1, ?2)")?
        .execute(params![id.row_id(ordinal as u64), stems])?;
    Ok(())
}

/// Merges all segments of the index into one. Until then they keep the deleted words.
pub(super) fn merge_segments(db: &Connection) -> IndexResult<()> {
    db.execute("INSERT INTO postings (postings) VALUES ('optimize')", [])?;
    Ok(())
}

fn drop_mark(change: &Transaction<'_>, stream: &StreamName, seq: Seq) -> IndexResult<()> {
    change
        .prepare_cached("DELETE FROM erasing WHERE stream = ?1 AND seq = ?2")?
        .execute(params![stream.as_str(), sql_seq(seq)])?;
    Ok(())
}

fn record_at(journal: &Connection, stream: &StreamName, seq: Seq) -> IndexResult<Option<Record>> {
    let Some(number) = rows::stream_number(journal, stream).map_err(IndexError::Journal)? else {
        return Ok(None);
    };
    let one = rows::page(journal, (number, stream), seq, Page { records: 1, bytes: 0 })
        .map_err(IndexError::Journal)?;
    Ok(one.into_iter().find_map(|found| match found {
        ScannedRow::Record(record) if record.seq == seq => Some(record),
        _ => None,
    }))
}

fn sql_seq(seq: Seq) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
