use std::collections::HashSet;

use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark, record_at};
use longhaul_protocol::{Record, Seq, SessionId, Speaker, StreamName};

use super::lexical::RecallCandidate;
use super::{RecallHit, RecallPlace, RecallScope};
use crate::text::truncate_line;
use crate::{Result, Utterance, UtteranceReader};

/// Records after a hit in which the end of its attempt is looked for.
const MAX_ATTEMPT_RECORDS: usize = 40;
/// The most bytes of a request that is shown only because the hit answers it.
const MAX_REQUEST_BYTES: usize = 180;

/// The records that count, each as an entry of its own, until there are enough different ones.
pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &RecallScope,
    hits: Vec<SearchHit>,
    most: usize,
) -> Result<Vec<RecallCandidate>> {
    let mut candidates = Vec::new();
    let mut texts = HashSet::new();
    for hit in hits {
        let Some(session) = hit.stream.session_id() else { continue };
        if places.present.is_some_and(|(now, from)| now == session && hit.seq >= from) {
            continue;
        }
        if texts.len() == most {
            break;
        }
        if let Some(candidate) = load(journal, session, hit).await? {
            texts.insert(candidate.hit.excerpt.to_lowercase());
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// `None` if the record was withdrawn or only repeats others.
async fn load(journal: &dyn Journal, session: SessionId, hit: SearchHit) -> Result<Option<RecallCandidate>> {
    let SearchHit { stream, seq, excerpt, score, request } = hit;
    let foreign_through = import_mark(journal, session).await?.foreign_through;
    let Some((record, said)) = read_utterance(journal, &stream, seq, foreign_through).await? else {
        return Ok(None);
    };
    let hit = RecallHit {
        place: RecallPlace::Record { session, seq },
        speaker: said.speaker,
        at: record.at,
        excerpt,
        sources: vec![seq],
        request: request.filter(|_| said.speaker == Speaker::Assistant),
    };
    Ok(Some(RecallCandidate { hit, score, citations: 0 }))
}

/// Shows the request with an answer, briefly. An answer alone may say nothing: "Let us take 5433."
pub(super) async fn add_request(journal: &dyn Journal, hit: &mut RecallHit) -> Result<()> {
    let (RecallPlace::Record { session, seq }, Some(request)) = (&hit.place, hit.request) else {
        return Ok(());
    };
    let stream = StreamName::session(*session);
    let foreign_through = import_mark(journal, *session).await?.foreign_through;
    // The words of another user, who came with an import, are not shown as a part of what was said here.
    if let Some((_, said)) = read_utterance(journal, &stream, request, foreign_through).await?
        && said.speaker == Speaker::User
    {
        let asked = truncate_line(&said.text, MAX_REQUEST_BYTES);
        hit.excerpt = format!("{}: {asked}\nassistant: {}", said.who, hit.excerpt);
        hit.sources = vec![request, *seq];
    }
    Ok(())
}

/// What was said in a record. `None` if it does not count.
async fn read_utterance(
    journal: &dyn Journal,
    stream: &StreamName,
    seq: Seq,
    foreign_through: Seq,
) -> Result<Option<(Record, Utterance)>> {
    let record = match record_at(journal, stream, seq).await {
        Ok(Some(record)) => record,
        // `verify` reports the damage.
        Ok(None) | Err(Error::Damaged { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut reader = UtteranceReader::to_session(foreign_through);
    let is_it = |said: &Utterance| said.seq == seq;
    if let Some(said) = reader.push(&record).into_iter().find(is_it) {
        return Ok(Some((record, said)));
    }
    if !reader.is_waiting() {
        return Ok(None);
    }
    // What a model wrote counts if the end of its attempt keeps it.
    let page = Page { records: MAX_ATTEMPT_RECORDS, ..Page::default() };
    let after = match journal.read(stream, seq + 1, page).await {
        Ok(after) => after,
        Err(Error::Damaged { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let said = after.iter().find_map(|record| reader.push(record).into_iter().find(is_it));
    Ok(said.map(|said| (record, said)))
}
