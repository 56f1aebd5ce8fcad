//! Cursors over more than one page: the records of a stream, and all sessions. Each holds one page in memory.

use std::vec;

use longhaul_protocol::{Record, Seq, StreamName};

use crate::{Error, Journal, Page, Result, SessionEntry};

/// Entries that [`SessionCursor`] reads at a time.
const SESSION_PAGE: usize = 500;

/// Reads a stream record by record, from `from` to its end.
pub fn records<'a>(journal: &'a dyn Journal, stream: &StreamName, from: Seq) -> RecordCursor<'a> {
    RecordCursor {
        journal,
        stream: stream.clone(),
        next: from.max(1),
        through: Seq::MAX,
        page: Page::default(),
        buffer: Vec::new().into_iter(),
    }
}

/// The record at one position. `None` past the end of the stream.
pub async fn record_at(journal: &dyn Journal, stream: &StreamName, seq: Seq) -> Result<Option<Record>> {
    Ok(journal.read(stream, seq, Page { records: 1, bytes: 0 }).await?.pop())
}

/// Lists all sessions in the order of their keys, including those in the trash.
pub fn all_sessions(journal: &dyn Journal) -> SessionCursor<'_> {
    SessionCursor { journal, after: None, buffer: Vec::new().into_iter() }
}

/// A position in a stream that moves forward with every record read. See [`records`].
pub struct RecordCursor<'a> {
    journal: &'a dyn Journal,
    stream: StreamName,
    /// The position after the last record in the buffer, or after a damaged one.
    next: Seq,
    through: Seq,
    page: Page,
    buffer: vec::IntoIter<Record>,
}

impl RecordCursor<'_> {
    /// Ends with the record at `last`, inclusive.
    #[must_use]
    pub fn through(self, last: Seq) -> Self {
        Self { through: last, ..self }
    }

    /// Reads pages of this size instead of [`Page::default`].
    #[must_use]
    pub fn in_pages_of(self, page: Page) -> Self {
        Self { page, ..self }
    }

    /// The next record. `None` at the end. A later call finds records that were appended meanwhile.
    ///
    /// After [`Error::Damaged`] the cursor is after the damaged record, and the caller may continue.
    pub async fn next(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.buffer.next() {
            return Ok(Some(record));
        }
        if self.next > self.through {
            return Ok(None);
        }
        let left = usize::try_from(self.through - self.next).unwrap_or(usize::MAX).saturating_add(1);
        let page = Page { records: self.page.records.min(left), ..self.page };
        match self.journal.read(&self.stream, self.next, page).await {
            Ok(page) => {
                self.next = page.last().map_or(self.next, |last| last.seq + 1);
                self.buffer = page.into_iter();
                Ok(self.buffer.next())
            }
            Err(Error::Damaged { stream, seq, reason }) => {
                // Where the file itself is corrupt, every place is damaged, also those past the end.
                let head = self.journal.head(&self.stream).await?.seq;
                if self.next > head {
                    return Ok(None);
                }
                self.next = self.next.max(seq).min(head) + 1;
                Err(Error::Damaged { stream, seq, reason })
            }
            Err(error) => Err(error),
        }
    }

    /// The next record that can be read. Skips damaged ones: `verify` reports them.
    pub async fn next_undamaged(&mut self) -> Result<Option<Record>> {
        loop {
            match self.next().await {
                Err(Error::Damaged { .. }) => {}
                read => return read,
            }
        }
    }

    /// The position of the next record, after those that were read or skipped.
    pub fn next_seq(&self) -> Seq {
        self.next - self.buffer.len() as Seq
    }

    /// All records that are left.
    pub async fn collect(mut self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        while let Some(record) = self.next().await? {
            records.push(record);
        }
        Ok(records)
    }
}

/// A position in the list of sessions. See [`all_sessions`].
pub struct SessionCursor<'a> {
    journal: &'a dyn Journal,
    after: Option<String>,
    buffer: vec::IntoIter<SessionEntry>,
}

impl SessionCursor<'_> {
    /// The next session; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<SessionEntry>> {
        if self.buffer.len() == 0 {
            let page = self.journal.sessions(self.after.as_deref(), SESSION_PAGE).await?;
            self.after = page.last().map(|last| last.key.clone()).or(self.after.take());
            self.buffer = page.into_iter();
        }
        Ok(self.buffer.next())
    }

    /// All sessions that are left.
    pub async fn collect(mut self) -> Result<Vec<SessionEntry>> {
        let mut sessions = Vec::new();
        while let Some(entry) = self.next().await? {
            sessions.push(entry);
        }
        Ok(sessions)
    }
}
