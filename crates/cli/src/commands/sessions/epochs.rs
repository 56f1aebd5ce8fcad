//! Where the epochs of a session begin and end.

use longhaul_journal::{Error, Journal, record_at, records};
use longhaul_protocol::{EpochStarted, Record, Seq, StreamName};

use crate::BadUsage;

/// An epoch by its number, with the record that it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epoch {
    number: u64,
    from: Seq,
}

/// The first and the last record of an epoch. One that is not there is said, with those that are.
pub(crate) async fn range_of(
    journal: &dyn Journal,
    stream: &StreamName,
    number: u64,
) -> anyhow::Result<(Seq, Seq)> {
    let epochs = all(journal, stream).await?;
    let Some(index) = epochs.iter().position(|epoch| epoch.number == number) else {
        return Err(BadUsage(format!("there is no epoch {number}; there {}", in_words(&epochs))).into());
    };
    let through = match epochs.get(index + 1) {
        Some(next) => next.from - 1,
        None => journal.head(stream).await?.seq,
    };
    Ok((epochs[index].from, through))
}

/// All of them, the oldest first. Each names the one before it; where that chain breaks, the records before are looked
/// through: journals of older versions have no such names, and a record may be gone.
async fn all(journal: &dyn Journal, stream: &StreamName) -> Result<Vec<Epoch>, Error> {
    let mut epochs = Vec::new();
    let mut at = journal.newest_epoch(stream).await?;
    while let Some(from) = at {
        let record = record_at(journal, stream, from).await;
        let started = record.ok().flatten().and_then(|record| started(&record));
        let Some(EpochStarted { epoch: number, previous, .. }) = started else {
            // Whatever stands there is looked at with the rest.
            epochs.extend(looked_through(journal, stream, from).await?.into_iter().rev());
            break;
        };
        epochs.push(Epoch { number, from });
        at = previous.filter(|previous| *previous < from);
        if at.is_none() && number > 1 {
            epochs.extend(looked_through(journal, stream, from - 1).await?.into_iter().rev());
        }
    }
    epochs.reverse();
    Ok(epochs)
}

/// The epochs that begin up to a place, by looking at every record.
async fn looked_through(
    journal: &dyn Journal,
    stream: &StreamName,
    through: Seq,
) -> Result<Vec<Epoch>, Error> {
    let mut epochs: Vec<Epoch> = Vec::new();
    let mut cursor = records(journal, stream, 1).through(through);
    while let Some(record) = cursor.next_undamaged().await? {
        if record.kind == "epoch_started" {
            // One whose words are gone still begins an epoch.
            let following = epochs.last().map_or(1, |epoch| epoch.number.saturating_add(1));
            let number = started(&record).map_or(following, |started| started.epoch);
            epochs.push(Epoch { number, from: record.seq });
        }
    }
    Ok(epochs)
}

fn started(record: &Record) -> Option<EpochStarted> {
    (record.kind == "epoch_started").then(|| record.decode().ok())?
}

fn in_words(epochs: &[Epoch]) -> String {
    match epochs {
        [] => "are none in this session yet".to_owned(),
        [one] => format!("is only {}", one.number),
        [first, .., last] => format!("are {} to {}", first.number, last.number),
    }
}
