//! Replay: rebuilds the state of a session from its records, for example to resume after a kill. Its cost depends on
//! one epoch, not on the length of the session.

use longhaul_journal::{Journal, newest_import, record_at, records};
use longhaul_protocol::{EpochStarted, Record, Seq, SessionId, StreamName};

use crate::session::state::State;
use crate::{Error, Result};

/// Loads the state of a session. Empty if it has no records.
pub async fn load(journal: &dyn Journal, key: &str, id: SessionId) -> Result<State> {
    load_through(journal, key, id, Seq::MAX).await
}

/// Loads the state as it was after this record. Reads the epoch that contains the record, up to it.
pub async fn load_through(journal: &dyn Journal, key: &str, id: SessionId, last: Seq) -> Result<State> {
    let stream = StreamName::session(id);
    let mut state = State::default();
    let from = replay_start(journal, &stream, last).await?;
    // The first record contains the work folder.
    if from > 1 {
        apply(&mut state, key, record_at(journal, &stream, 1).await?.as_slice())?;
        // So does the newest import, which also says who wrote the records before it.
        let import = newest_import(journal, id, from - 1).await?;
        apply(&mut state, key, import.as_slice())?;
    }
    let mut records = records(journal, &stream, from).through(last);
    while let Some(record) = records.next().await? {
        apply(&mut state, key, &[record])?;
    }
    Ok(state)
}

/// Applies the records that were written after this state. Loads an empty one.
pub async fn catch_up(journal: &dyn Journal, key: &str, id: SessionId, state: &mut State) -> Result<()> {
    if state.head == 0 {
        *state = load(journal, key, id).await?;
        return Ok(());
    }
    let mut records = records(journal, &StreamName::session(id), state.head + 1);
    while let Some(record) = records.next().await? {
        apply(state, key, &[record])?;
    }
    Ok(())
}

/// The record from which a replay up to `last` begins: its epoch, or the earlier one whose context that continues.
pub(crate) async fn replay_start(journal: &dyn Journal, stream: &StreamName, last: Seq) -> Result<Seq> {
    let Some(epoch) = journal.newest_epoch(stream, last).await? else { return Ok(1) };
    // If the record of the epoch is gone, so is the state that it carried over. So everything is replayed.
    let Some(newest) = epoch_at(journal, stream, epoch).await? else { return Ok(1) };
    match newest.folds_from {
        Some(earlier) if earlier != epoch => {
            let is_there = epoch_at(journal, stream, earlier).await?.is_some();
            Ok(if is_there { earlier } else { 1 })
        }
        _ => Ok(epoch),
    }
}

/// The epoch that began with this record, if the record can be read.
async fn epoch_at(journal: &dyn Journal, stream: &StreamName, seq: Seq) -> Result<Option<EpochStarted>> {
    let record = record_at(journal, stream, seq).await?;
    Ok(record.and_then(|record| record.decode().ok()))
}

fn apply(state: &mut State, key: &str, records: &[Record]) -> Result<()> {
    for record in records {
        let unreadable = |reason| Error::Unreadable { key: key.to_owned(), reason };
        state.apply(record).map_err(unreadable)?;
    }
    Ok(())
}
