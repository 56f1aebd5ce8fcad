//! Leases on the clock of the database.
//!
//! | the connection breaks while a lease is acquired | in the database | what the process does |
//! | --- | --- | --- |
//! | before the statement runs | the lease as it was | sends it again |
//! | after its commit, before the answer | held by this process, with a token that nothing in it got | takes it over from itself: the token rises once more |
//!
//! Renewing and releasing can be repeated as they are.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_journal::{Error, Holder, Lease, Result};
use longhaul_protocol::StreamName;
use tokio_postgres::types::Type;

use crate::database::{Database, RETRY_WINDOW, Repetition, is_unanswered, only_row};
use crate::rows;

fn milliseconds(expiry: Duration) -> i64 {
    i64::try_from(expiry.as_millis()).unwrap_or(i64::MAX / 4)
}

/// This process in the table of holders, and its number there.
pub(crate) struct RegisteredProcess {
    pub(crate) holder: Holder,
    pub(crate) number: i64,
}

impl RegisteredProcess {
    pub(crate) async fn register(db: &Database, holder: Holder, node: &str) -> Result<Self> {
        let json = serde_json::to_string(&holder)
            .map_err(|error| Error::Io { path: db.address.to_string().into(), reason: error.to_string() })?;
        let sql = "INSERT INTO longhaul.holder AS known (process, node, boot) VALUES ($1, $2, $3)
                   ON CONFLICT (process) DO UPDATE SET node = excluded.node RETURNING id";
        let parameters =
            [(&json as _, Type::TEXT), (&node as _, Type::TEXT), (&holder.boot as _, Type::TEXT)];
        let row = only_row(db.write_repeatably(sql, &parameters).await?, &db.address)?;
        Ok(Self { holder, number: rows::column(&row, 0).unwrap_or(0) })
    }
}

/// Whether a holder is certainly gone. Machines of a cluster may share a name, so another boot proves nothing: only expiry
/// permits to take over from there.
pub(crate) fn is_gone(holder: &Holder) -> bool {
    holder.boot == Holder::this_process().boot && holder.is_gone()
}

/// Acquires the lease, if it is free or expired, or its holder is gone.
pub(crate) async fn acquire_lease(
    db: &Database,
    process: &RegisteredProcess,
    stream: &StreamName,
    expiry: Duration,
) -> Result<Lease> {
    let (name, lease_ms) = (stream.as_str(), milliseconds(expiry));
    let sql = "SELECT new_token, held_token, found_holder FROM longhaul.acquire_lease($1, $2, $3, $4)";
    let (mut gone_token, mut has_lost_answer): (Option<i64>, bool) = (None, false);
    let mut repetition = Repetition::within(RETRY_WINDOW);
    loop {
        let parameters = [
            (&name as _, Type::TEXT),
            (&process.number as _, Type::INT8),
            (&lease_ms as _, Type::INT8),
            (&gone_token as _, Type::INT8),
        ];
        let answer = db.write(sql, &parameters).await;
        if repetition.is_due_after(is_unanswered(&answer)).await {
            has_lost_answer = true;
            continue;
        }
        let row = only_row(answer.map_err(|error| error.into_error(&db.address))?, &db.address)?;
        if let Some(token) = rows::column::<i64>(&row, 0) {
            granted_leases().insert((stream.clone(), token));
            return Ok(Lease { stream: stream.clone(), token: token.cast_unsigned() });
        }
        let (held, holder) = (rows::column::<i64>(&row, 1), rows::holder_column(&row, 2));
        let is_lost_answer = |holder: &Holder| {
            has_lost_answer
                && *holder == process.holder
                && held.is_some_and(|token| !granted_leases().contains(&(stream.clone(), token)))
        };
        match holder {
            // The lease counts as free if its holder can't be read.
            Some(holder) if !is_gone(&holder) && !is_lost_answer(&holder) => {
                return Err(Error::Held { stream: stream.clone(), holder: Box::new(holder) });
            }
            _ => gone_token = held,
        }
    }
}

