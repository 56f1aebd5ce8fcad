//! Erasing what a record of a session says, wherever the session says it.
//!
//! Some records repeat others word for word: the inbox holds what was taken from it, the end of a turn its last answer, a checkpoint a
//! part of what was being said, and an epoch what it keeps of the context before. Who wants something gone wants all of them gone. A
//! summary may still tell of it in other words.

use longhaul_protocol::{Checkpoint, Record, Seq, SessionId, SessionRecord, StreamName};

use crate::search::Findable;
use crate::{Error, Journal, Page, Result};

/// What is shorter is repeated by chance, and nobody's secret.
const SHORTEST: usize = 8;
/// The kinds of record that may repeat what others say.
const REPEATING: [&str; 5] = ["epoch_started", "system_message", "turn_ended", "notification", "note"];

/// Erases a record of a session for good, and whatever repeats it word for word: the same words in the inbox, and later records. Returns
/// every place that was erased. An epoch that is erased is made up for when the session is loaded: then its whole past is read.
pub async fn erase_record(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    reason: &str,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::session(session);
    let record = journal.read(&stream, seq.max(1), Page { records: 1, bytes: 0 }).await?.pop();
    let mut places = vec![(stream.clone(), seq)];
    if let Some(record) = &record {
        if let Ok(SessionRecord::InputTaken(taken)) = SessionRecord::decode(record) {
            places.push((StreamName::inbox(session), taken.inbox_through));
        }
        for copy in copies(journal, &stream, record).await? {
            places.push((stream.clone(), copy));
        }
    }
    journal.erase(&places, reason).await?;
    Ok(places)
}

/// The places of the records that repeat what this one says. One that can't be read is passed over.
async fn copies(journal: &dyn Journal, stream: &StreamName, original: &Record) -> Result<Vec<Seq>> {
    let said = Findable::of(original).map(|findable| findable.text).unwrap_or_default();
    let said = said.trim();
    let mut copies = Vec::new();
    if said.len() < SHORTEST {
        return Ok(copies);
    }
    // As it stands within a JSON text.
    let quoted = serde_json::Value::from(said).to_string();
    let needle = &quoted[1..quoted.len() - 1];
    let mut next = 1;
    loop {
        let page = match journal.read(stream, next, Page::default()).await {
            Err(Error::Damaged { seq, .. }) => {
                next = next.max(seq) + 1;
                continue;
            }
            page => page?,
        };
        let Some(last) = page.last() else { return Ok(copies) };
        next = last.seq + 1;
        let repeats = |record: &&Record| record.seq != original.seq && repeats(record, said, needle);
        copies.extend(page.iter().filter(repeats).map(|record| record.seq));
    }
}

fn repeats(record: &Record, said: &str, needle: &str) -> bool {
    if record.kind == "checkpoint" {
        let part = record.decode::<Checkpoint>().map(|checkpoint| checkpoint.text).unwrap_or_default();
        return part.trim().len() >= SHORTEST && said.contains(part.trim());
    }
    REPEATING.contains(&record.kind.as_str()) && record.text().is_some_and(|body| body.contains(needle))
}
