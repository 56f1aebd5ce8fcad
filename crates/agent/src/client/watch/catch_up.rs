//! Reading the records whose events had no room in a watcher's queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use longhaul_journal::{Journal, Page};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::{Gap, Missed, Watched};
use crate::replay::load_through;
use crate::session::events::event_of;
use crate::session::state::State;

/// What was missed and is made good from the journal, session by session and page by page. All progress is kept here, so a watcher
/// that gives up in the middle of a read goes on from there.
pub(super) struct CatchUp {
    journal: Option<Arc<dyn Journal>>,
    gaps: BTreeMap<Option<SessionId>, Gap>,
    reading: Option<SessionGap>,
    ready: VecDeque<Watched>,
}

/// The gap that is being read.
struct SessionGap {
    key: String,
    id: SessionId,
    /// The session up to the last record that was read.
    state: State,
    through: Seq,
}

impl CatchUp {
    /// Without a journal a watcher is told what it missed.
    pub(super) fn new(journal: Option<Arc<dyn Journal>>) -> Self {
        Self { journal, gaps: BTreeMap::new(), reading: None, ready: VecDeque::new() }
    }

    pub(super) fn begin(&mut self, missed: Missed) {
        if self.journal.is_none() {
            self.ready.push_back(missed.told());
            return;
        }
        if missed.live > 0 {
            self.ready.push_back(Watched::Missed { events: missed.live, from: None });
        }
        self.gaps = missed.gaps;
    }

    /// The next event of what was missed; nothing when all of it was seen.
    pub(super) async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(watched) = self.ready.pop_front() {
                return Some(watched);
            }
            if self.reading.is_none() && self.gaps.is_empty() {
                return None;
            }
            if self.read().await.is_err() {
                self.give_up();
            }
        }
    }

    /// The same without reading the journal: what was not read yet is told as missed.
    pub(super) fn next_without_reading(&mut self) -> Option<Watched> {
        if self.ready.is_empty() {
            self.give_up();
        }
        self.ready.pop_front()
    }

    /// What can't be read is told as missed.
    fn give_up(&mut self) {
        let reading = self.reading.take().map(|reading| {
            let from = reading.state.head + 1;
            Watched::Missed { events: reading.through + 1 - from, from: Some(from) }
        });
        let waiting = || {
            let (_, gap) = self.gaps.pop_first()?;
            Some(Watched::Missed { events: gap.events, from: Some(gap.from) })
        };
        self.ready.extend(reading.or_else(waiting));
    }

    /// Reads the next page, or finds the session that it is of.
    async fn read(&mut self) -> crate::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let Some(reading) = &mut self.reading else {
            let Some((id, gap)) = self.gaps.first_key_value() else { return Ok(()) };
            let missing = || longhaul_journal::Error::NoSuchSession { key: gap.key.clone() };
            let id = id.ok_or_else(missing)?;
            let state = load_through(&**journal, &gap.key, id, gap.from - 1).await?;
            if let Some((_, Gap { key, through, .. })) = self.gaps.pop_first() {
                self.reading = Some(SessionGap { key, id, state, through });
            }
            return Ok(());
        };
        let next = reading.state.head + 1;
        let page = journal.read(&StreamName::session(reading.id), next, Page::default()).await?;
        for record in page.iter().filter(|record| record.seq <= reading.through) {
            let event = event_of(&reading.state, &reading.key, record);
            let unreadable = |reason| crate::Error::Unreadable { key: reading.key.clone(), reason };
            reading.state.apply(record).map_err(unreadable)?;
            self.ready.extend(event.map(Watched::Event));
        }
        if reading.state.head >= reading.through {
            self.reading = None;
        } else if page.is_empty() {
            // The session was deleted meanwhile.
            return Err(longhaul_journal::Error::NoSuchSession { key: reading.key.clone() }.into());
        }
        Ok(())
    }
}
