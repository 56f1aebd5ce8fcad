//! Reads: from tables to records and entries.

use longhaul_journal::engine::{ChainCheck, ScannedRow, StreamNumber, check_page, decode_gone};
use longhaul_journal::{DueSession, Head, Holder, Page, Result, SessionEntry, StreamSize};
use longhaul_protocol::{At, Body, Hash, Record, Seq, SessionId, StreamName};
use serde_json::value::RawValue;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::connection::Parameter;
use crate::database::Database;
use crate::lease::RegisteredProcess;

/// The columns of a record, in the order that [`scanned_row`] expects.
pub(crate) const RECORD_COLUMNS: &str = "seq, at, kind, key, prev, hash, gone, body";

pub(crate) fn sql_seq(seq: Seq) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// A column; `None` if it has another type or is null.
pub(crate) fn column<'row, T: FromSql<'row>>(row: &'row Row, place: usize) -> Option<T> {
    row.try_get::<_, Option<T>>(place).ok().flatten()
}

pub(crate) fn seq_column(row: &Row, place: usize) -> Seq {
    column::<i64>(row, place).map_or(0, i64::unsigned_abs)
}

pub(crate) fn hash_column(row: &Row, place: usize) -> Option<Hash> {
    column::<&[u8]>(row, place).and_then(|bytes| bytes.try_into().ok()).map(Hash::from_bytes)
}

pub(crate) fn head_columns(row: &Row, seq: usize, hash: usize) -> Head {
    Head { seq: seq_column(row, seq), hash: hash_column(row, hash).unwrap_or(Hash::ZERO) }
}

/// A row of `record`, whose hash is not checked yet.
pub(crate) fn scanned_row(row: &Row, stream: &StreamName) -> ScannedRow {
    let seq = seq_column(row, 0);
    let sound = || -> std::result::Result<Record, &'static str> {
        let at = column(row, 1).map(At).ok_or("unreadable time")?;
        let kind = column::<String>(row, 2).ok_or("unreadable kind")?;
        let key = match column::<&[u8]>(row, 3) {
            Some(_) => Some(hash_column(row, 3).ok_or("unreadable key")?),
            None => None,
        };
        let prev = hash_column(row, 4).ok_or("unreadable hash of the entry before it")?;
        let hash = hash_column(row, 5).ok_or("unreadable hash")?;
        let body = match (column::<&[u8]>(row, 6), column::<String>(row, 7)) {
            (None, Some(body)) => {
                Body::Here(RawValue::from_string(body).map_err(|_| "the body is not JSON")?)
            }
            (Some(gone), None) => Body::Gone(decode_gone(gone).ok_or("unreadable stub")?),
            _ => return Err("unreadable body"),
        };
        Ok(Record { stream: stream.clone(), seq, at, kind, key, body, prev, hash })
    };
    sound().map_or_else(|reason| ScannedRow::Unreadable(seq, reason), ScannedRow::Record)
}

/// The SQL of a page of a stream: `$1` its number or a query for it, `$2` the first position, `$3` records, `$4` bytes. The size of
/// a body is known without reading it, so a page never brings more than one body over its limit.
pub(crate) fn page_sql(stream: &str) -> String {
    format!(
        "SELECT {RECORD_COLUMNS} FROM (
             SELECT *, sum(octet_length(body)) OVER (ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
             FROM (SELECT * FROM longhaul.record WHERE stream = {stream} AND seq >= $2 ORDER BY seq LIMIT $3) AS first
         ) AS page WHERE before IS NULL OR before < $4 ORDER BY seq"
    )
}

/// The parameters after the first one of [`page_sql`].
pub(crate) struct PageBounds {
    from: i64,
    records: i64,
    bytes: i64,
}

impl PageBounds {
    pub(crate) fn new(from: Seq, page: Page) -> Self {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Self { from: sql_seq(from), records: number(page.records.max(1)), bytes: number(page.bytes.max(1)) }
    }

    pub(crate) fn parameters(&self) -> [Parameter<'_>; 3] {
        [(&self.from, Type::INT8), (&self.records, Type::INT8), (&self.bytes, Type::INT8)]
    }
}

/// A page of a stream, as it is in the table.
pub(crate) async fn page(
    db: &Database,
    stream: &StreamName,
    from: Seq,
    page: Page,
) -> Result<Vec<ScannedRow>> {
    let bounds = PageBounds::new(from, page);
    let name = stream.as_str();
    let [first, records, bytes] = bounds.parameters();
    let sql = page_sql("(SELECT id FROM longhaul.stream WHERE name = $1)");
    let rows = db.read(&sql, &[(&name, Type::TEXT), first, records, bytes]).await?;
    Ok(rows.iter().map(|row| scanned_row(row, stream)).collect())
}

