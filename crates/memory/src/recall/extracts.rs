use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark};
use longhaul_protocol::{ExtractRecord, ExtractedItem, ItemSource, Record, Seq, SessionId, StreamName};

use super::query::Query;
use super::scoring::Weighed;
use super::words::Candidate;
use super::{Found, Place, Places};
use crate::Result;
use crate::grounding::own_or_foreign;

/// An extract has many items, of which few have the words.
const EXTRACTS: usize = 4;

/// The extracts in which some item may fit.
pub(super) async fn hits(
    journal: &dyn Journal,
    places: &Places,
    query: &Query,
    most: usize,
) -> Result<Vec<SearchHit>> {
    query.hits(journal, places, StreamName::extract, EXTRACTS * most).await
}

/// The items of these extracts that have one of the words.
pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &Places,
    weighed: &Weighed,
    hits: Vec<SearchHit>,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for hit in hits {
        let one = journal.read(&hit.stream, hit.seq, Page { records: 1, bytes: 0 }).await;
        let record = match one {
            Ok(mut page) if !page.is_empty() => page.remove(0),
            // What can't be read has nothing to show, and `verify` names it.
            Ok(_) | Err(Error::Damaged { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let Some(session) = record.stream.session_id() else { continue };
        let foreign_through = import_mark(journal, session).await?.foreign_extracts_through;
        candidates.extend(items(&record, session, places, weighed, foreign_through));
    }
    Ok(candidates)
}

fn items(
    record: &Record,
    session: SessionId,
    places: &Places,
    weighed: &Weighed,
    foreign_through: Seq,
) -> Vec<Candidate> {
    let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(record) else { return Vec::new() };
    // It is an extract of a session of this scope.
    let extracted = own_or_foreign(record.seq, extracted, foreign_through, &places.book.scope);
    if !extracted.scope.is_empty() && extracted.scope != places.book.scope {
        return Vec::new();
    }
    let candidate = |(item, ExtractedItem { text, sources, speaker, quote, .. }): (usize, ExtractedItem)| {
        let score = weighed.score(&text, "", 0.0);
        let seq = record.seq;
        let used = places.book.cited.get(&ItemSource { session, seq, item }).copied().unwrap_or(0);
        let place = Place::Item { session, seq, item };
        let excerpt = match quote.filter(|quote| *quote != text) {
            Some(quote) => format!("{text} (the user said: \"{quote}\")"),
            None => text,
        };
        let found = Found { place, speaker, at: record.at, excerpt, sources };
        (score > 0.0).then_some(Candidate { found, score, used })
    };
    extracted.items.into_iter().enumerate().filter_map(candidate).collect()
}
