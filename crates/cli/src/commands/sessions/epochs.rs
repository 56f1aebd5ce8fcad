//! The epochs of a session, by number.

use longhaul_journal::{Error, Journal, record_at, records};
use longhaul_protocol::{EpochStarted, Record, Seq, StreamName};

use crate::bad_usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epoch {
    number: u64,
    /// Its first record.
    from: Seq,
}

/// The first and the last record of an epoch. The error names the epochs that there are.
pub(crate) async fn range_of(
    journal: &dyn Journal,
    stream: &StreamName,
    number: u64,
) -> anyhow::Result<(Seq, Seq)> {
    let epochs = find_epochs(journal, stream).await?;
    let Some(index) = epochs.iter().position(|epoch| epoch.number == number) else {
        return Err(bad_usage(format!("no context {number}; there {}", in_words(&epochs))));
    };
    let through = match epochs.get(index + 1) {
        Some(next) => next.from - 1,
        None => journal.head(stream).await?.seq,
    };
    Ok((epochs[index].from, through))
}

/// All epochs, the oldest first. Each names the one before it. Where that chain breaks, the records before are scanned: journals of older
/// versions have no such names, and a record may be gone.
async fn find_epochs(journal: &dyn Journal, stream: &StreamName) -> Result<Vec<Epoch>, Error> {
    let mut epochs = Vec::new();
    let mut at = journal.newest_epoch(stream, Seq::MAX).await?;
    while let Some(from) = at {
        let record = record_at(journal, stream, from).await;
        let started = record.ok().flatten().as_ref().and_then(epoch_started);
        let Some(EpochStarted { epoch: number, previous, .. }) = started else {
            epochs.extend(scan_epochs(journal, stream, from).await?.into_iter().rev());
            break;
        };
        epochs.push(Epoch { number, from });
        at = previous.filter(|previous| *previous < from);
        if at.is_none() && number > 1 {
            epochs.extend(scan_epochs(journal, stream, from - 1).await?.into_iter().rev());
        }
    }
    epochs.reverse();
    Ok(epochs)
}

/// The epochs that begin up to a record, by reading every record.
async fn scan_epochs(journal: &dyn Journal, stream: &StreamName, through: Seq) -> Result<Vec<Epoch>, Error> {
    let mut epochs: Vec<Epoch> = Vec::new();
    let mut cursor = records(journal, stream, 1).through(through);
    while let Some(record) = cursor.next_undamaged().await? {
        if record.kind == "epoch_started" {
            // A record whose body is gone still begins an epoch.
            let following = epochs.last().map_or(1, |epoch| epoch.number.saturating_add(1));
            let number = epoch_started(&record).map_or(following, |started| started.epoch);
            epochs.push(Epoch { number, from: record.seq });
        }
    }
    Ok(epochs)
}

fn epoch_started(record: &Record) -> Option<EpochStarted> {
    (record.kind == "epoch_started").then(|| record.decode().ok())?
}

fn in_words(epochs: &[Epoch]) -> String {
    match epochs {
        [] => "are none in this session yet".to_owned(),
        [one] => format!("is only {}", one.number),
        [first, .., last] => format!("are {} to {}", first.number, last.number),
    }
}
