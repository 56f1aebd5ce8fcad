//! One append inside a commit: checks, hashes, inserts.

use longhaul_protocol::{At, Body, Hash, NewRecord, Record, StreamName, blob_refs};
use rusqlite::{Connection, params};

use crate::chain::{ChainCheck, ChainLink};
use crate::names::NameChange;
use crate::prepared_append::PreparedAppend;
use crate::sqlite::lease;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::writer::Commit;
use crate::{Append, Blob, Error, Expected, Head, Lease, Result};

impl PreparedAppend {
    /// Checks the lease, the expected head, keys and blobs, then inserts. Returns the records as committed.
    pub(crate) fn perform(self, commit: &mut Commit<'_>) -> Result<Vec<Record>> {
        let Append { stream, expected, lease, records, blobs } = self.append;
        let number = commit.stream(&stream)?;
        lease::check_lease(commit, number, &stream, lease.as_ref())?;
        let mut head = commit.sql(rows::head(commit.db, number))?;
        if let Expected::Head(seq) = expected
            && seq != head.seq
        {
            return Err(Error::Conflict { stream, head });
        }
        let given = insert_blobs(commit, blobs)?;
        let mut placed = Vec::with_capacity(records.len());
        for (NewRecord { kind, body, key }, (body_hash, refs)) in records.into_iter().zip(self.bodies) {
            if let Some(key) = key
                && let Some(seq) = commit.sql(rows::seq_with_key(commit.db, number, key))?
            {
                return Err(Error::Duplicate { stream, seq });
            }
            let (seq, at, prev) = (head.seq + 1, commit.now, head.hash);
            let hash = ChainLink { stream: &stream, seq, at, kind: &kind, key, prev, body_hash }.hash();
            head = Head { seq, hash };
            let record =
                Record { stream: stream.clone(), seq, at, kind, key, body: Body::Here(body), prev, hash };
            require_blobs(commit, &stream, &refs, &given, has_blob)?;
            insert(commit, number, &record, &refs)?;
            placed.push(record);
        }
        drop_unused(commit, &given)?;
        Ok(placed)
    }
}

/// Inserts records that already have their positions, times and hashes, if they continue their streams.
pub(crate) fn adopt_records(
    commit: &mut Commit<'_>,
    lease: &Lease,
    records: Vec<Record>,
    blobs: Vec<Blob>,
) -> Result<()> {
    lease::renew_lease(commit, lease)?;
    let given = insert_blobs(commit, blobs)?;
    for record in records {
        let number = commit.stream(&record.stream)?;
        if record.stream != lease.stream {
            lease::check_lease(commit, number, &record.stream, None)?;
        }
        let head = commit.sql(rows::head(commit.db, number))?;
        let mut chain = ChainCheck::from(head.seq + 1);
        let follows = chain.follow(&record).is_ok() && record.prev == head.hash;
        if !follows {
            return Err(Error::Conflict { stream: record.stream, head });
        }
        let refs: Vec<Hash> =
            record.text().map(blob_refs).unwrap_or_default().iter().map(|blob| blob.hash).collect();
        require_blobs(commit, &record.stream, &refs, &given, knows_blob)?;
        insert(commit, number, &record, &refs)?;
    }
    drop_unused(commit, &given)
}

fn insert(commit: &mut Commit<'_>, number: StreamNumber, record: &Record, refs: &[Hash]) -> Result<()> {
    let row = number.row_id(record.seq);
    commit.sql(write_record(commit.db, row, record))?;
    for blob in refs {
        commit.sql(write_blob_use(commit.db, *blob, row))?;
    }
    if record.stream == StreamName::names()
        && let Some(change) = NameChange::from_record(record)
    {
        commit.sql(apply_name_change(commit.db, &change))?;
    }
    commit.touched.push(record.stream.clone());
    Ok(())
}

