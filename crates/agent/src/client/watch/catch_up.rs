//! Reads the records whose events did not fit into a watcher's queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use longhaul_journal::{Journal, Page};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::{MissedEvents, RecordGap, Watched};
use crate::replay::load_through;
use crate::session::events::event_of;
use crate::session::state::State;

/// The missed records of a watcher, read session by session and page by page. All progress is stored here, so a
/// cancelled read continues where it stopped.
pub(super) struct CatchUp {
    journal: Option<Arc<dyn Journal>>,
    gaps: BTreeMap<Option<SessionId>, RecordGap>,
    open: Option<OpenGap>,
    ready: VecDeque<Watched>,
}

/// The gap that is being read.
struct OpenGap {
    key: String,
    id: SessionId,
    /// The session up to the last record that was read.
    state: State,
    through: Seq,
}

impl CatchUp {
    /// Without a journal, missed events are only reported.
    pub(super) fn new(journal: Option<Arc<dyn Journal>>) -> Self {
        Self { journal, gaps: BTreeMap::new(), open: None, ready: VecDeque::new() }
    }

    pub(super) fn begin(&mut self, missed: MissedEvents) {
        if self.journal.is_none() {
            self.ready.push_back(missed.to_watched());
            return;
        }
        if missed.live > 0 {
            self.ready.push_back(Watched::Missed { events: missed.live, from: None });
        }
        self.gaps = missed.gaps;
    }

    /// The next missed event; `None` when all were seen.
    pub(super) async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.ready.pop_front() {
                return Some(watched);
            }
            if self.open.is_none() && self.gaps.is_empty() {
                return None;
            }
            if self.read_next().await.is_err() {
                self.skip_gap();
            }
        }
    }

    /// Like [`next`](Self::next), but without reading the journal: gaps that are not read yet are reported.
    pub(super) fn next_without_reading(&mut self) -> Option<Watched> {
        if self.ready.is_empty() {
            self.skip_gap();
        }
        self.ready.pop_front()
    }

    /// Reports a gap instead of reading it.
    fn skip_gap(&mut self) {
        let open = self.open.take().map(|open| {
            let from = open.state.head + 1;
            Watched::Missed { events: open.through + 1 - from, from: Some(from) }
        });
        let unopened = || {
            let (_, gap) = self.gaps.pop_first()?;
            Some(Watched::Missed { events: gap.events, from: Some(gap.from) })
        };
        self.ready.extend(open.or_else(unopened));
    }

    /// Reads the next page of the open gap, or opens the next gap.
    async fn read_next(&mut self) -> crate::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let Some(open) = &mut self.open else {
            let Some((id, gap)) = self.gaps.first_key_value() else { return Ok(()) };
            let missing = || longhaul_journal::Error::NoSuchSession { key: gap.key.clone() };
            let id = id.ok_or_else(missing)?;
            let state = load_through(&**journal, &gap.key, id, gap.from - 1).await?;
            if let Some((_, RecordGap { key, through, .. })) = self.gaps.pop_first() {
                self.open = Some(OpenGap { key, id, state, through });
            }
            return Ok(());
        };
        let next = open.state.head + 1;
        let page = journal.read(&StreamName::session(open.id), next, Page::default()).await?;
        for record in page.iter().filter(|record| record.seq <= open.through) {
            let event = event_of(&open.state, &open.key, record);
            let unreadable = |reason| crate::Error::Unreadable { key: open.key.clone(), reason };
            open.state.apply(record).map_err(unreadable)?;
            self.ready.extend(event.map(Watched::Event));
        }
        if open.state.head >= open.through {
            self.open = None;
        } else if page.is_empty() {
            // The session was deleted meanwhile.
            return Err(longhaul_journal::Error::NoSuchSession { key: open.key.clone() }.into());
        }
        Ok(())
    }
}
