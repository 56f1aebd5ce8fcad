//! Appends: one statement each, and the same bytes again if its outcome is unknown.
//!
//! The client computes hashes, so it must know the head that an append follows. It remembers the heads of the streams that it
//! wrote, and the statement checks that the head is still the same. Another head comes back in the answer; an append that
//! takes any head is then computed anew.
//!
//! | the connection breaks | in the database | what the writer does |
//! | --- | --- | --- |
//! | before the statement runs | nothing | sends the same bytes again; they fit the same head |
//! | after its commit, before the answer | the records | sends the same bytes again; the head has moved; finds its own hash at the position, and answers as committed |
//! | before the statement runs, which the server does later | nothing, then the records | whichever of the two comes first is committed; the other finds another head |
//! | and the database stays away | unknown | answers `Unreachable` after half a minute; the caller's next append finds out by its expected head or its key |

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longhaul_journal::engine::{ChainLink, NameChange, PreparedAppend, encode_gone};
use longhaul_journal::{Append, Blob, Error, Expected, Head, Lease, Result};
use longhaul_protocol::{Body, Hash, NewRecord, Record, StreamName, blob_refs};
use tokio::sync::OwnedMutexGuard;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Parameter, StatementError};
use crate::database::{Database, LONG_STATEMENT, Repetition, Verdict, only_row};
use crate::rows;

/// How long an append of unknown outcome is repeated before the caller learns that the database is away.
const SETTLE_TIME: Duration = Duration::from_secs(30);
/// Streams whose heads are remembered.
const MAX_KNOWN_HEADS: usize = 20_000;

/// The heads of streams as this process last saw them. The lock of a stream keeps the appends of this process in order.
#[derive(Default)]
pub(crate) struct KnownHeads(Mutex<HashMap<StreamName, KnownHead>>);

type KnownHead = Arc<tokio::sync::Mutex<Option<Head>>>;

impl KnownHeads {
    async fn lock(&self, stream: &StreamName) -> OwnedMutexGuard<Option<Head>> {
        let known = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MAX_KNOWN_HEADS {
                // A head in use stays, because its lock keeps an order.
                all.retain(|_, head| Arc::strong_count(head) > 1);
            }
            Arc::clone(all.entry(stream.clone()).or_default())
        };
        known.lock_owned().await
    }

    pub(crate) async fn forget(&self, stream: &StreamName) {
        *self.lock(stream).await = None;
    }
}

/// What is to be appended to one stream, with its hashes.
pub(crate) struct PlacedRecords {
    /// The head that the records follow.
    pub(crate) after: Head,
    pub(crate) records: Vec<Record>,
}

/// The answer of the database to an append.
pub(crate) enum AppendAnswer {
    Done,
    /// The head is another one.
    Moved(Head),
    /// Refused, with the reason as an error.
    Refused(Error),
}

/// Appends, and returns the records as committed.
pub(crate) async fn append(
    db: &Database,
    heads: &KnownHeads,
    append: Append,
    lease_expiry: Duration,
) -> Result<Vec<Record>> {
    let PreparedAppend { append, bodies } = PreparedAppend::new(append)?;
    let Append { stream, expected, lease, records, blobs } = append;
    if lease.as_ref().is_some_and(|lease| lease.stream != stream) {
        return Err(Error::Fenced { stream, holder: None });
    }
    let mut known = heads.lock(&stream).await;
    let mut head = match (expected, *known) {
        (Expected::Any, Some(head)) => head,
        (Expected::Head(seq), Some(head)) if head.seq == seq => head,
        _ => rows::head(db, &stream).await?,
    };
    loop {
        if let Expected::Head(seq) = expected
            && seq != head.seq
        {
            *known = Some(head);
            // The lease is checked first, as the statement does.
            crate::lease::check_lease(db, &stream, lease.as_ref()).await?;
            return Err(Error::Conflict { stream, head });
        }
        let placed = place_records(db, &stream, head, &records, &bodies);
        let arguments = AppendArguments::new(&stream, &placed, lease.as_ref(), lease_expiry, &blobs);
        match settle(db, &stream, &placed, &arguments).await {
            Ok(AppendAnswer::Done) => {
                *known =
                    placed.records.last().map(|last| Head { seq: last.seq, hash: last.hash }).or(Some(head));
                return Ok(placed.records);
            }
            Ok(AppendAnswer::Moved(moved)) => head = moved,
            Ok(AppendAnswer::Refused(error)) | Err(error) => {
                *known = None;
                return Err(error);
            }
        }
    }
}

