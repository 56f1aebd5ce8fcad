//! The part of a session that has yet to be gone through.

use longhaul_journal::{ImportMark, Journal, Page, import_mark};
use longhaul_protocol::{Body, ExtractRecord, Extracted, Hash, Record, Seq, SessionId, StreamName};

use crate::extracting::shown_tokens;
use crate::paging::{PAGE, read_from};
use crate::{Result, UtteranceReader};

const ONE: Page = Page { records: 1, bytes: 0 };

/// How far a session has been gone through; 0, if never.
///
/// The newest extract says so; usually that is the only record that is read. One that was erased still has its key, which was made from
/// how far it went: what somebody wanted gone must not come back because the same records are gone through again. One that
/// was lost to damage has nothing left of it, also nothing that could be doubled, and the one before it counts. Kinds that a newer
/// version writes are passed over. A record that is damaged, and was not salvaged, is an error: nothing is done until somebody looked.
///
/// What came with a file was written by somebody else. An extract of it counts as far as the file goes, and the keys of it say nothing.
pub async fn extracted_through(journal: &dyn Journal, session: SessionId) -> Result<Seq> {
    let stream = StreamName::extract(session);
    let head = journal.head(&stream).await?.seq;
    through_at(journal, session, head).await
}

/// The same, where the extracts end here.
async fn through_at(journal: &dyn Journal, session: SessionId, head: Seq) -> Result<Seq> {
    let stream = StreamName::extract(session);
    let mark = import_mark(journal, session).await?;
    let mut keys = Vec::new();
    let mut known = 0;
    for seq in (1..=head).rev() {
        let Some(record) = journal.read(&stream, seq, ONE).await?.pop() else { continue };
        if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record) {
            known = believed_through(journal, session, seq, &extracted, &mark).await?;
            break;
        }
        keys.extend(key_of_erased(&record).filter(|_| seq > mark.foreign_extracts_through));
    }
    if keys.is_empty() {
        return Ok(known);
    }
    let last = journal.head(&StreamName::session(session)).await?.seq;
    for through in (known + 1..=last).rev() {
        if keys.contains(&Hash::of(own_key(journal, &stream, through, &mark).await?)) {
            return Ok(through);
        }
    }
    Ok(known)
}

/// How far an extract has gone through its session.
async fn believed_through(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    extracted: &Extracted,
    mark: &ImportMark,
) -> Result<Seq> {
    if seq > mark.foreign_extracts_through {
        return Ok(extracted.through);
    }
    // The record of the import is damaged, and nobody knows which extracts are from here. One that goes no further than the session
    // counts: else the same records would be paid for again and again.
    if mark.foreign_extracts_through == Seq::MAX
        && extracted.through <= journal.head(&StreamName::session(session)).await?.seq
    {
        return Ok(extracted.through);
    }
    // It can't have gone through more than the file.
    Ok(extracted.through.min(mark.seq))
}

/// The key of this home's extract that goes through here. It can be told from it how far an extract went whose body is gone. Records that came
/// with a file may have any keys; the first that none of them has is the one.
async fn own_key(
    journal: &dyn Journal,
    stream: &StreamName,
    through: Seq,
    mark: &ImportMark,
) -> Result<String> {
    let mut key = format!("through {through}");
    if mark.foreign_extracts_through == 0 {
        return Ok(key);
    }
    let mut number = 0;
    while journal.find(stream, &key).await?.is_some_and(|seq| seq <= mark.foreign_extracts_through) {
        number += 1;
        key = format!("through {through} ({number})");
    }
    Ok(key)
}

/// The key for a new extract that goes through here. An error, if this home has written one with it already.
pub(crate) async fn key_for(journal: &dyn Journal, session: SessionId, through: Seq) -> Result<String> {
    let stream = StreamName::extract(session);
    let mark = import_mark(journal, session).await?;
    let key = own_key(journal, &stream, through, &mark).await?;
    match journal.find(&stream, &key).await? {
        Some(seq) => Err(longhaul_journal::Error::Duplicate { stream, seq }.into()),
        None => Ok(key),
    }
}

fn key_of_erased(record: &Record) -> Option<Hash> {
    record.key.filter(|_| record.kind == "extracted" && matches!(record.body, Body::Gone(_)))
}

/// The last record at which no turn was open, of all after this one, up to which everything has been gone through. It is looked for from
/// the end: nothing before the beginning of the newest turn is read.
pub(crate) async fn last_at_rest(journal: &dyn Journal, session: SessionId, after: Seq) -> Result<Seq> {
    let stream = StreamName::session(session);
    let head = journal.head(&stream).await?.seq;
    let mut before = head + 1;
    while before > after + 1 {
        let from = before.saturating_sub(PAGE.records as u64).max(after + 1);
        let (mut next, mut newest) = (from, None);
        while next < before {
            let Some((mut page, following)) = read_from(journal, &stream, next).await? else { break };
            next = following;
            page.retain(|record| record.seq < before && is_edge_of_turn(record));
            newest = page.pop().or(newest);
        }
        match newest {
            Some(edge) if edge.kind == "turn_started" => return Ok(edge.seq - 1),
            Some(_) => return Ok(head),
            None => before = from,
        }
    }
    // Neither has a turn begun, nor is one open: whoever went through a part of a turn saw its end before.
    Ok(head)
}

fn is_edge_of_turn(record: &Record) -> bool {
    matches!(record.kind.as_str(), "turn_started" | "turn_ended" | "imported")
}

/// What is new in a session since it was last gone through, counted as it comes: each look reads only what came since the one before.
#[derive(Debug, Default)]
pub struct UnextractedCounter {
    session: Option<SessionId>,
    /// How far it has been gone through, by this many extracts.
    through: Seq,
    extracts: Seq,
    listening: UtteranceReader,
    /// The last record that was heard, and the last one at which no turn was open.
    heard: Seq,
    rest: Seq,
    /// What was said after what has been gone through: where, and how many tokens it has.
    said: Vec<(Seq, u64)>,
}

impl UnextractedCounter {
    /// How many tokens are new, by the estimate, up to the last record at which no turn was open.
    pub async fn look(&mut self, journal: &dyn Journal, session: SessionId) -> Result<u64> {
        if self.session != Some(session) {
            *self = Self { session: Some(session), ..Self::default() };
        }
        let extracts = journal.head(&StreamName::extract(session)).await?.seq;
        if extracts != self.extracts {
            self.through = through_at(journal, session, extracts).await?;
            self.extracts = extracts;
            self.said.retain(|(seq, _)| *seq > self.through);
        }
        if self.through > self.heard {
            (self.listening, self.heard) = (UtteranceReader::default(), self.through);
        }
        self.listen(journal, session).await?;
        let certain = self.said.iter().filter(|(seq, _)| *seq <= self.rest);
        Ok(certain.map(|(_, tokens)| tokens).sum())
    }

    async fn listen(&mut self, journal: &dyn Journal, session: SessionId) -> Result<()> {
        let stream = StreamName::session(session);
        let head = journal.head(&stream).await?.seq;
        while self.heard < head {
            let Some((page, next)) = read_from(journal, &stream, self.heard + 1).await? else { break };
            self.heard = next - 1;
            for record in page {
                let said = self.listening.push(&record);
                if self.listening.is_at_rest() {
                    self.rest = record.seq;
                }
                let new = said.iter().filter(|said| said.seq > self.through);
                self.said.extend(new.map(|said| (said.seq, shown_tokens(said))));
            }
        }
        Ok(())
    }
}
