//! A span, divided into parts that fit a model.

use std::collections::VecDeque;

use longhaul_context::estimate_text;
use longhaul_journal::{Journal, import_mark};
use longhaul_protocol::{At, Seq, SessionId, StreamName};

use super::asking::entry;
use super::reading::vocabularies;
use crate::grounding::Vocabulary;
use crate::paging::read_from;
use crate::utterance::untrusted_recalls;
use crate::{Result, Utterance, UtteranceReader};

/// So many records before a span are looked at for what is repeated in it, and so many things in them are remembered.
const LOOKS_BACK: u64 = 1_000;
const MOST_BEFORE: usize = 200;

/// An utterance, and when it was said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) utterance: Utterance,
    pub(super) at: At,
}

/// Some utterances in a row, in the form in which they are shown.
#[derive(Debug)]
pub(super) struct Part {
    /// The last record that it covers.
    pub(super) through: Seq,
    /// What was said, whole, in the order of the records.
    pub(super) said: Vec<Said>,
    /// The same as it is shown.
    pub(super) entries: Vec<String>,
    /// The words of what nobody can vouch for and that stands before it: somebody may repeat it here.
    pub(super) before: Vec<Vocabulary>,
}

/// The parts of a span, one after the other. No more of it is in memory than a part and a page.
pub(super) struct Parts<'a> {
    journal: &'a dyn Journal,
    stream: StreamName,
    next: Seq,
    end: Seq,
    listening: UtteranceReader,
    /// What was said while an attempt was not over: its blocks may come before that.
    held: Vec<Said>,
    ready: VecDeque<Said>,
    /// See [`Part::before`]: of the newest of it.
    before: VecDeque<Vocabulary>,
}

impl<'a> Parts<'a> {
    /// The span after this record, up to that one.
    pub(super) async fn new(
        journal: &'a dyn Journal,
        session: SessionId,
        after: Seq,
        end: Seq,
    ) -> Result<Self> {
        let stream = StreamName::session(session);
        let (held, ready, before) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let foreign_through = import_mark(journal, session).await?.foreign_through;
        let listening = UtteranceReader::to_session(foreign_through);
        let mut parts = Self { journal, stream, next: after + 1, end, listening, held, ready, before };
        parts.look_back(after, foreign_through).await?;
        Ok(parts)
    }

    /// Hears what was shown before the span, as far as somebody is likely to repeat it.
    async fn look_back(&mut self, after: Seq, foreign_through: Seq) -> Result<()> {
        let mut listening = UtteranceReader::to_session(foreign_through);
        let mut next = after.saturating_sub(LOOKS_BACK) + 1;
        while next <= after {
            let Some((page, following)) = read_from(self.journal, &self.stream, next).await? else { break };
            next = following;
            for record in page.iter().filter(|record| record.seq <= after) {
                self.hear(&listening.push(record));
                self.before.extend(untrusted_recalls(record));
            }
        }
        Ok(())
    }

    fn hear(&mut self, said: &[Utterance]) {
        self.before.extend(vocabularies(said.iter()));
        let surplus = self.before.len().saturating_sub(MOST_BEFORE);
        self.before.drain(..surplus);
    }

    /// Whether there is anything that was said.
    pub(super) async fn has_more(&mut self) -> Result<bool> {
        while self.ready.is_empty() && self.next <= self.end {
            self.read().await?;
        }
        Ok(!self.ready.is_empty())
    }

    /// The next part, in at most so many tokens by the estimate. An utterance that has more loses its middle. The last part covers the
    /// rest of the span; what comes without any utterance is no part.
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
        // What was read meanwhile shows again what was marked before.
        part.before = self.before.iter().cloned().collect();
        Ok(Some(part).filter(|part| !part.said.is_empty()))
    }

    /// This part was gone through.
    pub(super) fn is_over(&mut self, part: &Part) {
        for said in &part.said {
            self.hear(std::slice::from_ref(&said.utterance));
        }
    }

    /// This part was not gone through; it comes again, perhaps divided otherwise.
    pub(super) fn put_back(&mut self, part: Part) {
        for said in part.said.into_iter().rev() {
            self.ready.push_front(said);
        }
    }

    async fn read(&mut self) -> Result<()> {
        let Some((page, next)) = read_from(self.journal, &self.stream, self.next).await? else {
            self.next = self.end + 1;
            return Ok(());
        };
        self.next = next;
        let end = self.end;
        for record in page.iter().filter(|record| record.seq <= end) {
            let at = record.at;
            self.before.extend(untrusted_recalls(record));
            let said = self.listening.push(record).into_iter();
            self.held.extend(said.map(|utterance| Said { utterance, at }));
            if !self.listening.is_waiting() {
                self.release();
            }
        }
        if self.next > self.end {
            self.release();
        }
        Ok(())
    }

    fn release(&mut self) {
        self.held.sort_by_key(|said| said.utterance.seq);
        self.ready.extend(self.held.drain(..));
    }
}
