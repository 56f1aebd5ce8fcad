//! Where the text of a memory page was said.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::{Journal, record_at};
use longhaul_memory::PageSet;
use longhaul_protocol::{ExtractRecord, ItemSource, Seq, SessionId, StreamName};
use schemars::JsonSchema;
use serde::Serialize;

use super::pages::recorded_page_changes;
use crate::Result;

/// A record that a page was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageSource {
    /// The key of the session.
    pub session: String,
    /// The record in which it was said.
    pub seq: Seq,
}

/// The records that a page was made from, up to its change `version`: at most `limit`, those of the newest changes first. What was said in
/// sessions that were deleted, and what was erased, is left out.
pub async fn page_sources(
    journal: &dyn Journal,
    pages: &PageSet,
    name: &str,
    version: Seq,
    limit: usize,
) -> Result<Vec<PageSource>> {
    let (changes, _) = recorded_page_changes(journal, pages).await?;
    let newest_first = changes.iter().rev().filter(|change| change.seq <= version);
    let of_page =
        newest_first.flat_map(|change| change.changed.pages.iter().filter(|page| page.page == name));
    let cited: Vec<ItemSource> = of_page.flat_map(|page| page.sources.iter().copied()).collect();
    let (mut sources, mut seen) = (Vec::new(), BTreeSet::new());
    let mut keys: BTreeMap<SessionId, Option<String>> = BTreeMap::new();
    for item in cited {
        let known = match keys.get(&item.session) {
            Some(known) => known.clone(),
            None => {
                let key = journal.session_with_id(item.session).await?.map(|entry| entry.key);
                keys.entry(item.session).or_insert(key).clone()
            }
        };
        let Some(session) = known else { continue };
        for seq in records_of(journal, item).await {
            if seen.insert((item.session, seq)) {
                sources.push(PageSource { session: session.clone(), seq });
            }
            if sources.len() == limit {
                return Ok(sources);
            }
        }
    }
    Ok(sources)
}

/// The records that an extracted item came from. None if the extract can't be read.
async fn records_of(journal: &dyn Journal, item: ItemSource) -> Vec<Seq> {
    let record = record_at(journal, &StreamName::extract(item.session), item.seq).await.ok().flatten();
    match record.as_ref().map(ExtractRecord::decode) {
        Some(Ok(ExtractRecord::Extracted(extracted))) => {
            extracted.items.get(item.item).map(|item| item.sources.clone()).unwrap_or_default()
        }
        _ => vec![],
    }
}
