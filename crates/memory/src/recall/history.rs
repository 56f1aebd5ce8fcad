use std::collections::HashMap;

use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark};
use longhaul_protocol::{At, Record, Seq, SessionId, Speaker, StreamName};

use super::lexical::RecallCandidate;
use super::{RecallHit, RecallPlace, RecallScope};
use crate::text::truncate_line;
use crate::{Result, Utterance, UtteranceReader};

/// Records around a hit in which its turn is looked for.
const RECORDS_BEFORE: u64 = 24;
const RECORDS_AFTER: u64 = 40;
const MAX_SHOWN_RECORDS: usize = 3;
/// The most bytes of an utterance that is shown only because it accompanies a hit.
const MAX_COMPANION_BYTES: usize = 180;

/// The exchanges of these records, each once.
pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &RecallScope,
    hits: Vec<SearchHit>,
    most: usize,
) -> Result<Vec<RecallCandidate>> {
    let mut exchanges: Vec<RecalledExchange> = Vec::new();
    for hit in hits {
        let Some(session) = hit.stream.session_id() else { continue };
        if places.present.is_some_and(|(now, from)| now == session && hit.seq >= from) {
            continue;
        }
        if let Some(exchange) =
            exchanges.iter_mut().find(|known| known.session == session && known.has(hit.seq))
        {
            exchange.show(&hit);
        } else if exchanges.len() < 2 * most {
            exchanges.extend(RecalledExchange::load(journal, session, &hit).await?);
        }
    }
    Ok(exchanges.into_iter().filter_map(RecalledExchange::candidate).collect())
}

#[derive(Debug, Clone)]
struct TimedUtterance {
    at: At,
    utterance: Utterance,
}

impl TimedUtterance {
    fn with(&self, text: String) -> Self {
        Self { at: self.at, utterance: Utterance { text, whole: None, ..self.utterance.clone() } }
    }
}

/// A hit, with the other utterances of its turn.
struct RecalledExchange {
    session: SessionId,
    score: f64,
    /// The best hit in the exchange.
    best: Seq,
    /// The utterances of the turn, in their order. An untrusted hit is shown alone, so that it can't be mistaken for
    /// the user's words.
    said: Vec<TimedUtterance>,
    shown: Vec<TimedUtterance>,
}

impl RecalledExchange {
    /// The exchange that contains a record. `None` if the record was withdrawn or only repeats others.
    async fn load(journal: &dyn Journal, session: SessionId, hit: &SearchHit) -> Result<Option<Self>> {
        let from = hit.seq.saturating_sub(RECORDS_BEFORE).max(1);
        let records = read(journal, &hit.stream, from, hit.seq + RECORDS_AFTER).await?;
        let foreign_through = import_mark(journal, session).await?.foreign_through;
        let mut said = turn_utterances(&records, hit.seq, foreign_through);
        let Some(found) = said.iter().find(|said| said.utterance.seq == hit.seq).cloned() else {
            return Ok(None);
        };
        let shown = vec![found.with(hit.excerpt.clone())];
        match found.utterance.speaker {
            Speaker::Untrusted => said = vec![found],
            Speaker::User | Speaker::Assistant => {
                said.retain(|said| said.utterance.speaker != Speaker::Untrusted);
            }
        }
        Ok(Some(Self { session, score: hit.score, best: hit.seq, said, shown }))
    }

    fn has(&self, seq: Seq) -> bool {
        self.said.iter().any(|said| said.utterance.seq == seq)
    }

    /// Adds another hit in the same exchange.
    fn show(&mut self, hit: &SearchHit) {
        let is_shown = self.shown.iter().any(|shown| shown.utterance.seq == hit.seq);
        if let Some(said) = self.said.iter().find(|said| said.utterance.seq == hit.seq)
            && self.shown.len() < MAX_SHOWN_RECORDS
            && !is_shown
        {
            self.shown.push(said.with(hit.excerpt.clone()));
        }
    }

    /// Adds the request to an answer, and the answer to a request.
    fn complete(&mut self) {
        let is_by = |said: &&TimedUtterance, speaker: Speaker| said.utterance.speaker == speaker;
        let has = |speaker: Speaker| self.shown.iter().any(|shown| is_by(&shown, speaker));
        let missing = match (has(Speaker::User), has(Speaker::Assistant)) {
            (true, false) => self.said.iter().rfind(|said| is_by(said, Speaker::Assistant)),
            (false, true) => self.said.iter().find(|said| is_by(said, Speaker::User)),
            _ => None,
        };
        if let Some(said) = missing.filter(|_| self.shown.len() < MAX_SHOWN_RECORDS) {
            self.shown.push(said.with(truncate_line(&said.utterance.text, MAX_COMPANION_BYTES)));
        }
    }

    fn candidate(mut self) -> Option<RecallCandidate> {
        self.complete();
        let Self { session, score, best, mut shown, .. } = self;
        let speaker = shown.iter().find(|shown| shown.utterance.seq == best)?.utterance.speaker;
        let at = shown.iter().map(|shown| shown.at).max()?;
        shown.sort_by_key(|shown| shown.utterance.seq);
        let line = |TimedUtterance { utterance, .. }: &TimedUtterance| match shown.len() {
            1 => utterance.text.clone(),
            _ => format!("{}: {}", utterance.who, utterance.text),
        };
        let excerpt = shown.iter().map(line).collect::<Vec<_>>().join("\n");
        let sources = shown.iter().map(|shown| shown.utterance.seq).collect();
        let place = RecallPlace::Record { session, seq: best };
        Some(RecallCandidate { hit: RecallHit { place, speaker, at, excerpt, sources }, score, citations: 0 })
    }
}

async fn read(journal: &dyn Journal, stream: &StreamName, from: Seq, to: Seq) -> Result<Vec<Record>> {
    let page = Page { records: usize::try_from(to + 1 - from).unwrap_or(usize::MAX), ..Page::default() };
    match journal.read(stream, from, page).await {
        Ok(records) => Ok(records),
        // `verify` reports the damage.
        Err(Error::Damaged { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn turn_utterances(records: &[Record], seq: Seq, foreign_through: Seq) -> Vec<TimedUtterance> {
    let is_end = |record: &&Record| matches!(record.kind.as_str(), "turn_ended" | "imported");
    let from = records.iter().filter(is_end).map(|end| end.seq).filter(|end| *end < seq).max().unwrap_or(0);
    let to = records.iter().filter(is_end).map(|end| end.seq).find(|end| *end >= seq).unwrap_or(Seq::MAX);
    let times: HashMap<Seq, At> = records.iter().map(|record| (record.seq, record.at)).collect();
    let mut listening = UtteranceReader::to_session(foreign_through);
    let of_turn = records.iter().filter(|record| record.seq > from && record.seq <= to);
    let said = of_turn.flat_map(|record| listening.push(record)).filter_map(|utterance| {
        let at = *times.get(&utterance.seq)?;
        Some(TimedUtterance { at, utterance })
    });
    let mut said: Vec<TimedUtterance> = said.collect();
    said.sort_by_key(|said| said.utterance.seq);
    said
}
