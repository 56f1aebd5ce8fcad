//! The events of a range of records.

use std::sync::Arc;

use longhaul_journal::{Journal, Page};
use longhaul_protocol::{Event, Record, Seq, SessionId, StreamName};

use crate::session::events::event_of;
use crate::session::state::State;
use crate::{Error, Result};

/// The events of a range of records, in their order. Holds one page of records in memory.
pub struct RecordedEvents {
    journal: Arc<dyn Journal>,
    key: String,
    stream: StreamName,
    state: State,
    through: Seq,
    page: std::vec::IntoIter<Record>,
}

impl RecordedEvents {
    pub(super) fn new(
        journal: Arc<dyn Journal>,
        key: &str,
        id: SessionId,
        state: State,
        through: Seq,
    ) -> Self {
        let (key, stream) = (key.to_owned(), StreamName::session(id));
        Self { journal, key, stream, state, through, page: vec![].into_iter() }
    }

    /// The next event; `None` at the end of the range.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            let Some(record) = self.next_record().await? else { return Ok(None) };
            let event = event_of(&self.state, &self.key, &record);
            let unreadable = |reason| Error::Unreadable { key: self.key.clone(), reason };
            self.state.apply(&record).map_err(unreadable)?;
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    async fn next_record(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.page.next() {
            return Ok(Some(record));
        }
        let from = self.state.head + 1;
        if from > self.through {
            return Ok(None);
        }
        let left = usize::try_from(self.through - from).unwrap_or(usize::MAX).saturating_add(1);
        let page = Page { records: Page::default().records.min(left), ..Page::default() };
        self.page = self.journal.read(&self.stream, from, page).await?.into_iter();
        Ok(self.page.next())
    }
}