/// A page of checked records, as [`check_page`] gives it.
pub(crate) async fn checked_page(
    db: &Database,
    stream: &StreamName,
    from: Seq,
    limits: Page,
) -> Result<Vec<Record>> {
    check_page(stream, from, page(db, stream, from.max(1), limits).await?)
}

pub(crate) async fn records_of_kind(db: &Database, stream: &StreamName, kind: &str) -> Result<Vec<Record>> {
    let sql = format!(
        "SELECT {RECORD_COLUMNS} FROM longhaul.record
         WHERE stream = (SELECT id FROM longhaul.stream WHERE name = $1) AND kind = $2 ORDER BY seq"
    );
    let rows = db.read(&sql, &[(&stream.as_str(), Type::TEXT), (&kind, Type::TEXT)]).await?;
    let sound = |row: &Row| match scanned_row(row, stream) {
        ScannedRow::Record(record) if ChainCheck::from(record.seq).follow(&record).is_ok() => Some(record),
        _ => None,
    };
    Ok(rows.iter().filter_map(sound).collect())
}

/// The number and the head of a stream, if there is one.
pub(crate) async fn stream(db: &Database, stream: &StreamName) -> Result<Option<(StreamNumber, Head)>> {
    let sql = "SELECT id, head, hash FROM longhaul.stream WHERE name = $1";
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT)]).await?;
    Ok(row.map(|row| (StreamNumber(column(&row, 0).unwrap_or(0)), head_columns(&row, 1, 2))))
}

pub(crate) async fn head(db: &Database, name: &StreamName) -> Result<Head> {
    Ok(stream(db, name).await?.map_or(Head::EMPTY, |(_, head)| head))
}

/// The hash of the record at a position.
pub(crate) async fn hash_at(db: &Database, stream: &StreamName, seq: Seq) -> Result<Option<Hash>> {
    let sql = "SELECT hash FROM longhaul.record
               WHERE stream = (SELECT id FROM longhaul.stream WHERE name = $1) AND seq = $2";
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT), (&sql_seq(seq), Type::INT8)]).await?;
    Ok(row.and_then(|row| hash_column(&row, 0)))
}

pub(crate) async fn newest_epoch(db: &Database, stream: &StreamName, through: Seq) -> Result<Option<Seq>> {
    let sql = "SELECT max(seq) FROM longhaul.record
               WHERE stream = (SELECT id FROM longhaul.stream WHERE name = $1) AND seq <= $2 AND kind = 'epoch_started'";
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT), (&sql_seq(through), Type::INT8)]).await?;
    Ok(row.and_then(|row| column::<i64>(&row, 0)).map(i64::unsigned_abs))
}

pub(crate) async fn find(db: &Database, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
    let sql = "SELECT seq FROM longhaul.record
               WHERE stream = (SELECT id FROM longhaul.stream WHERE name = $1) AND key = $2";
    let key = Hash::of(key).as_bytes().to_vec();
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT), (&key, Type::BYTEA)]).await?;
    Ok(row.map(|row| seq_column(&row, 0)))
}

pub(crate) async fn size(db: &Database, stream: &StreamName) -> Result<StreamSize> {
    let sql = "WITH one AS (SELECT id FROM longhaul.stream WHERE name = $1)
        SELECT (SELECT count(*) FROM longhaul.record WHERE stream = (SELECT id FROM one)),
               (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM longhaul.record WHERE stream = (SELECT id FROM one)),
               (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM longhaul.blob WHERE hash IN
                   (SELECT blob FROM longhaul.blob_use WHERE stream = (SELECT id FROM one)))";
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT)]).await?;
    let Some(row) = row else { return Ok(StreamSize::default()) };
    Ok(StreamSize { records: seq_column(&row, 0), bytes: seq_column(&row, 1) + seq_column(&row, 2) })
}

/// All streams by name. Skips names that this version can't read: `verify` reports them.
pub(crate) async fn streams(db: &Database) -> Result<Vec<StreamName>> {
    let rows = db.read("SELECT name FROM longhaul.stream ORDER BY name", &[]).await?;
    Ok(rows.iter().filter_map(|row| column::<&str>(row, 0)?.parse().ok()).collect())
}