/// The leases that callers in this process got, until they release them. Streams of another database may have the same tokens.
fn granted_leases() -> MutexGuard<'static, HashSet<(StreamName, i64)>> {
    static GRANTED: LazyLock<Mutex<HashSet<(StreamName, i64)>>> = LazyLock::new(Mutex::default);
    GRANTED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn renew_lease(db: &Database, lease: &Lease, expiry: Duration) -> Result<()> {
    let sql = "UPDATE longhaul.stream SET expires_at = longhaul.now_ms() + $3
               WHERE name = $1 AND token = $2 AND holder IS NOT NULL RETURNING 1";
    let (name, token) = (lease.stream.as_str(), lease.token.cast_signed());
    let parameters =
        [(&name as _, Type::TEXT), (&token as _, Type::INT8), (&milliseconds(expiry) as _, Type::INT8)];
    if db.write_repeatably(sql, &parameters).await?.is_empty() {
        return Err(fenced(db, &lease.stream).await?);
    }
    Ok(())
}

pub(crate) async fn release_lease(db: &Database, lease: &Lease) -> Result<()> {
    let sql = "UPDATE longhaul.stream SET holder = NULL WHERE name = $1 AND token = $2";
    let (name, token) = (lease.stream.as_str(), lease.token.cast_signed());
    db.write_repeatably(sql, &[(&name, Type::TEXT), (&token, Type::INT8)]).await?;
    granted_leases().remove(&(lease.stream.clone(), token));
    Ok(())
}

/// Fails with `Fenced` unless an append under this lease, or without one, would be permitted.
pub(crate) async fn check_lease(db: &Database, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
    let sql = "SELECT longhaul.lease_permits(stream, $2) FROM longhaul.stream WHERE name = $1";
    let token = lease.map(|lease| lease.token.cast_signed());
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT), (&token, Type::INT8)]).await?;
    let permits = row.map_or(token.is_none(), |row| rows::column(&row, 0).unwrap_or(false));
    if permits { Ok(()) } else { Err(fenced(db, stream).await?) }
}

async fn fenced(db: &Database, stream: &StreamName) -> Result<Error> {
    Ok(Error::Fenced { stream: stream.clone(), holder: holder(db, stream).await?.map(Box::new) })
}

/// The holder of a lease, and whether the lease has expired.
async fn lease_row(db: &Database, stream: &StreamName) -> Result<Option<(Holder, bool)>> {
    let sql = "SELECT longhaul.process_of(holder), expires_at <= longhaul.now_ms() FROM longhaul.stream WHERE name = $1";
    let row = db.read_row(sql, &[(&stream.as_str(), Type::TEXT)]).await?;
    Ok(row.and_then(|row| Some((rows::holder_column(&row, 0)?, rows::column(&row, 1)?))))
}

pub(crate) async fn holder(db: &Database, stream: &StreamName) -> Result<Option<Holder>> {
    Ok(lease_row(db, stream).await?.map(|(holder, _)| holder))
}

/// The holder, if it may still be there to be woken: on this machine its process must live, elsewhere its lease must be valid.
pub(crate) async fn reachable_holder(db: &Database, stream: &StreamName) -> Result<Option<Holder>> {
    let this_boot = Holder::this_process().boot;
    let is_reachable = |(holder, is_expired): &(Holder, bool)| match holder.boot == this_boot {
        true => !holder.is_gone(),
        false => !is_expired,
    };
    Ok(lease_row(db, stream).await?.filter(is_reachable).map(|(holder, _)| holder))
}

pub(crate) async fn live_holder(db: &Database, stream: &StreamName) -> Result<Option<Holder>> {
    let is_live = |(holder, is_expired): &(Holder, bool)| !is_expired && !is_gone(holder);
    Ok(lease_row(db, stream).await?.filter(is_live).map(|(holder, _)| holder))
}
