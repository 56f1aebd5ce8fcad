use longhaul_journal::{Result, SearchHit, SearchQuery};
use longhaul_protocol::{Block, Item, SessionRecord};

use super::format::{RecordView, minute, status_suffix};
use super::reader::{BlockStatus, SessionHistory};

/// The most hits to examine in order to fill the limit.
const MAX_EXAMINED_HITS: usize = 1_000;

/// Records that a search of one session found.
pub(crate) struct FoundRecords {
    /// One line each, with its reference in brackets, the best first.
    pub(crate) lines: Vec<String>,
    /// Records that are not searched yet.
    pub(crate) unindexed: u64,
}

/// The best records. Asks the index for more while too few of its hits are useful.
pub(super) async fn find(mut history: SessionHistory, query: &str, limit: usize) -> Result<FoundRecords> {
    let mut search = SearchQuery::new(query, 2 * limit).within(vec![history.stream.clone()]);
    loop {
        let found = history.search(&search).await?;
        let is_all = found.hits.len() < search.limit || search.limit >= MAX_EXAMINED_HITS;
        let (mut primary, mut secondary) = (Vec::new(), Vec::new());
        for hit in found.hits {
            match examine_hit(&mut history, hit).await? {
                Some((line, HitRank::Primary)) => primary.push(line),
                Some((line, HitRank::Secondary)) => secondary.push(line),
                None => {}
            }
        }
        if is_all || primary.len() + secondary.len() >= limit {
            primary.append(&mut secondary);
            primary.truncate(limit);
            return Ok(FoundRecords { lines: primary, unindexed: found.unindexed });
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
async fn examine_hit(history: &mut SessionHistory, hit: SearchHit) -> Result<Option<(String, HitRank)>> {
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
    Ok(Some((line, worth)))
}