/// The streams whose names begin with `prefix`, with their heads.
pub(crate) async fn heads(db: &Database, prefix: &str) -> Result<Vec<(StreamNumber, StreamName, Head)>> {
    let sql = "SELECT id, name, head, hash FROM longhaul.stream WHERE starts_with(name, $1) ORDER BY name";
    let rows = db.read(sql, &[(&prefix, Type::TEXT)]).await?;
    let stream = |row: &Row| {
        let name = column::<&str>(row, 1)?.parse().ok()?;
        Some((StreamNumber(column(row, 0)?), name, head_columns(row, 2, 3)))
    };
    Ok(rows.iter().filter_map(stream).collect())
}

pub(crate) async fn blob(db: &Database, hash: Hash) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT bytes FROM longhaul.blob WHERE hash = $1";
    let row = db.read_row(sql, &[(&hash.as_bytes().to_vec(), Type::BYTEA)]).await?;
    Ok(row.and_then(|row| column(&row, 0)))
}

/// The entries of sessions that fit a condition, in the order of their keys.
pub(crate) async fn sessions(
    db: &Database,
    condition: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<SessionEntry>> {
    let sql = format!(
        "SELECT named.key, named.id, named.trashed, named.pinned,
                own.head, own.hash, own.last_at, own.epoch, inbox.head
         FROM longhaul.session AS named
         LEFT JOIN longhaul.stream AS own ON own.name = 'session/' || named.id
         LEFT JOIN longhaul.stream AS inbox ON inbox.name = 'inbox/' || named.id
         WHERE {condition}"
    );
    let rows = db.read(&sql, parameters).await?;
    Ok(rows.iter().filter_map(session_entry).collect())
}

/// The first nine columns of a listing of sessions.
fn session_entry(row: &Row) -> Option<SessionEntry> {
    let id: SessionId = column::<&str>(row, 1)?.parse().ok()?;
    Some(SessionEntry {
        key: column(row, 0)?,
        id,
        trashed: column(row, 2)?,
        pinned: column(row, 3)?,
        head: head_columns(row, 4, 5),
        last_at: column(row, 6).map(At),
        epoch_from: column::<i64>(row, 7).map(i64::unsigned_abs),
        inbox_head: seq_column(row, 8),
    })
}

/// A session that may have something to do.
pub(crate) struct DueRow {
    pub(crate) session: String,
    /// `None` if the row can't be read.
    pub(crate) due: Option<DueSession>,
    /// The process on this machine that holds it, as JSON. It may be gone.
    pub(crate) holder: Option<String>,
}

/// Sessions that may have something to do, that this node may run, and that no other machine holds; by id, after one.
pub(crate) async fn due_sessions(
    db: &Database,
    node: &str,
    process: &RegisteredProcess,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<DueRow>> {
    let sql = "
        SELECT named.key, named.id, named.trashed, named.pinned,
            own.head, own.hash, own.last_at, own.epoch, inbox.head, due.mark,
            CASE WHEN own.holder IS NOT NULL AND own.expires_at > longhaul.now_ms() THEN by.process END
        FROM longhaul.due
        JOIN longhaul.session AS named ON named.id = due.session
        LEFT JOIN longhaul.stream AS own ON own.name = 'session/' || due.session
        LEFT JOIN longhaul.stream AS inbox ON inbox.name = 'inbox/' || due.session
        LEFT JOIN longhaul.holder AS by ON by.id = own.holder
        WHERE (due.session > $2 OR $2 IS NULL) AND NOT named.trashed 
            AND (named.node = $1 OR named.node IS NULL AND NOT (SELECT longhaul.hands_over($1)))
            AND (own.holder IS NULL OR own.expires_at <= longhaul.now_ms() OR by.boot = $3 AND by.id <> $4)
        ORDER BY due.session LIMIT $5";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters = [
        (&node as _, Type::TEXT),
        (&after as _, Type::TEXT),
        (&process.holder.boot as _, Type::TEXT),
        (&process.number as _, Type::INT8),
        (&limit as _, Type::INT8),
    ];
    let rows = db.read(sql, &parameters).await?;
    let due = |row: &Row| DueRow {
        session: column(row, 1).unwrap_or_default(),
        due: session_entry(row).and_then(|entry| Some(DueSession { entry, mark: column(row, 9)? })),
        holder: column(row, 10),
    };
    Ok(rows.iter().map(due).collect())
}

/// The holder of a lease, from its JSON. One that can't be read counts as none; the token still protects the stream.
pub(crate) fn holder_column(row: &Row, place: usize) -> Option<Holder> {
    column::<&str>(row, place).and_then(|json| serde_json::from_str(json).ok())
}
