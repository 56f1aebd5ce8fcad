use std::collections::{HashMap, HashSet};

use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark};
use longhaul_protocol::{Record, Seq, SessionId, Speaker, StreamName};

use super::lexical::RecallCandidate;
use super::score::{TextMatch, TextScorer};
use super::{RecallHit, RecallPlace, RecallScope};
use crate::text::truncate_line;
use crate::{Result, Utterance, UtteranceReader};

/// Records in which the end of a hit's attempt is looked for, at first and at most.
const ATTEMPT_RECORDS: [usize; 2] = [4, 40];
/// The most bytes of a request that is shown only because the hit answers it.
const MAX_REQUEST_BYTES: usize = 180;

/// The records that count, each as an entry of its own, until there are enough different ones.
pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &RecallScope,
    scorer: &TextScorer,
    hits: Vec<SearchHit>,
    most: usize,
) -> Result<Vec<RecallCandidate>> {
    let mut candidates = Vec::new();
    let mut texts = HashSet::new();
    let mut foreign: HashMap<SessionId, Seq> = HashMap::new();
    for hit in hits {
        let Some(session) = hit.stream.session_id() else { continue };
        if places.present.is_some_and(|(now, from)| now == session && hit.seq >= from) {
            continue;
        }
        if texts.len() == most {
            break;
        }
        let foreign_through = match foreign.get(&session) {
            Some(through) => *through,
            None => import_mark(journal, session).await?.foreign_through,
        };
        foreign.insert(session, foreign_through);
        if let Some(candidate) = load(journal, session, scorer, hit, foreign_through).await? {
            texts.insert(candidate.hit.excerpt.to_lowercase());
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// `None` if the record was withdrawn or only repeats others.
async fn load(
    journal: &dyn Journal,
    session: SessionId,
    scorer: &TextScorer,
    hit: SearchHit,
    foreign_through: Seq,
) -> Result<Option<RecallCandidate>> {
    let SearchHit { stream, seq, excerpt, score, request } = hit;
    let Some((record, said)) = read_utterance(journal, &stream, seq, foreign_through).await? else {
        return Ok(None);
    };
    let request = request.filter(|_| said.speaker == Speaker::Assistant);
    let asked = match request {
        Some(request) => read_request(journal, &stream, request, foreign_through).await?,
        None => None,
    };
    let coverage = scorer.coverage(&format!("{} {excerpt}", asked.as_deref().unwrap_or_default()));
    let hit = RecallHit {
        place: RecallPlace::Record { session, seq },
        speaker: said.speaker,
        at: record.at,
        excerpt,
        sources: vec![seq],
        request,
    };
    Ok(Some(RecallCandidate { asked, ..RecallCandidate::new(hit, TextMatch { score, coverage }) }))
}

/// The request before an answer, briefly, with who asked it.
async fn read_request(
    journal: &dyn Journal,
    stream: &StreamName,
    request: Seq,
    foreign_through: Seq,
) -> Result<Option<String>> {
    let asked = read_utterance(journal, stream, request, foreign_through).await?;
    // The words of another user, who came with an import, are not shown as a part of what was said here.
    let asked = asked.filter(|(_, said)| said.speaker == Speaker::User);
    Ok(asked.map(|(_, said)| format!("{}: {}", said.who, truncate_line(&said.text, MAX_REQUEST_BYTES))))
}

/// Shows the request with an answer. An answer alone may say nothing: "Let us take 5433."
pub(super) fn show_request(hit: &mut RecallHit, asked: &str) {
    if let (RecallPlace::Record { seq, .. }, Some(request)) = (&hit.place, hit.request) {
        hit.sources = vec![request, *seq];
        hit.excerpt = format!("{asked}\nassistant: {}", hit.excerpt);
    }
}

/// What was said in a record. `None` if it does not count: what a model wrote counts if the end of its attempt keeps it.
async fn read_utterance(
    journal: &dyn Journal,
    stream: &StreamName,
    seq: Seq,
    foreign_through: Seq,
) -> Result<Option<(Record, Utterance)>> {
    for records in ATTEMPT_RECORDS {
        let mut page = match journal.read(stream, seq, Page { records, ..Page::default() }).await {
            Ok(page) => page,
            // `verify` reports the damage.
            Err(Error::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut reader = UtteranceReader::to_session(foreign_through);
        let is_it = |said: &Utterance| said.seq == seq;
        let said = page.iter().flat_map(|record| reader.push(record)).find(is_it);
        if let Some(said) = said {
            return Ok(Some((page.swap_remove(0), said)));
        }
        if !reader.is_waiting() || page.len() < records {
            return Ok(None);
        }
    }
    Ok(None)
}
