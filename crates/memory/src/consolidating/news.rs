//! What is new in the extracts of all sessions, as far as it belongs to a scope.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_journal::{Journal, import_mark};
use longhaul_protocol::{At, ExtractRecord, ExtractedItem, ItemSource, Seq, SessionId, Source, StreamName};

use crate::Result;
use crate::book::PageSet;
use crate::grounding::own_or_foreign;
use crate::paging::read_after;
use crate::scope::ScopeFn;

/// One extract with something in it that was not read yet.
#[derive(Debug)]
pub(super) struct Extract {
    pub(super) session: SessionId,
    pub(super) seq: Seq,
    pub(super) at: At,
    pub(super) items: Vec<ExtractedItem>,
}

impl Extract {
    /// The place of one of its items.
    pub(super) fn source(&self, item: usize) -> ItemSource {
        ItemSource { session: self.session, seq: self.seq, item }
    }
}

/// Where the extracts are, and the rule by which a session that was imported has its scope.
pub(super) struct Extracts<'a> {
    pub(super) journal: &'a dyn Journal,
    pub(super) scope_of: &'a ScopeFn,
}

/// Everything that was not read yet.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The extracts of the scope that have items, the oldest first.
    pub(super) extracts: Vec<Extract>,
    /// Each session in which anything is new, be it of the scope or not: how far it was read, and its last extract.
    pub(super) sessions: BTreeMap<SessionId, (Seq, Seq)>,
}

impl News {
    /// Reads on, in the extracts of every session, from where the book has read to.
    pub(super) async fn look(extracts: &Extracts<'_>, book: &PageSet) -> Result<Self> {
        let mut news = Self::default();
        for stream in extracts.journal.streams().await? {
            if let Some(session) = stream.session_id().filter(|id| StreamName::extract(*id) == stream) {
                let read = book.read.get(&session).copied().unwrap_or_default();
                news.look_at(extracts, &book.scope, session, read).await?;
            }
        }
        news.extracts.sort_by_key(|extract| (extract.at, extract.session, extract.seq));
        Ok(news)
    }

    async fn look_at(
        &mut self,
        extracts: &Extracts<'_>,
        scope: &str,
        session: SessionId,
        read: Seq,
    ) -> Result<()> {
        // Within a session the order is that of the records, even where a clock was put back.
        let mut latest = At(i64::MIN);
        let mark = import_mark(extracts.journal, session).await?;
        let scope_here = (extracts.scope_of)(&mark.key, Path::new(mark.work_dir.as_deref().unwrap_or("/")));
        let head = read_after(extracts.journal, &StreamName::extract(session), read, |record| {
            latest = latest.max(record.at);
            // What can't be read any more is passed over: there is nothing left in it.
            let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record) else { return };
            let seq = record.seq;
            let extracted = own_or_foreign(seq, extracted, mark.foreign_extracts_through, &scope_here);
            if extracted.scope == scope && !extracted.items.is_empty() {
                self.extracts.push(Extract { session, seq, at: latest, items: extracted.items });
            }
        })
        .await?;
        if head > read {
            self.sessions.insert(session, (read, head));
        }
        Ok(())
    }

    /// How many items there are.
    pub(super) fn items(&self) -> usize {
        self.extracts.iter().map(|extract| extract.items.len()).sum()
    }

    /// How far the extracts of sessions are read, once the first so many extracts are: only where that is further than before. What belongs
    /// to other scopes is passed.
    pub(super) fn positions(&self, taken: usize) -> Vec<Source> {
        let mut positions = self.sessions.clone();
        for left in &self.extracts[taken..] {
            positions.entry(left.session).and_modify(|(_, through)| *through = (*through).min(left.seq - 1));
        }
        let moved = positions.into_iter().filter(|(_, (read, through))| through > read);
        moved.map(|(session, (_, through))| Source { session, through }).collect()
    }
}
