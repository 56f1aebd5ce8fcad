//! From records to a state. It costs what the newest epoch costs, however long the session's past is.

use longhaul_journal::{Journal, newest_import, record_at, records};
use longhaul_protocol::{EpochStarted, Record, Seq, SessionId, StreamName};

use crate::session::state::State;
use crate::{Error, Result};

/// What a session is, by its records; an empty state if it has none.
pub async fn load(journal: &dyn Journal, key: &str, id: SessionId) -> Result<State> {
    load_through(journal, key, id, Seq::MAX).await
}

/// What a session was after this record. Where that is in an earlier epoch, it costs what the whole past costs.
pub async fn load_through(journal: &dyn Journal, key: &str, id: SessionId, last: Seq) -> Result<State> {
    let stream = StreamName::session(id);
    let mut state = State::default();
    let from = match journal.newest_epoch(&stream).await? {
        Some(epoch) if epoch <= last => begin(journal, &stream, epoch).await?,
        _ => 1,
    };
    // The first record says where the session works.
    if from > 1 {
        apply(&mut state, key, record_at(journal, &stream, 1).await?.as_slice())?;
        // So does the newest import, and it says whose words those before it are.
        let import = newest_import(journal, id).await?.filter(|import| import.seq < from);
        apply(&mut state, key, import.as_slice())?;
    }
    let mut cursor = records(journal, &stream, from).through(last);
    while let Some(record) = cursor.next().await? {
        apply(&mut state, key, &[record])?;
    }
    Ok(state)
}

/// Where to begin reading: with the epoch, or with the one whose context it goes on with.
pub(crate) async fn begin(journal: &dyn Journal, stream: &StreamName, epoch: Seq) -> Result<Seq> {
    // Where the record of an epoch is gone, so is what it carried: only the whole past can tell.
    let Some(newest) = epoch_at(journal, stream, epoch).await? else { return Ok(1) };
    match newest.folds_from {
        Some(earlier) if earlier != epoch => {
            let is_there = epoch_at(journal, stream, earlier).await?.is_some();
            Ok(if is_there { earlier } else { 1 })
        }
        _ => Ok(epoch),
    }
}

/// The epoch that began with this record, if it can still be read.
pub(crate) async fn epoch_at(
    journal: &dyn Journal,
    stream: &StreamName,
    seq: Seq,
) -> Result<Option<EpochStarted>> {
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
