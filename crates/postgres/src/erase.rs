//! Erasing bodies, and removing streams.
//!
//! A stub commits in one statement, with the references to blobs and the blobs that nothing else refers to. PostgreSQL keeps the
//! old version of a row until a vacuum, so one follows. Copies in its write-ahead log, in replicas and in backups are the
//! operator's: docs/cluster.md says so.

use longhaul_journal::engine::encode_gone;
use longhaul_journal::{Error, Lease, Page, Result};
use longhaul_protocol::{Body, Gone, Hash, Seq, StreamName};
use tokio_postgres::types::Type;

use crate::database::{Database, only_row};
use crate::rows;

/// Replaces bodies by stubs, all or none.
pub(crate) async fn erase_bodies(db: &Database, places: &[(StreamName, Seq)], reason: &str) -> Result<()> {
    let (mut names, mut seqs, mut hashes, mut gones) = (vec![], vec![], vec![], vec![]);
    for (stream, seq) in places {
        let head = rows::head(db, stream).await?.seq;
        if *seq < 1 || *seq > head {
            return Err(Error::NoSuchRecord { stream: stream.clone(), seq: *seq, head });
        }
        let record = rows::checked_page(db, stream, *seq, Page { records: 1, bytes: 0 }).await?.pop();
        let Some(record) = record else {
            let reason = "it is missing".to_owned();
            return Err(Error::Damaged { stream: stream.clone(), seq: *seq, reason });
        };
        // Already erased: the first stub stays.
        let Body::Here(body) = &record.body else { continue };
        let gone = Gone { at: db.now(), reason: reason.to_owned(), body_hash: Some(Hash::of(body.get())) };
        names.push(stream.as_str().to_owned());
        seqs.push(rows::sql_seq(*seq));
        hashes.push(record.hash.as_bytes().to_vec());
        gones.push(encode_gone(&gone));
    }
    if seqs.is_empty() {
        return Ok(());
    }
    let sql = "SELECT longhaul.erase_bodies($1, $2, $3, $4)";
    let parameters = [
        (&names as _, Type::TEXT_ARRAY),
        (&seqs as _, Type::INT8_ARRAY),
        (&hashes as _, Type::BYTEA_ARRAY),
        (&gones as _, Type::BYTEA_ARRAY),
    ];
    db.write_repeatably(sql, &parameters).await.map(drop)
}

/// Vacuums the tables in which these records and their blobs were.
pub(crate) async fn vacuum(db: &Database, places: &[(StreamName, Seq)]) -> Result<()> {
    let names: Vec<&str> = places.iter().map(|(stream, _)| stream.as_str()).collect();
    let sql = "SELECT DISTINCT tableoid::regclass::text FROM longhaul.record
               WHERE stream IN (SELECT id FROM longhaul.stream WHERE name = ANY ($1))";
    let rows = db.read(sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    let mut tables: Vec<String> = rows.iter().filter_map(|row| rows::column(row, 0)).collect();
    tables.push("longhaul.blob".to_owned());
    db.write_repeatably(&format!("VACUUM {}", tables.join(", ")), &[]).await.map(drop)
}

/// Removes a stream with all its records. Refused while another process holds its lease.
pub(crate) async fn remove_stream(db: &Database, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
    let token = lease.map(|lease| lease.token.cast_signed());
    let sql = "SELECT status, found_holder FROM longhaul.remove_stream($1, $2)";
    let rows = db.write_repeatably(sql, &[(&stream.as_str(), Type::TEXT), (&token, Type::INT8)]).await?;
    let row = only_row(rows, &db.address)?;
    match rows::column::<&str>(&row, 0) {
        Some("done") => Ok(()),
        _ => {
            let holder = rows::holder_column(&row, 1).map(Box::new);
            Err(Error::Fenced { stream: stream.clone(), holder })
        }
    }
}

/// Removes blobs that no record refers to.
pub(crate) async fn drop_unused_blobs(db: &Database) -> Result<u64> {
    let sql = "SELECT longhaul.drop_unused_blobs((SELECT array_agg(hash) FROM longhaul.blob
               WHERE NOT EXISTS (SELECT 1 FROM longhaul.blob_use WHERE blob = hash)))";
    let row = only_row(db.write_repeatably(sql, &[]).await?, &db.address)?;
    Ok(rows::seq_column(&row, 0))
}