/// Sends an append until its outcome is known.
pub(crate) async fn settle(
    db: &Database,
    stream: &StreamName,
    placed: &PlacedRecords,
    arguments: &AppendArguments,
) -> Result<AppendAnswer> {
    let mut repetition = Repetition::within(SETTLE_TIME);
    let mut is_unknown = false;
    loop {
        let answer = send(db, stream, arguments).await;
        if repetition.is_due_after(matches!(answer, Err(Error::Unreachable { .. }))).await {
            is_unknown = true;
            continue;
        }
        let is_refused = matches!(answer, Ok(AppendAnswer::Moved(_) | AppendAnswer::Refused(_)));
        // An earlier try may have been committed, although there was no answer.
        if is_unknown && is_refused && has_records(db, stream, placed).await? {
            return Ok(AppendAnswer::Done);
        }
        return answer;
    }
}

/// Whether the stream has these very records.
async fn has_records(db: &Database, stream: &StreamName, placed: &PlacedRecords) -> Result<bool> {
    let Some(first) = placed.records.first() else { return Ok(false) };
    Ok(rows::hash_at(db, stream, first.seq).await? == Some(first.hash))
}

async fn send(db: &Database, stream: &StreamName, arguments: &AppendArguments) -> Result<AppendAnswer> {
    if let Some(one) = arguments.as_one_record() {
        let sent = db.write(APPEND_RECORD_SQL, &one).await.map_err(|error| error.into_error(&db.address))?;
        if let Some(clock) = rows::column(&only_row(sent, &db.address)?, 0) {
            db.set_clock(clock);
            return Ok(AppendAnswer::Done);
        }
    }
    match db.write(APPEND_SQL, &arguments.parameters()).await {
        Ok(rows) => {
            let row = only_row(rows, &db.address)?;
            db.set_clock(rows::column(&row, 4).unwrap_or(db.now().0));
            Ok(answer(stream, &row))
        }
        Err(StatementError::Refused(error)) if is_missing_blob(&error) => {
            Ok(AppendAnswer::Refused(missing_blob(stream, &error)))
        }
        Err(error) => Err(error.into_error(&db.address)),
    }
}

/// Sends the appends of several streams over a connection with an open transaction, up to the first that is refused.
pub(crate) async fn send_in_transaction(
    db: &Database,
    connection: &Connection,
    streams: &[StreamName],
    appends: &[AppendArguments],
) -> Result<(Verdict, Vec<AppendAnswer>)> {
    let mut answers = Vec::new();
    for (stream, arguments) in streams.iter().zip(appends) {
        let sent = connection.query(&db.address, APPEND_SQL, &arguments.parameters(), LONG_STATEMENT).await;
        let answer = match sent {
            Ok(rows) => answer(stream, &only_row(rows, &db.address)?),
            Err(StatementError::Refused(error)) if is_missing_blob(&error) => {
                AppendAnswer::Refused(missing_blob(stream, &error))
            }
            Err(error) => return Err(error.into_error(&db.address)),
        };
        let is_done = matches!(answer, AppendAnswer::Done);
        answers.push(answer);
        if !is_done {
            return Ok((Verdict::RollBack, answers));
        }
    }
    Ok((Verdict::Commit, answers))
}

/// The code of the database's error for a blob that it doesn't have.
const MISSING_BLOB: &str = "LH001";

fn is_missing_blob(error: &tokio_postgres::Error) -> bool {
    error.code().map(SqlState::code) == Some(MISSING_BLOB)
}

fn missing_blob(stream: &StreamName, error: &tokio_postgres::Error) -> Error {
    let hash = error.as_db_error().and_then(|error| error.detail()?.parse().ok()).unwrap_or(Hash::ZERO);
    Error::MissingBlob { stream: stream.clone(), hash }
}

const APPEND_SQL: &str = "SELECT * FROM longhaul.append(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)";

/// The same for one record with a body, without blobs and names. Without a clock in the answer, nothing was appended, and the other
/// statement says why.
const APPEND_RECORD_SQL: &str = "SELECT longhaul.append_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

fn answer(stream: &StreamName, row: &Row) -> AppendAnswer {
    let stream = stream.clone();
    match rows::column::<&str>(row, 0) {
        Some("done") => AppendAnswer::Done,
        Some("fenced") => {
            let holder = rows::holder_column(row, 3).map(Box::new);
            AppendAnswer::Refused(Error::Fenced { stream, holder })
        }
        Some("duplicate") => {
            AppendAnswer::Refused(Error::Duplicate { stream, seq: rows::seq_column(row, 1) })
        }
        _ => AppendAnswer::Moved(rows::head_columns(row, 1, 2)),
    }
}

