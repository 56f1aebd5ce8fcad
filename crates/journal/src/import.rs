//! What an import leaves on record, and how it is found again.
//!
//! The record `imported` follows the records of the file and is durable before the session has a name, so a session from a file that can be
//! found is always marked. It carries the key `imported/<n>`: one look-up tells whether a session was ever imported.

use longhaul_protocol::{
    At, Hash, Imported, NewRecord, Record, Seq, SessionCreated, SessionId, SessionRecord, StreamName,
};

use crate::{Append, Journal, Lease, Page, Result};

/// How a session is imported.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The time of the import.
    pub at: At,
    /// The key to give it; without one, its own.
    pub key: Option<String>,
    /// The folder that it works in from here on.
    pub work_dir: Option<String>,
    /// Who its user was.
    pub author: Author,
}

impl ImportOptions {
    /// An import of somebody else's session, under its own key, without a folder.
    pub fn at(at: At) -> Self {
        Self { at, key: None, work_dir: None, author: Author::Stranger }
    }
}

/// Who said what a file gives as the user's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    /// Somebody else. Their words are data, never the importer's wishes.
    #[default]
    Stranger,
    /// The importer.
    Importer,
}

/// What the newest import of a session says of its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportMark {
    /// The record that says so; 0 if the session was never imported.
    pub seq: Seq,
    /// The key that the session was given.
    pub key: String,
    /// The folder that it works in.
    pub work_dir: Option<String>,
    /// The last record whose user is not the importer.
    pub foreign_through: Seq,
    /// The last extract that was not written here.
    pub foreign_extracts_through: Seq,
}

impl ImportMark {
    /// What a record of kind `imported` says.
    fn of(record: &Record) -> Self {
        let imported: Imported = record.decode().unwrap_or_else(|_| Imported::unknown(record.seq));
        Self {
            seq: record.seq,
            key: imported.key,
            work_dir: imported.work_dir,
            foreign_through: imported.foreign_through,
            foreign_extracts_through: imported.foreign_extracts_through,
        }
    }
}

const IMPORTED: &str = "imported";

/// The key of the record of a session's nth import.
fn key_of(number: u64) -> String {
    format!("{IMPORTED}/{number}")
}

/// The hash of the key of a session's first import: a fork keeps it with the mark.
pub fn first_import_key() -> Hash {
    Hash::of(key_of(1))
}

/// The record of the newest import of a session, if it was ever imported.
pub async fn newest_import(journal: &dyn Journal, session: SessionId) -> Result<Option<Record>> {
    let stream = StreamName::session(session);
    let mut newest: Option<Record> = None;
    let mut number = 1;
    // A file may hold any record under such a key. The one that the import appended stands after all of them.
    while let Some(seq) = journal.find(&stream, &key_of(number)).await? {
        let record = journal.read(&stream, seq, Page { records: 1, bytes: 0 }).await?.pop();
        let is_newer = |record: &Record| newest.as_ref().is_none_or(|newest| newest.seq < record.seq);
        newest = record.filter(|record| record.kind == IMPORTED && is_newer(record)).or(newest);
        number += 1;
    }
    Ok(newest)
}

/// What the newest import of a session says; the default, if it was never imported.
pub async fn import_mark(journal: &dyn Journal, session: SessionId) -> Result<ImportMark> {
    let newest = newest_import(journal, session).await?;
    Ok(newest.as_ref().map(ImportMark::of).unwrap_or_default())
}

/// The key and the folder that a session began with in this home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    /// The key.
    pub key: String,
    /// The folder.
    pub work_dir: Option<String>,
}

/// Where a session began in this home: what its newest import says, else its first record. Nothing, if that can't be read, or there is none.
pub async fn session_place(journal: &dyn Journal, session: SessionId) -> Result<Option<SessionPlace>> {
    let mark = import_mark(journal, session).await?;
    if mark.seq > 0 {
        return Ok(Some(SessionPlace { key: mark.key, work_dir: mark.work_dir }));
    }
    let first = journal.read(&StreamName::session(session), 1, Page { records: 1, bytes: 0 }).await?;
    Ok(match first.first().map(SessionRecord::decode) {
        Some(Ok(SessionRecord::SessionCreated(SessionCreated { key, work_dir, .. }))) => {
            Some(SessionPlace { key, work_dir })
        }
        _ => None,
    })
}

/// A file that is imported, as far as the mark is about it.
pub(crate) struct Brought<'a> {
    pub(crate) id: SessionId,
    pub(crate) key: &'a str,
    pub(crate) file_hash: Hash,
    /// The last records of the file's streams.
    pub(crate) session_head: Seq,
    pub(crate) inbox_head: Seq,
    pub(crate) extract_head: Seq,
    /// What the newest import on record in the file says.
    pub(crate) earlier: &'a ImportMark,
}

/// What the file's own records say of earlier imports.
pub(crate) fn note_earlier(earlier: &mut ImportMark, record: &Record) {
    if record.kind == IMPORTED {
        *earlier = ImportMark::of(record);
    }
}

/// Appends the record that marks a session as imported, after the records of the file.
pub(crate) async fn mark_imported(
    journal: &dyn Journal,
    lease: &Lease,
    brought: &Brought<'_>,
    options: &ImportOptions,
) -> Result<()> {
    let mut number = 1;
    while journal.find(&lease.stream, &key_of(number)).await?.is_some() {
        number += 1;
    }
    let mut facts: Vec<NewRecord> = Vec::new();
    if brought.session_head == 0 {
        // Only its inbox was used. The first record of a session says how it began.
        facts.push(
            SessionRecord::SessionCreated(SessionCreated {
                id: brought.id,
                key: brought.key.to_owned(),
                work_dir: options.work_dir.clone(),
                origin: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
            .encode(),
        );
    }
    let own_seq = brought.session_head + facts.len() as Seq + 1;
    let (foreign_through, foreign_extracts_through) = match options.author {
        Author::Stranger => (own_seq, brought.extract_head),
        Author::Importer => {
            let earlier = brought.earlier;
            (earlier.foreign_through, earlier.foreign_extracts_through.min(brought.extract_head))
        }
    };
    let imported = Imported {
        file_hash: brought.file_hash,
        at: options.at,
        key: brought.key.to_owned(),
        work_dir: options.work_dir.clone(),
        mine: options.author == Author::Importer,
        inbox_through: brought.inbox_head,
        foreign_through,
        foreign_extracts_through,
    };
    facts.push(SessionRecord::Imported(imported).encode().with_key(&key_of(number)));
    let append = Append::under(lease).expecting(brought.session_head);
    journal.append(facts.into_iter().fold(append, Append::record)).await?;
    Ok(())
}
