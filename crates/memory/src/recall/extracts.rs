use longhaul_journal::{Error, Journal, Page, SearchHit, import_mark};
use longhaul_protocol::{ExtractRecord, ExtractedItem, ItemSource, Record, Seq, SessionId};

use super::lexical::RecallCandidate;
use super::score::TextScorer;
use super::{RecallHit, RecallPlace, RecallScope};
use crate::Result;
use crate::provenance::distrust_imported;

pub(super) async fn candidates(
    journal: &dyn Journal,
    places: &RecallScope,
    scorer: &TextScorer,
    hits: Vec<SearchHit>,
) -> Result<Vec<RecallCandidate>> {
    let mut candidates = Vec::new();
    for hit in hits {
        let one = journal.read(&hit.stream, hit.seq, Page { records: 1, bytes: 0 }).await;
        let record = match one {
            Ok(mut page) if !page.is_empty() => page.remove(0),
            // `verify` reports the damage.
            Ok(_) | Err(Error::Damaged { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let Some(session) = record.stream.session_id() else { continue };
        let foreign_through = import_mark(journal, session).await?.foreign_extracts_through;
        candidates.extend(items(&record, session, places, scorer, foreign_through));
    }
    Ok(candidates)
}

fn items(
    record: &Record,
    session: SessionId,
    places: &RecallScope,
    scorer: &TextScorer,
    foreign_through: Seq,
) -> Vec<RecallCandidate> {
    let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(record) else { return Vec::new() };
    let extracted = distrust_imported(record.seq, extracted, foreign_through, &places.book.scope);
    if !extracted.scope.is_empty() && extracted.scope != places.book.scope {
        return Vec::new();
    }
    let candidate = |(item, ExtractedItem { text, sources, speaker, quote, .. }): (usize, ExtractedItem)| {
        let matched = scorer.score(&text, "", 0.0)?;
        let seq = record.seq;
        let used = places.book.cited.get(&ItemSource { session, seq, item }).copied().unwrap_or(0);
        let place = RecallPlace::Item { session, seq, item };
        let excerpt = match quote.filter(|quote| *quote != text) {
            Some(quote) => format!("{text} (the user said: \"{quote}\")"),
            None => text,
        };
        let found = RecallHit { place, speaker, at: record.at, excerpt, sources, request: None };
        Some(RecallCandidate { citations: used, ..RecallCandidate::new(found, matched) })
    };
    extracted.items.into_iter().enumerate().filter_map(candidate).collect()
}
