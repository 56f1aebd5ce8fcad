use std::collections::HashMap;

use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark};
use longhaul_protocol::{At, Record, Seq, SessionId, Speaker, StreamName};

use super::query::Query;
use super::words::Candidate;
use super::{Found, Place, Places};
use crate::text::brief;
use crate::{Listening, Result, Utterance};

/// Of so many records for each that is wanted those are looked at that can be shown.
const HITS: usize = 6;
/// So many records before one, and after it, are looked at for what it belongs to.
const BEFORE: u64 = 24;
const AFTER: u64 = 40;
/// So many records of one exchange are shown together.
const TOGETHER: usize = 3;
/// So much is shown of what only goes with something that was found.
const LONGEST: usize = 180;

/// The records that may fit, the best first.
pub(super) async fn hits(
    journal: &dyn Journal,
    places: &Places,
    query: &Query,
    most: usize,
) -> Result<Vec<SearchHit>> {
    query.hits(journal, places, StreamName::session, HITS * most).await
}

/// What was said in these records, each exchange once.
pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &Places,
    hits: Vec<SearchHit>,
    most: usize,
) -> Result<Vec<Candidate>> {
    let mut exchanges: Vec<Exchange> = Vec::new();
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
            exchanges.extend(Exchange::around(journal, session, &hit).await?);
        }
    }
    Ok(exchanges.into_iter().filter_map(Exchange::candidate).collect())
}

/// Something that was said or shown.
#[derive(Debug, Clone)]
struct Said {
    at: At,
    utterance: Utterance,
}

impl Said {
    /// The same in other words.
    fn with(&self, text: String) -> Self {
        Self { at: self.at, utterance: Utterance { text, whole: None, ..self.utterance.clone() } }
    }
}

/// Something that was found, with what was said around it in the same turn.
struct Exchange {
    session: SessionId,
    score: f64,
    /// The best of it.
    best: Seq,
    /// What was said in the turn, in its order. What nobody can vouch for stands alone: it must not pass for somebody's words.
    said: Vec<Said>,
    /// What of it is shown, and how.
    shown: Vec<Said>,
}

impl Exchange {
    /// What a record belongs to; nothing, if it was taken back or only repeats what others hold.
    async fn around(journal: &dyn Journal, session: SessionId, hit: &SearchHit) -> Result<Option<Self>> {
        let from = hit.seq.saturating_sub(BEFORE).max(1);
        let records = read(journal, &hit.stream, from, hit.seq + AFTER).await?;
        let foreign_through = import_mark(journal, session).await?.foreign_through;
        let mut said = turn_of(&records, hit.seq, foreign_through);
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

    /// Another record of it was found.
    fn show(&mut self, hit: &SearchHit) {
        let is_shown = self.shown.iter().any(|shown| shown.utterance.seq == hit.seq);
        if let Some(said) = self.said.iter().find(|said| said.utterance.seq == hit.seq)
            && self.shown.len() < TOGETHER
            && !is_shown
        {
            self.shown.push(said.with(hit.excerpt.clone()));
        }
    }

    /// With an answer goes what was asked, and with a question what was answered.
    fn complete(&mut self) {
        let is_by = |said: &&Said, speaker: Speaker| said.utterance.speaker == speaker;
        let has = |speaker: Speaker| self.shown.iter().any(|shown| is_by(&shown, speaker));
        let missing = match (has(Speaker::User), has(Speaker::Assistant)) {
            (true, false) => self.said.iter().rfind(|said| is_by(said, Speaker::Assistant)),
            (false, true) => self.said.iter().find(|said| is_by(said, Speaker::User)),
            _ => None,
        };
        if let Some(said) = missing.filter(|_| self.shown.len() < TOGETHER) {
            self.shown.push(said.with(brief(&said.utterance.text, LONGEST)));
        }
    }

    fn candidate(mut self) -> Option<Candidate> {
        self.complete();
        let Self { session, score, best, mut shown, .. } = self;
        let speaker = shown.iter().find(|shown| shown.utterance.seq == best)?.utterance.speaker;
        let at = shown.iter().map(|shown| shown.at).max()?;
        shown.sort_by_key(|shown| shown.utterance.seq);
        let line = |Said { utterance, .. }: &Said| match shown.len() {
            1 => utterance.text.clone(),
            _ => format!("{}: {}", utterance.who, utterance.text),
        };
        let excerpt = shown.iter().map(line).collect::<Vec<_>>().join("\n");
        let sources = shown.iter().map(|shown| shown.utterance.seq).collect();
        let place = Place::Record { session, seq: best };
        Some(Candidate { found: Found { place, speaker, at, excerpt, sources }, score, used: 0 })
    }
}

/// Records in a row, as far as they can be read.
async fn read(journal: &dyn Journal, stream: &StreamName, from: Seq, to: Seq) -> Result<Vec<Record>> {
    let page = Page { records: usize::try_from(to + 1 - from).unwrap_or(usize::MAX), ..Page::default() };
    match journal.read(stream, from, page).await {
        Ok(records) => Ok(records),
        // What can't be read has nothing to show, and `verify` names it.
        Err(Error::Damaged { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// What was said in the turn that a record belongs to.
fn turn_of(records: &[Record], seq: Seq, foreign_through: Seq) -> Vec<Said> {
    let is_end = |record: &&Record| matches!(record.kind.as_str(), "turn_ended" | "imported");
    let from = records.iter().filter(is_end).map(|end| end.seq).filter(|end| *end < seq).max().unwrap_or(0);
    let to = records.iter().filter(is_end).map(|end| end.seq).find(|end| *end >= seq).unwrap_or(Seq::MAX);
    let moments: HashMap<Seq, At> = records.iter().map(|record| (record.seq, record.at)).collect();
    let mut listening = Listening::to_session(foreign_through);
    let of_turn = records.iter().filter(|record| record.seq > from && record.seq <= to);
    let said = of_turn.flat_map(|record| listening.push(record)).filter_map(|utterance| {
        let at = *moments.get(&utterance.seq)?;
        Some(Said { at, utterance })
    });
    let mut said: Vec<Said> = said.collect();
    said.sort_by_key(|said| said.utterance.seq);
    said
}
