//! How far a session is extracted, and how much is new since then.

use longhaul_journal::{ImportMark, Journal, Page, import_mark};
use longhaul_protocol::{Body, ExtractRecord, Extracted, Hash, Record, Seq, SessionId, StreamName};

use crate::excluded_records::ExcludedRecords;
use crate::extraction::shown_tokens;
use crate::stream_reader::{PAGE_LIMIT, read_page_from};
use crate::{Result, UtteranceReader};

const ONE_RECORD: Page = Page { records: 1, bytes: 0 };

/// The last record of a session that is extracted; 0 if none is.
///
/// The newest extract states it, and usually it is the only record that is read. An erased extract still has its key,
/// which is derived from its last record: text that a user erased must not come back because the same records are
/// extracted again. An extract that was lost to damage can't be duplicated, so the one before it counts. Unknown
/// kinds are skipped. A damaged record that was not salvaged is an error.
///
/// Extracts that came with an imported session count at most up to the import, and their keys mean nothing.
pub async fn extracted_through(journal: &dyn Journal, session: SessionId) -> Result<Seq> {
    let stream = StreamName::extract(session);
    let head = journal.head(&stream).await?.seq;
    extracted_through_at(journal, session, head).await
}

async fn extracted_through_at(journal: &dyn Journal, session: SessionId, head: Seq) -> Result<Seq> {
    let stream = StreamName::extract(session);
    let mark = import_mark(journal, session).await?;
    let mut keys = Vec::new();
    let mut known = 0;
    for seq in (1..=head).rev() {
        let Some(record) = journal.read(&stream, seq, ONE_RECORD).await?.pop() else { continue };
        if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record) {
            known = trusted_through(journal, session, seq, &extracted, &mark).await?;
            break;
        }
        keys.extend(erased_key(&record).filter(|_| seq > mark.foreign_extracts_through));
    }
    if keys.is_empty() {
        return Ok(known);
    }
    let last = journal.head(&StreamName::session(session)).await?.seq;
    for through in (known + 1..=last).rev() {
        if keys.contains(&Hash::of(extract_key(journal, &stream, through, &mark).await?)) {
            return Ok(through);
        }
    }
    Ok(known)
}

/// The last record of the span about which the model gave no usable answer, if nothing was extracted since. What came
/// before an import says nothing about the model here.
pub async fn failed_through(journal: &dyn Journal, session: SessionId) -> Result<Option<Seq>> {
    let stream = StreamName::extract(session);
    let head = journal.head(&stream).await?.seq;
    if head == 0 {
        return Ok(None);
    }
    let newest = journal.read(&stream, head, ONE_RECORD).await?.pop();
    let Some(Ok(ExtractRecord::ExtractionFailed(failed))) = newest.as_ref().map(ExtractRecord::decode) else {
        return Ok(None);
    };
    let is_foreign = head <= import_mark(journal, session).await?.foreign_extracts_through;
    Ok(Some(failed.through).filter(|_| !is_foreign))
}

/// The last record that an extract covers, if that can be trusted.
async fn trusted_through(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    extracted: &Extracted,
    mark: &ImportMark,
) -> Result<Seq> {
    if seq > mark.foreign_extracts_through {
        return Ok(extracted.through);
    }
    // The record of the import is damaged, so it is unknown which extracts were written here. An extract that does
    // not go beyond the session counts. Otherwise each run would pay for the same records again.
    if mark.foreign_extracts_through == Seq::MAX
        && extracted.through <= journal.head(&StreamName::session(session)).await?.seq
    {
        return Ok(extracted.through);
    }
    Ok(extracted.through.min(mark.seq))
}

