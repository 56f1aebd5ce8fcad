//! Acquiring, renewing, checking and releasing leases, inside a commit. Each stream has one row, whose token only rises.

use std::time::Duration;

use longhaul_protocol::{At, StreamName};
use rusqlite::{Connection, OptionalExtension, params};

use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::writer::Commit;
use crate::{Error, Holder, Lease, Result};

struct LeaseRow {
    token: u64,
    holder: Option<Holder>,
    expires_at: i64,
}

fn row(db: &Connection, stream: StreamNumber) -> rusqlite::Result<Option<LeaseRow>> {
    db.prepare_cached("SELECT token, holder, expires_at FROM leases WHERE stream = ?1")?
        .query_row([stream.0], |row| {
            // A lease whose holder can't be read counts as free; the token still protects the stream.
            let holder = rows::text(row, 1)?.and_then(|holder| serde_json::from_str(holder).ok());
            Ok(LeaseRow { token: row.get(0)?, holder, expires_at: row.get(2)? })
        })
        .optional()
}

fn write(db: &Connection, stream: StreamNumber, row: &LeaseRow) -> rusqlite::Result<usize> {
    let json_error = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
    let holder = row.holder.as_ref().map(serde_json::to_string).transpose().map_err(json_error)?;
    db.prepare_cached(
        "INSERT OR REPLACE INTO leases (stream, token, holder, expires_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![stream.0, row.token, holder, row.expires_at])
}

fn expiry_after(now: i64, expiry: Duration) -> i64 {
    now.saturating_add(i64::try_from(expiry.as_millis()).unwrap_or(i64::MAX))
}

pub(crate) fn holder(db: &Connection, stream: &StreamName) -> rusqlite::Result<Option<Holder>> {
    let Some(number) = rows::stream_number(db, stream)? else { return Ok(None) };
    Ok(row(db, number)?.and_then(|row| row.holder))
}

pub(crate) fn live_holder(db: &Connection, stream: &StreamName, now: At) -> rusqlite::Result<Option<Holder>> {
    let Some(number) = rows::stream_number(db, stream)? else { return Ok(None) };
    let is_live = |row: &LeaseRow, holder: &Holder| row.expires_at > now.0 && !holder.is_gone();
    Ok(row(db, number)?.and_then(|row| row.holder.clone().filter(|holder| is_live(&row, holder))))
}

/// Takes the lease if it is free, expired, or its holder is gone.
pub(crate) fn acquire_lease(commit: &mut Commit<'_>, stream: &StreamName) -> Result<Lease> {
    let number = commit.stream(stream)?;
    let before = commit.sql(row(commit.db, number))?;
    if let Some(LeaseRow { holder: Some(holder), expires_at, .. }) = &before
        && *expires_at > commit.now.0
        && !holder.is_gone_for(commit.this_process)
    {
        return Err(Error::Held { stream: stream.clone(), holder: Box::new(holder.clone()) });
    }
    // A stream that was removed and created again has another number, so no earlier token is valid.
    let token = before.map_or_else(|| number.0.unsigned_abs() << 32 | 1, |row| row.token + 1);
    let taken = LeaseRow {
        token,
        holder: Some(commit.this_process.clone()),
        expires_at: expiry_after(commit.now.0, commit.lease_expiry),
    };
    commit.sql(write(commit.db, number, &taken))?;
    Ok(Lease { stream: stream.clone(), token })
}

/// Checks the lease of an append, and renews it if that is due. The right token is enough, even if the lease has
/// expired. Without a lease, an append is allowed only while the stream's lease is free.
pub(crate) fn check_lease(
    commit: &Commit<'_>,
    number: StreamNumber,
    stream: &StreamName,
    lease: Option<&Lease>,
) -> Result<()> {
    let row = commit.sql(row(commit.db, number))?;
    let fenced = |row: Option<LeaseRow>| {
        Err(Error::Fenced { stream: stream.clone(), holder: row.and_then(|row| row.holder).map(Box::new) })
    };
    match (lease, row) {
        (None, None) => Ok(()),
        (None, Some(row)) if row.holder.is_none() || row.expires_at <= commit.now.0 => Ok(()),
        (Some(lease), Some(row))
            if lease.token == row.token && row.holder.is_some() && lease.stream == *stream =>
        {
            renew_if_due(commit, number, row)
        }
        (_, row) => fenced(row),
    }
}

/// Renews a lease only after a quarter of its time, so that most appends write one page instead of two.
fn renew_if_due(commit: &Commit<'_>, number: StreamNumber, row: LeaseRow) -> Result<()> {
    let fresh = expiry_after(commit.now.0, commit.lease_expiry);
    let quarter = i64::try_from(commit.lease_expiry.as_millis() / 4).unwrap_or(i64::MAX);
    if fresh - row.expires_at < quarter {
        return Ok(());
    }
    commit.sql(write(commit.db, number, &LeaseRow { expires_at: fresh, ..row })).map(|_| ())
}

pub(crate) fn renew_lease(commit: &mut Commit<'_>, lease: &Lease) -> Result<()> {
    let number = commit.stream(&lease.stream)?;
    check_lease(commit, number, &lease.stream, Some(lease))
}

pub(crate) fn release_lease(commit: &mut Commit<'_>, lease: &Lease) -> Result<()> {
    let Some(number) = commit.sql(rows::stream_number(commit.db, &lease.stream))? else { return Ok(()) };
    match commit.sql(row(commit.db, number))? {
        Some(row) if row.token == lease.token => {
            commit.sql(write(commit.db, number, &LeaseRow { holder: None, ..row })).map(|_| ())
        }
        _ => Ok(()),
    }
}
