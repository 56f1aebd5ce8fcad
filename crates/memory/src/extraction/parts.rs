//! Splits a span of a session into parts that fit a model.

use std::collections::VecDeque;

use longhaul_context::estimate_text;
use longhaul_journal::{Journal, import_mark};
use longhaul_protocol::{At, Seq, SessionId, StreamName, UnreadInputs};

use super::parse::vocabularies;
use super::prompt::entry;
use crate::excluded_records::ExcludedRecords;
use crate::provenance::Vocabulary;
use crate::stream_reader::read_page_from;
use crate::utterance::untrusted_recalls;
use crate::{Result, Utterance, UtteranceReader};

/// How many records before a span are searched for untrusted text that the span may repeat, and how many texts are
/// kept.
const LOOKBACK_RECORDS: u64 = 1_000;
const MAX_LOOKBACK_TEXTS: usize = 200;

#[derive(Debug)]
pub(super) struct TimedUtterance {
    pub(super) utterance: Utterance,
    pub(super) at: At,
}

/// Consecutive utterances and their entries in the prompt.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) through: Seq,
    pub(super) said: Vec<TimedUtterance>,
    /// The entries of the prompt, one for each utterance.
    pub(super) entries: Vec<String>,
    /// The words of untrusted texts before this part. A speaker in this part may repeat them.
    pub(super) before: Vec<Vocabulary>,
}

/// The parts of a span, in their order. At most one part and one page of records are in memory.
pub(super) struct Parts<'a> {
    journal: &'a dyn Journal,
    stream: StreamName,
    next: Seq,
    end: Seq,
    reader: UtteranceReader,
    unread: UnreadInputs,
    excluded_records: ExcludedRecords,
    /// Utterances during an open attempt, whose blocks may have lower numbers, and after an input that may be too long.
    unsettled: Vec<TimedUtterance>,
    ready: VecDeque<TimedUtterance>,
    before: VecDeque<Vocabulary>,
}

impl<'a> Parts<'a> {
    pub(super) async fn new(
        journal: &'a dyn Journal,
        session: SessionId,
        after: Seq,
        end: Seq,
    ) -> Result<Self> {
        let stream = StreamName::session(session);
        let (unsettled, ready, before) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let foreign_through = import_mark(journal, session).await?.foreign_through;
        let reader = UtteranceReader::to_session(foreign_through);
        let (next, unread, excluded_records) =
            (after + 1, UnreadInputs::default(), ExcludedRecords::default());
        let mut parts =
            Self { journal, stream, next, end, reader, unread, excluded_records, unsettled, ready, before };
        parts.read_lookback(after, foreign_through).await?;
        Ok(parts)
    }

    /// Reads the untrusted text before the span.
    async fn read_lookback(&mut self, after: Seq, foreign_through: Seq) -> Result<()> {
        let mut reader = UtteranceReader::to_session(foreign_through);
        let mut next = after.saturating_sub(LOOKBACK_RECORDS) + 1;
        while next <= after {
            let Some((page, following)) = read_page_from(self.journal, &self.stream, next).await? else {
                break;
            };
            next = following;
            for record in page.iter().filter(|record| record.seq <= after) {
                self.remember_untrusted(&reader.push(record));
                self.before.extend(untrusted_recalls(record));
            }
        }
        Ok(())
    }

    fn remember_untrusted(&mut self, said: &[Utterance]) {
        self.before.extend(vocabularies(said.iter()));
        let surplus = self.before.len().saturating_sub(MAX_LOOKBACK_TEXTS);
        self.before.drain(..surplus);
    }

    /// Whether there is another utterance.
    pub(super) async fn has_more(&mut self) -> Result<bool> {
        while self.ready.is_empty() && self.next <= self.end {
            self.read_page().await?;
        }
        Ok(!self.ready.is_empty())
    }

    /// The next part, in at most `budget` tokens. A longer utterance is truncated in its middle. The last part covers
    /// the rest of the span. Records without utterances form no part.
    pub(super) async fn next(&mut self, budget: u64) -> Result<Option<Part>> {
        let mut part = Part { through: self.end, said: Vec::new(), entries: Vec::new(), before: Vec::new() };
        let mut tokens = 0;
        while self.has_more().await? {
            let Some(said) = self.ready.pop_front() else { break };
            let entry = entry(&said.utterance, budget);
            tokens += estimate_text(&entry);
            if tokens > budget && !part.said.is_empty() {
                part.through = said.utterance.seq - 1;
                self.ready.push_front(said);
                break;
            }
            part.said.push(said);
            part.entries.push(entry);
        }
        // Includes what was read since the last part.
        part.before = self.before.iter().cloned().collect();
        Ok(Some(part).filter(|part| !part.said.is_empty()))
    }

    /// Marks this part as extracted.
    pub(super) fn mark_extracted(&mut self, part: &Part) {
        for said in &part.said {
            self.remember_untrusted(std::slice::from_ref(&said.utterance));
        }
    }

    /// Takes back a part that was not extracted. It comes again, perhaps split differently.
    pub(super) fn put_back(&mut self, part: Part) {
        for said in part.said.into_iter().rev() {
            self.ready.push_front(said);
        }
    }

    async fn read_page(&mut self) -> Result<()> {
        let Some((page, next)) = read_page_from(self.journal, &self.stream, self.next).await? else {
            self.next = self.end + 1;
            return Ok(());
        };
        self.next = next;
        let end = self.end;
        for record in page.iter().filter(|record| record.seq <= end) {
            let at = record.at;
            self.before.extend(untrusted_recalls(record));
            let said = self.reader.push(record).into_iter();
            self.unsettled.extend(said.map(|utterance| TimedUtterance { utterance, at }));
            // The user took it back before the model read it, or it is not worth a look.
            let unread = self.unread.apply(record).into_iter().map(|seq| seq..=seq);
            for records in unread.chain(self.excluded_records.apply(record)) {
                self.unsettled.retain(|said| !records.contains(&said.utterance.seq));
                self.ready.retain(|said| !records.contains(&said.utterance.seq));
            }
            if !self.reader.is_waiting() && !self.excluded_records.is_waiting() {
                self.settle();
            }
        }
        if self.next > self.end {
            self.settle();
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.unsettled.sort_by_key(|said| said.utterance.seq);
        self.ready.extend(self.unsettled.drain(..));
    }
}
