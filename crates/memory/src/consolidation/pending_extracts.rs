//! The new extracts of all sessions that belong to a scope.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_journal::{Journal, import_mark};
use longhaul_protocol::{At, ExtractRecord, ExtractedItem, ItemSource, Seq, SessionId, Source, StreamName};

use crate::Result;
use crate::page_set::PageSet;
use crate::provenance::distrust_imported;
use crate::scope::ScopeFn;
use crate::stream_reader::read_all_after;

/// An extract with items that were not consolidated yet.
#[derive(Debug)]
pub(super) struct PendingExtract {
    pub(super) session: SessionId,
    pub(super) seq: Seq,
    pub(super) at: At,
    pub(super) items: Vec<ExtractedItem>,
}

impl PendingExtract {
    pub(super) fn source(&self, item: usize) -> ItemSource {
        ItemSource { session: self.session, seq: self.seq, item }
    }
}

/// The journal with the extracts, and the scopes of imported sessions.
pub(super) struct ExtractSources<'a> {
    pub(super) journal: &'a dyn Journal,
    pub(super) scope_of: &'a ScopeFn,
}

#[derive(Debug, Default)]
pub(super) struct PendingExtracts {
    /// The extracts of the scope that have items, the oldest first.
    pub(super) extracts: Vec<PendingExtract>,
    /// Each session with new extracts of any scope: how far its extracts were consolidated, and its last extract.
    pub(super) sessions: BTreeMap<SessionId, (Seq, Seq)>,
}

impl PendingExtracts {
    /// Loads the extracts of every session that the pages do not include yet.
    pub(super) async fn load(extracts: &ExtractSources<'_>, page_set: &PageSet) -> Result<Self> {
        let mut pending = Self::default();
        for stream in extracts.journal.streams().await? {
            if let Some(session) = stream.session_id().filter(|id| StreamName::extract(*id) == stream) {
                let read = page_set.read.get(&session).copied().unwrap_or_default();
                pending.load_session(extracts, &page_set.scope, session, read).await?;
            }
        }
        pending.extracts.sort_by_key(|extract| (extract.at, extract.session, extract.seq));
        Ok(pending)
    }

    async fn load_session(
        &mut self,
        extracts: &ExtractSources<'_>,
        scope: &str,
        session: SessionId,
        read: Seq,
    ) -> Result<()> {
        // Within a session the order of the records counts, even if the clock was set back.
        let mut latest = At(i64::MIN);
        let mark = import_mark(extracts.journal, session).await?;
        let scope_here = (extracts.scope_of)(&mark.key, Path::new(mark.work_dir.as_deref().unwrap_or("/")));
        let head = read_all_after(extracts.journal, &StreamName::extract(session), read, |record| {
            latest = latest.max(record.at);
            // Erased and damaged extracts are skipped.
            let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record) else { return };
            let seq = record.seq;
            let extracted = distrust_imported(seq, extracted, mark.foreign_extracts_through, &scope_here);
            if extracted.scope == scope && !extracted.items.is_empty() {
                self.extracts.push(PendingExtract { session, seq, at: latest, items: extracted.items });
            }
        })
        .await?;
        if head > read {
            self.sessions.insert(session, (read, head));
        }
        Ok(())
    }

    pub(super) fn items(&self) -> usize {
        self.extracts.iter().map(|extract| extract.items.len()).sum()
    }

    /// How far each session's extracts are read when the first `taken` extracts are consolidated. Lists only sessions
    /// whose position changes. Extracts of other scopes are skipped.
    pub(super) fn positions(&self, taken: usize) -> Vec<Source> {
        let mut positions = self.sessions.clone();
        for left in &self.extracts[taken..] {
            positions.entry(left.session).and_modify(|(_, through)| *through = (*through).min(left.seq - 1));
        }
        let moved = positions.into_iter().filter(|(_, (read, through))| through > read);
        moved.map(|(session, (_, through))| Source { session, through }).collect()
    }
}