pub(crate) fn write_record(db: &Connection, row: i64, record: &Record) -> rusqlite::Result<usize> {
    let (gone, body) = match &record.body {
        Body::Here(body) => (None, Some(body.get())),
        Body::Gone(gone) => (Some(rows::encode_gone(gone)), None),
    };
    let (At(at), kind, key) = (record.at, &record.kind, record.key.as_ref().map(Hash::as_bytes));
    db.prepare_cached(
        "INSERT INTO records (id, at, kind, key, prev, hash, gone, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![row, at, kind, key, record.prev.as_bytes(), record.hash.as_bytes(), gone, body])
}

/// Records that the record of a row refers to a blob.
pub(crate) fn write_blob_use(db: &Connection, blob: Hash, row: i64) -> rusqlite::Result<usize> {
    db.prepare_cached("INSERT OR IGNORE INTO blob_uses (blob, record) VALUES (?1, ?2)")?
        .execute(params![blob.as_bytes(), row])
}

/// Applies a record of the stream `names` to the tables `sessions` and `pinned`. If a key is taken, its session keeps
/// it.
pub(crate) fn apply_name_change(db: &Connection, change: &NameChange) -> rusqlite::Result<usize> {
    match change {
        NameChange::Bind { key, id } => db
            .prepare_cached("INSERT OR IGNORE INTO sessions (id, key, trashed) VALUES (?1, ?2, 0)")?
            .execute(params![id.to_string(), key]),
        NameChange::Rename { id, key } => db
            .prepare_cached("UPDATE OR IGNORE sessions SET key = ?2 WHERE id = ?1")?
            .execute(params![id.to_string(), key]),
        NameChange::Trash { id } => {
            db.prepare_cached("UPDATE sessions SET trashed = 1 WHERE id = ?1")?.execute([id.to_string()])
        }
        NameChange::Restore { id } => {
            db.prepare_cached("UPDATE sessions SET trashed = 0 WHERE id = ?1")?.execute([id.to_string()])
        }
        NameChange::Pin { id, pinned: true } => db
            .prepare_cached("INSERT OR IGNORE INTO pinned (id) SELECT id FROM sessions WHERE id = ?1")?
            .execute([id.to_string()]),
        NameChange::Pin { id, pinned: false } => {
            db.prepare_cached("DELETE FROM pinned WHERE id = ?1")?.execute([id.to_string()])
        }
        NameChange::Forget { id } => {
            db.prepare_cached("DELETE FROM pinned WHERE id = ?1")?.execute([id.to_string()])?;
            db.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id.to_string()])
        }
        // A file belongs to one machine.
        NameChange::Place { .. } => Ok(0),
    }
}

/// Refuses a record that refers to a blob which is neither in the append nor in the journal.
fn require_blobs(
    commit: &Commit<'_>,
    stream: &StreamName,
    refs: &[Hash],
    given: &[Hash],
    is_there: fn(&Connection, Hash) -> rusqlite::Result<bool>,
) -> Result<()> {
    for hash in refs.iter().filter(|blob| !given.contains(blob)) {
        if !commit.sql(is_there(commit.db, *hash))? {
            return Err(Error::MissingBlob { stream: stream.clone(), hash: *hash });
        }
    }
    Ok(())
}

/// Whether the journal has a blob, or the hash of a blob whose bytes were lost.
fn knows_blob(db: &Connection, hash: Hash) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?.exists([hash.as_bytes()])
}

/// Whether the journal has the bytes of a blob. Of a lost blob it has only the hash.
fn has_blob(db: &Connection, hash: Hash) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1 AND bytes IS NOT NULL")?.exists([hash.as_bytes()])
}

/// Inserts blobs and returns their hashes.
fn insert_blobs(commit: &Commit<'_>, blobs: Vec<Blob>) -> Result<Vec<Hash>> {
    let insert =
        |blob: Blob| commit.sql(write_blob(commit.db, blob.hash, blob.bytes.as_deref())).map(|()| blob.hash);
    blobs.into_iter().map(insert).collect()
}

/// Writes a blob. Without bytes it is written as lost. Bytes replace an earlier loss.
pub(crate) fn write_blob(db: &Connection, hash: Hash, bytes: Option<&[u8]>) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO blobs (hash, bytes) VALUES (?1, ?2)
         ON CONFLICT (hash) DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NULL",
    )?
    .execute(params![hash.as_bytes(), bytes])
    .map(drop)
}

/// Drops blobs of the append that no record refers to.
fn drop_unused(commit: &Commit<'_>, given: &[Hash]) -> Result<()> {
    given.iter().try_for_each(|blob| commit.sql(drop_blob_if_unused(commit.db, *blob)).map(|_| ()))
}

pub(crate) fn drop_blob_if_unused(db: &Connection, blob: Hash) -> rusqlite::Result<usize> {
    db.prepare_cached(
        "DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob = ?1)",
    )?
    .execute([blob.as_bytes()])
}
