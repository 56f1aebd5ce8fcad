//! Records that keep their positions, times and hashes: imports, forks and copies.

use std::time::Duration;

use longhaul_journal::engine::ChainCheck;
use longhaul_journal::{Blob, Error, Head, Lease, Result};
use longhaul_protocol::{Record, StreamName};

use crate::append::{AppendAnswer, AppendArguments, KnownHeads, PlacedRecords, send_in_transaction, settle};
use crate::database::Database;
use crate::lease;

/// Adds records if they continue their streams, all or none of them.
pub(crate) async fn adopt(
    db: &Database,
    heads: &KnownHeads,
    held: &Lease,
    records: Vec<Record>,
    blobs: &[Blob],
    lease_expiry: Duration,
) -> Result<()> {
    let groups = group_by_stream(records)?;
    let streams: Vec<StreamName> = groups.iter().map(|(stream, _)| stream.clone()).collect();
    let arguments: Vec<AppendArguments> = groups
        .iter()
        .map(|(stream, placed)| {
            let own = (*stream == held.stream).then_some(held);
            AppendArguments::new(stream, placed, own, lease_expiry, blobs).with_lost_blobs()
        })
        .collect();
    for stream in &streams {
        heads.forget(stream).await;
    }
    let refused = match (&*groups, &*arguments) {
        ([(stream, placed)], [arguments]) if *stream == held.stream => {
            vec![settle(db, stream, placed, arguments).await?]
        }
        _ => {
            lease::renew_lease(db, held, lease_expiry).await?;
            db.transact(async |connection| send_in_transaction(db, connection, &streams, &arguments).await)
                .await?
        }
    };
    for (answer, stream) in refused.into_iter().zip(streams) {
        match answer {
            AppendAnswer::Done => {}
            AppendAnswer::Moved(head) => return Err(Error::Conflict { stream, head }),
            AppendAnswer::Refused(error) => return Err(error),
        }
    }
    Ok(())
}

/// The records of each stream, as the continuation of the head that the first of them names. Refuses records that don't follow
/// each other.
fn group_by_stream(records: Vec<Record>) -> Result<Vec<(StreamName, PlacedRecords)>> {
    let mut groups: Vec<(StreamName, PlacedRecords, ChainCheck)> = Vec::new();
    for record in records {
        let place = groups.iter().position(|(stream, ..)| *stream == record.stream).unwrap_or_else(|| {
            let after = Head { seq: record.seq.saturating_sub(1), hash: record.prev };
            let placed = PlacedRecords { after, records: Vec::new() };
            groups.push((record.stream.clone(), placed, ChainCheck::from(record.seq)));
            groups.len() - 1
        });
        let (stream, placed, chain) = &mut groups[place];
        if chain.follow(&record).is_err() {
            let head =
                placed.records.last().map_or(placed.after, |last| Head { seq: last.seq, hash: last.hash });
            return Err(Error::Conflict { stream: stream.clone(), head });
        }
        placed.records.push(record);
    }
    Ok(groups.into_iter().map(|(stream, placed, _)| (stream, placed)).collect())
}
