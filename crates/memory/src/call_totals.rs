//! How many model calls memory has made, and what they cost, by the records of its streams.

use longhaul_journal::{Journal, import_mark, records};
use longhaul_protocol::{ExtractRecord, MemoryRecord, Seq, SessionId, StreamName, Usage};

use crate::Result;

/// The number and the cost of memory's model calls. Calls that failed count too.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MemoryCalls {
    pub calls: u64,
    /// US dollars. `None` if no price is known.
    pub cost: Option<f64>,
}

impl MemoryCalls {
    pub fn add(&mut self, usages: &[Usage]) {
        self.calls += usages.len() as u64;
        let costs = usages.iter().filter_map(|usage| usage.cost);
        self.cost = self.cost.into_iter().chain(costs).reduce(|sum, cost| sum + cost);
    }
}

/// The calls for the extraction of a session. Those for an imported session were made elsewhere and don't count.
pub async fn extraction_calls(journal: &dyn Journal, session: SessionId) -> Result<MemoryCalls> {
    let stream = StreamName::extract(session);
    let imported = import_mark(journal, session).await?.foreign_extracts_through.min(Seq::MAX - 1);
    let mut cursor = records(journal, &stream, imported + 1);
    let mut total = MemoryCalls::default();
    while let Some(record) = cursor.next_undamaged().await? {
        match ExtractRecord::decode(&record) {
            Ok(ExtractRecord::Extracted(extracted)) => total.add(&extracted.usage),
            Ok(ExtractRecord::ExtractionFailed(failed)) => total.add(&failed.usage),
            _ => {}
        }
    }
    Ok(total)
}

/// The calls for the pages of a scope.
pub async fn consolidation_calls(journal: &dyn Journal, scope: &str) -> Result<MemoryCalls> {
    let Ok(stream) = StreamName::memory(scope) else { return Ok(MemoryCalls::default()) };
    let mut cursor = records(journal, &stream, 1);
    let mut total = MemoryCalls::default();
    while let Some(record) = cursor.next_undamaged().await? {
        if let Ok(MemoryRecord::PagesChanged(changed)) = MemoryRecord::decode(&record) {
            total.add(&changed.usage);
        }
    }
    Ok(total)
}
