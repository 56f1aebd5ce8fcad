//! What the index reads of a journal. Each engine has its own way to read it; the index is the same for all.

use std::path::Path;

use longhaul_protocol::{Hash, Seq, SessionId, StreamName};
use rusqlite::{Connection, OptionalExtension};

use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::{failure, known_heads, verify};
use crate::{Head, Page, Result};

/// A journal, as the search index reads it: on a thread that may wait.
pub trait IndexSource {
    /// The streams whose names begin with `prefix`, with their heads.
    fn heads(&self, prefix: &str) -> Result<Vec<(StreamNumber, StreamName, Head)>>;

    /// The number and the head of a stream, if there is one.
    fn head(&self, stream: &StreamName) -> Result<Option<(StreamNumber, Head)>>;

    /// Whether the record at this position has this hash.
    fn has_record(&self, stream: StreamNumber, head: Head) -> Result<bool>;

    /// At most a page of rows of a stream.
    fn page(&self, stream: (StreamNumber, &StreamName), from: Seq, page: Page) -> Result<Vec<ScannedRow>>;

    /// The first readable record from `broken` on.
    fn next_readable(&self, stream: StreamNumber, broken: Seq) -> Option<Seq>;

    /// The bytes of a blob; `None` if the journal doesn't have them.
    fn blob(&self, hash: Hash) -> Result<Option<Vec<u8>>>;

    /// The key of a session.
    fn session_key(&self, id: SessionId) -> Result<Option<String>>;
}

impl IndexSource for Connection {
    fn heads(&self, prefix: &str) -> Result<Vec<(StreamNumber, StreamName, Head)>> {
        rows::heads(self, prefix).map_err(|error| journal_error(self, &error))
    }

    fn head(&self, stream: &StreamName) -> Result<Option<(StreamNumber, Head)>> {
        let read = || match rows::stream_number(self, stream)? {
            Some(number) => Ok(Some((number, rows::head(self, number)?))),
            None => Ok(None),
        };
        read().map_err(|error| journal_error(self, &error))
    }

    fn has_record(&self, stream: StreamNumber, head: Head) -> Result<bool> {
        known_heads::has_record(self, stream, head).map_err(|error| journal_error(self, &error))
    }

    fn page(&self, stream: (StreamNumber, &StreamName), from: Seq, page: Page) -> Result<Vec<ScannedRow>> {
        rows::page(self, stream, from, page).map_err(|error| journal_error(self, &error))
    }

    fn next_readable(&self, stream: StreamNumber, broken: Seq) -> Option<Seq> {
        verify::next_readable(self, stream, broken)
    }

    fn blob(&self, hash: Hash) -> Result<Option<Vec<u8>>> {
        rows::blob(self, hash).map_err(|error| journal_error(self, &error))
    }

    fn session_key(&self, id: SessionId) -> Result<Option<String>> {
        self.prepare_cached("SELECT key FROM sessions WHERE id = ?1")
            .and_then(|mut keys| keys.query_row([id.to_string()], |row| row.get(0)).optional())
            .map_err(|error| journal_error(self, &error))
    }
}

fn journal_error(journal: &Connection, error: &rusqlite::Error) -> crate::Error {
    failure(Path::new(journal.path().unwrap_or("the journal")), error)
}