fn place_records(
    db: &Database,
    stream: &StreamName,
    after: Head,
    records: &[NewRecord],
    bodies: &[(Hash, Vec<Hash>)],
) -> PlacedRecords {
    let at = db.now();
    let mut head = after;
    let place = |(NewRecord { kind, body, key }, (body_hash, _)): (&NewRecord, &(Hash, Vec<Hash>))| {
        let (seq, prev, body_hash) = (head.seq + 1, head.hash, *body_hash);
        let hash = ChainLink { stream, seq, at, kind, key: *key, prev, body_hash }.hash();
        head = Head { seq, hash };
        let (stream, kind, body) = (stream.clone(), kind.clone(), Body::Here(body.clone()));
        Record { stream, seq, at, kind, key: *key, body, prev, hash }
    };
    PlacedRecords { after, records: records.iter().zip(bodies).map(place).collect() }
}

/// The arguments of the function `longhaul.append`.
pub(crate) struct AppendArguments {
    stream: String,
    head: i64,
    hash: Vec<u8>,
    token: Option<i64>,
    lease_ms: i64,
    ats: Vec<i64>,
    kinds: Vec<String>,
    keys: Vec<Option<Vec<u8>>>,
    prevs: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
    gones: Vec<Option<Vec<u8>>>,
    bodies: Vec<Option<String>>,
    has_keys: bool,
    newest_epoch: Option<i64>,
    blobs: Option<BlobColumns>,
    uses: Option<(Vec<i64>, Vec<Vec<u8>>)>,
    do_lost_blobs_count: bool,
    names: Option<NameColumns>,
}

/// The columns of new blobs: the hash, the bytes.
type BlobColumns = (Vec<Vec<u8>>, Vec<Option<Vec<u8>>>);