/// The key of this home's extract that ends here. It tells the end of an erased extract. Imported records may have
/// any keys, so the first key that none of them has is used.
async fn extract_key(
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

/// The key for a new extract that ends here. Fails if this home has already written an extract with it.
pub(crate) async fn key_for(journal: &dyn Journal, session: SessionId, through: Seq) -> Result<String> {
    let stream = StreamName::extract(session);
    let mark = import_mark(journal, session).await?;
    let key = extract_key(journal, &stream, through, &mark).await?;
    match journal.find(&stream, &key).await? {
        Some(seq) => Err(longhaul_journal::Error::Duplicate { stream, seq }.into()),
        None => Ok(key),
    }
}

fn erased_key(record: &Record) -> Option<Hash> {
    record.key.filter(|_| record.kind == "extracted" && matches!(record.body, Body::Gone(_)))
}

/// The last record after `after` at which no turn was open. The search begins at the end and reads nothing from
/// before the newest turn.
pub(crate) async fn last_at_rest(journal: &dyn Journal, session: SessionId, after: Seq) -> Result<Seq> {
    let stream = StreamName::session(session);
    let head = journal.head(&stream).await?.seq;
    let mut before = head + 1;
    while before > after + 1 {
        let from = before.saturating_sub(PAGE_LIMIT.records as u64).max(after + 1);
        let (mut next, mut newest) = (from, None);
        while next < before {
            let Some((mut page, following)) = read_page_from(journal, &stream, next).await? else { break };
            next = following;
            page.retain(|record| record.seq < before && is_turn_boundary(record));
            newest = page.pop().or(newest);
        }
        match newest {
            Some(edge) if edge.kind == "turn_started" => return Ok(edge.seq - 1),
            Some(_) => return Ok(head),
            None => before = from,
        }
    }
    // No turn has begun since `after`, and none was open then.
    Ok(head)
}

fn is_turn_boundary(record: &Record) -> bool {
    matches!(record.kind.as_str(), "turn_started" | "turn_ended" | "imported")
}

/// Counts the tokens that are new in a session since its last extract. Each count reads only the records since the
/// previous count.
#[derive(Debug, Default)]
pub struct UnextractedCounter {
    session: Option<SessionId>,
    /// The last extracted record, and the number of extracts.
    through: Seq,
    extracts: Seq,
    /// The last record of the span about which the model gave no usable answer.
    failed_through: Option<Seq>,
    reader: UtteranceReader,
    excluded_records: ExcludedRecords,
    /// The last record that was read, and the last record at which no turn was open.
    read_through: Seq,
    rest_through: Seq,
    /// The number and the tokens of each utterance that is not extracted yet.
    new_utterances: Vec<(Seq, u64)>,
}

impl UnextractedCounter {
    /// The new tokens up to the last record at which no turn was open. Tokens about which the model gave no usable answer
    /// are not new.
    pub async fn count_tokens(&mut self, journal: &dyn Journal, session: SessionId) -> Result<u64> {
        if self.session != Some(session) {
            *self = Self { session: Some(session), ..Self::default() };
        }
        let extracts = journal.head(&StreamName::extract(session)).await?.seq;
        if extracts != self.extracts {
            self.through = extracted_through_at(journal, session, extracts).await?;
            self.failed_through = failed_through(journal, session).await?;
            self.extracts = extracts;
            self.new_utterances.retain(|(seq, _)| *seq > self.through);
        }
        if self.through > self.read_through {
            (self.reader, self.read_through) = (UtteranceReader::default(), self.through);
            self.excluded_records = ExcludedRecords::default();
        }
        self.read_new(journal, session).await?;
        let after = self.failed_through.unwrap_or(0);
        let certain = self.new_utterances.iter().filter(|(seq, _)| *seq > after && *seq <= self.rest_through);
        Ok(certain.map(|(_, tokens)| tokens).sum())
    }

    /// Whether the model gave no usable answer the last time.
    pub fn is_after_failure(&self) -> bool {
        self.failed_through.is_some()
    }

    async fn read_new(&mut self, journal: &dyn Journal, session: SessionId) -> Result<()> {
        let stream = StreamName::session(session);
        let head = journal.head(&stream).await?.seq;
        while self.read_through < head {
            let Some((page, next)) = read_page_from(journal, &stream, self.read_through + 1).await? else {
                break;
            };
            self.read_through = next - 1;
            for record in page {
                let new_utterances = self.reader.push(&record);
                if self.reader.is_at_rest() {
                    self.rest_through = record.seq;
                }
                let new = new_utterances.iter().filter(|new_utterances| new_utterances.seq > self.through);
                self.new_utterances
                    .extend(new.map(|new_utterances| (new_utterances.seq, shown_tokens(new_utterances))));
                if let Some(records) = self.excluded_records.apply(&record) {
                    self.new_utterances.retain(|(seq, _)| !records.contains(seq));
                }
            }
        }
        Ok(())
    }
}
