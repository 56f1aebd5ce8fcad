use std::collections::HashSet;

use longhaul_journal::{MatchMode, Result, SearchHit, SearchQuery};
use longhaul_protocol::{Block, Item, Seq, SessionRecord};

use super::format::{RecordView, minute, status_suffix};
use super::reader::{BlockStatus, SessionHistory};

/// The most hits to examine in order to fill the limit.
const MAX_EXAMINED_HITS: usize = 1_000;

struct HistoryHit {
    seq: Seq,
    line: String,
}

/// Records that contain all of the words, then those that contain some of them.
pub(super) async fn find(mut history: SessionHistory, query: &str, limit: usize) -> Result<Vec<String>> {
    let mut found: Vec<HistoryHit> = Vec::new();
    for matching in [MatchMode::All, MatchMode::Any] {
        if found.len() < limit {
            let more = search_once(&mut history, query, matching, limit, &found).await?;
            found.extend(more);
        }
    }
    found.truncate(limit);
    Ok(found.into_iter().map(|hit| hit.line).collect())
}

/// The best hits that are not in `known`. Asks the index for more while too few of its hits are useful.
async fn search_once(
    history: &mut SessionHistory,
    query: &str,
    matching: MatchMode,
    limit: usize,
    known: &[HistoryHit],
) -> Result<Vec<HistoryHit>> {
    let known: HashSet<Seq> = known.iter().map(|found| found.seq).collect();
    let (words, streams) = (query.to_owned(), vec![history.stream.clone()]);
    let mut search = SearchQuery { words, matching, streams, limit: 2 * limit + known.len() };
    loop {
        let hits = history.search(&search).await?;
        let is_all = hits.len() < search.limit || search.limit >= MAX_EXAMINED_HITS;
        let (mut primary, mut secondary) = (Vec::new(), Vec::new());
        for hit in hits.into_iter().filter(|hit| !known.contains(&hit.seq)) {
            match examine_hit(history, hit).await? {
                Some((found, HitRank::Primary)) => primary.push(found),
                Some((found, HitRank::Secondary)) => secondary.push(found),
                None => {}
            }
        }
        if is_all || known.len() + primary.len() + secondary.len() >= limit {
            primary.append(&mut secondary);
            return Ok(primary);
        }
        search.limit = MAX_EXAMINED_HITS.min(search.limit * 4);
    }
}

/// Reasoning and discarded text rank below the conversation, because they contain the same words and are seldom what
/// the model looks for.
enum HitRank {
    Primary,
    Secondary,
}

/// A hit as a line. `None` if it only repeats other records.
async fn examine_hit(history: &mut SessionHistory, hit: SearchHit) -> Result<Option<(HistoryHit, HitRank)>> {
    let Some(record) = history.one(hit.seq).await? else { return Ok(None) };
    let Ok(fact) = SessionRecord::decode(&record) else { return Ok(None) };
    if matches!(fact, SessionRecord::SystemMessage(_)) {
        return Ok(None);
    }
    let status = history.status(hit.seq, &fact).await?;
    let is_thought = matches!(&fact, SessionRecord::Block(Block { item: Item::Reasoning { .. }, .. }));
    let worth = if is_thought || status != BlockStatus::InConversation {
        HitRank::Secondary
    } else {
        HitRank::Primary
    };
    let Some(RecordView { who, .. }) = RecordView::of(fact) else { return Ok(None) };
    // Indented, so that no text can look like another hit.
    let excerpt = hit.excerpt.replace('\n', "\n  ");
    let line = format!("[#{}] {} {who}{}: {excerpt}", hit.seq, minute(record.at), status_suffix(status));
    Ok(Some((HistoryHit { seq: hit.seq, line }, worth)))
}
