//! A long past for a session, made from its first turn without asking a model again.

use std::path::Path;

use longhaul_journal::{Append, Home, Journal, Page, SqliteJournal, all_sessions};
use longhaul_protocol::{EpochReason, SessionRecord, StreamName};

/// Turns that one append writes, so that 5,000 turns cost 100 syncs.
const TURNS_PER_APPEND: u64 = 50;

/// Repeats the one turn of the session with this key until it has `turns` of them. After each `turns_of_epoch` turns a new epoch begins, as
/// after a compaction. No other process may hold the session.
pub async fn repeat_turn(home: &Path, key: &str, turns: u64, turns_of_epoch: Option<u64>) {
    let journal = SqliteJournal::open(&Home::existing(home).unwrap()).await.unwrap();
    let sessions = all_sessions(&journal).collect().await.unwrap();
    let session = sessions.iter().find(|session| session.key == key).unwrap();
    let stream = StreamName::session(session.id);
    let records = journal.read(&stream, 1, Page::default()).await.unwrap();
    let first_turn: Vec<SessionRecord> =
        records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect();
    let lease = journal.acquire_lease(&stream).await.unwrap();
    let mut append = Append::under(&lease);
    for turn in 2..=turns {
        let again = first_turn.iter().filter_map(|record| repeated(record, turn, turns_of_epoch));
        for record in again {
            append = append.record(record.encode());
        }
        if turn % TURNS_PER_APPEND == 0 || turn == turns {
            journal.append(std::mem::replace(&mut append, Append::under(&lease))).await.unwrap();
        }
    }
    journal.release_lease(&lease).await.unwrap();
    journal.close().await;
}

/// A record of the first turn as a record of this one; none if this turn has no such record.
fn repeated(record: &SessionRecord, turn: u64, turns_of_epoch: Option<u64>) -> Option<SessionRecord> {
    Some(match record.clone() {
        SessionRecord::SessionCreated(_) => return None,
        SessionRecord::EpochStarted(mut epoch) => {
            let length = turns_of_epoch.filter(|length| turn % length == 0)?;
            epoch.epoch += turn / length;
            epoch.reason = EpochReason::Compacted;
            epoch.turns = turn - 1;
            SessionRecord::EpochStarted(epoch)
        }
        SessionRecord::TurnStarted(mut started) => {
            started.turn = turn;
            SessionRecord::TurnStarted(started)
        }
        SessionRecord::TurnEnded(mut ended) => {
            ended.turn = turn;
            SessionRecord::TurnEnded(ended)
        }
        other => other,
    })
}