/// The columns of changes to the table `session`: the change, the id, the key.
type NameColumns = (Vec<&'static str>, Vec<String>, Vec<Option<String>>);

impl AppendArguments {
    pub(crate) fn new(
        stream: &StreamName,
        placed: &PlacedRecords,
        lease: Option<&Lease>,
        lease_expiry: Duration,
        blobs: &[Blob],
    ) -> Self {
        let PlacedRecords { after, records } = placed;
        let bytes = |hash: &Hash| hash.as_bytes().to_vec();
        let (mut gones, mut bodies, mut use_seqs, mut use_blobs) = (vec![], vec![], vec![], vec![]);
        for record in records {
            let (gone, body) = match &record.body {
                Body::Here(body) => (None, Some(body.get().to_owned())),
                Body::Gone(gone) => (Some(encode_gone(gone)), None),
            };
            gones.push(gone);
            bodies.push(body);
            for blob in record.text().map(blob_refs).unwrap_or_default() {
                use_seqs.push(rows::sql_seq(record.seq));
                use_blobs.push(bytes(&blob.hash));
            }
        }
        // In the order of their hashes, so that two appends with the same blobs don't wait for each other in a circle. A blob
        // that no record refers to is not stored.
        let mut given: Vec<&Blob> =
            blobs.iter().filter(|blob| use_blobs.contains(&bytes(&blob.hash()))).collect();
        given.sort_unstable_by_key(|blob| *blob.hash().as_bytes());
        given.dedup_by_key(|blob| blob.hash());
        let given = given.into_iter().map(|blob| (bytes(&blob.hash()), blob.bytes().map(<[u8]>::to_vec)));
        let given: (Vec<_>, Vec<_>) = given.unzip();
        let newest_epoch = records.iter().rfind(|record| record.kind == "epoch_started");
        Self {
            stream: stream.as_str().to_owned(),
            head: rows::sql_seq(after.seq),
            hash: bytes(&after.hash),
            token: lease.map(|lease| lease.token.cast_signed()),
            lease_ms: i64::try_from(lease_expiry.as_millis()).unwrap_or(i64::MAX / 4),
            ats: records.iter().map(|record| record.at.0).collect(),
            kinds: records.iter().map(|record| record.kind.clone()).collect(),
            keys: records.iter().map(|record| record.key.as_ref().map(bytes)).collect(),
            prevs: records.iter().map(|record| bytes(&record.prev)).collect(),
            hashes: records.iter().map(|record| bytes(&record.hash)).collect(),
            gones,
            bodies,
            has_keys: records.iter().any(|record| record.key.is_some()),
            newest_epoch: newest_epoch.map(|record| rows::sql_seq(record.seq)),
            blobs: (!given.0.is_empty()).then_some(given),
            uses: (!use_blobs.is_empty()).then_some((use_seqs, use_blobs)),
            do_lost_blobs_count: false,
            names: name_columns(stream, records),
        }
    }

    /// Accepts references to blobs whose bytes were lost, as the records of a salvaged session have them.
    pub(crate) fn with_lost_blobs(self) -> Self {
        Self { do_lost_blobs_count: true, ..self }
    }

    /// The arguments of the function `longhaul.append_record`, if it can take this append.
    fn as_one_record(&self) -> Option<[Parameter<'_>; 10]> {
        let ([at], [kind], [key], [hash], [Some(body)]) =
            (&self.ats[..], &self.kinds[..], &self.keys[..], &self.hashes[..], &self.bodies[..])
        else {
            return None;
        };
        let is_plain = self.blobs.is_none() && self.uses.is_none() && self.names.is_none();
        is_plain.then_some([
            (&self.stream, Type::TEXT),
            (&self.head, Type::INT8),
            (&self.hash, Type::BYTEA),
            (&self.token, Type::INT8),
            (&self.lease_ms, Type::INT8),
            (at, Type::INT8),
            (kind, Type::TEXT),
            (key, Type::BYTEA),
            (hash, Type::BYTEA),
            (body, Type::TEXT),
        ])
    }

    fn parameters(&self) -> [Parameter<'_>; 22] {
        const NO_BYTES: &Option<Vec<Vec<u8>>> = &None;
        const NO_BLOBS: &Option<Vec<Option<Vec<u8>>>> = &None;
        const NO_NUMBERS: &Option<Vec<i64>> = &None;
        const NO_TEXTS: &Option<Vec<String>> = &None;
        let (blob_hashes, blobs): (Parameter<'_>, Parameter<'_>) = match &self.blobs {
            Some((hashes, blobs)) => ((hashes, Type::BYTEA_ARRAY), (blobs, Type::BYTEA_ARRAY)),
            None => ((NO_BYTES, Type::BYTEA_ARRAY), (NO_BLOBS, Type::BYTEA_ARRAY)),
        };
        let (use_seqs, use_blobs): (Parameter<'_>, Parameter<'_>) = match &self.uses {
            Some((seqs, blobs)) => ((seqs, Type::INT8_ARRAY), (blobs, Type::BYTEA_ARRAY)),
            None => ((NO_NUMBERS, Type::INT8_ARRAY), (NO_BYTES, Type::BYTEA_ARRAY)),
        };
        let (changes, ids, keys): (Parameter<'_>, Parameter<'_>, Parameter<'_>) = match &self.names {
            Some((changes, ids, keys)) => {
                ((changes, Type::TEXT_ARRAY), (ids, Type::TEXT_ARRAY), (keys, Type::TEXT_ARRAY))
            }
            None => {
                ((NO_TEXTS, Type::TEXT_ARRAY), (NO_TEXTS, Type::TEXT_ARRAY), (NO_TEXTS, Type::TEXT_ARRAY))
            }
        };
        [
            (&self.stream, Type::TEXT),
            (&self.head, Type::INT8),
            (&self.hash, Type::BYTEA),
            (&self.token, Type::INT8),
            (&self.lease_ms, Type::INT8),
            (&self.ats, Type::INT8_ARRAY),
            (&self.kinds, Type::TEXT_ARRAY),
            (&self.keys, Type::BYTEA_ARRAY),
            (&self.prevs, Type::BYTEA_ARRAY),
            (&self.hashes, Type::BYTEA_ARRAY),
            (&self.gones, Type::BYTEA_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
            (&self.has_keys, Type::BOOL),
            (&self.newest_epoch, Type::INT8),
            blob_hashes,
            blobs,
            use_seqs,
            use_blobs,
            (&self.do_lost_blobs_count, Type::BOOL),
            changes,
            ids,
            keys,
        ]
    }
}

/// What records of the stream `names` change in the table `session`.
fn name_columns(stream: &StreamName, records: &[Record]) -> Option<NameColumns> {
    if *stream != StreamName::names() {
        return None;
    }
    let mut columns: NameColumns = Default::default();
    for change in records.iter().filter_map(NameChange::from_record) {
        let (change, id, key) = match change {
            NameChange::Bind { key, id } => ("bind", id, Some(key)),
            NameChange::Rename { id, key } => ("rename", id, Some(key)),
            NameChange::Trash { id } => ("trash", id, None),
            NameChange::Restore { id } => ("restore", id, None),
            NameChange::Pin { id, pinned: true } => ("pin", id, None),
            NameChange::Pin { id, pinned: false } => ("unpin", id, None),
            NameChange::Forget { id } => ("forget", id, None),
            NameChange::Place { id, node } => ("place", id, node),
        };
        columns.0.push(change);
        columns.1.push(id.to_string());
        columns.2.push(key);
    }
    (!columns.0.is_empty()).then_some(columns)
}
