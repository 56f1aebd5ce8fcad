//! What an import leaves on record, and how it is found again.
//!
//! The record `imported` follows the records of the file and is durable before the session has a name, so a session from a file that can be
//! found is always marked. It carries the key `imported/<n>`: one look-up tells whether a session was ever imported.

use std::collections::HashSet;

use longhaul_protocol::{
    At, Hash, Imported, NewRecord, Record, Seq, SessionCreated, SessionId, SessionRecord, StreamName,
};

use crate::{Append, Error, Journal, Lease, Result, record_at};

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
        Self::from_body(record.seq, record.decode().unwrap_or_else(|_| Imported::unknown(record.seq)))
    }

    fn from_body(seq: Seq, imported: Imported) -> Self {
        Self {
            seq,
            key: imported.key,
            work_dir: imported.work_dir,
            foreign_through: imported.foreign_through,
            foreign_extracts_through: imported.foreign_extracts_through,
        }
    }
}

const IMPORTED: &str = "imported";
/// Imports that a file may have on record. Finding the newest one looks at each of them.
const MAX_IMPORTS: u64 = 1_000;

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
        let record = record_at(journal, &stream, seq).await?;
        let is_newer = |record: &Record| newest.as_ref().is_none_or(|newest| newest.seq < record.seq);
        newest = record.filter(|record| record.kind == IMPORTED && is_newer(record)).or(newest);
        number += 1;
    }
    Ok(newest)
}

/// What the newest import of a session says; the default, if it was never imported. Where its record is damaged, nothing before it
/// counts as this user's.
pub async fn import_mark(journal: &dyn Journal, session: SessionId) -> Result<ImportMark> {
    match newest_import(journal, session).await {
        Ok(newest) => Ok(newest.as_ref().map(ImportMark::of).unwrap_or_default()),
        Err(Error::Damaged { seq, .. }) => Ok(ImportMark::from_body(seq, Imported::unknown(seq))),
        Err(error) => Err(error),
    }
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
    let first = record_at(journal, &StreamName::session(session), 1).await?;
    Ok(match first.as_ref().map(SessionRecord::decode) {
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

/// What the records of a file's session say of earlier imports.
pub(crate) struct EarlierImports {
    /// The newest of them.
    pub(crate) newest: ImportMark,
    count: u64,
    keys: HashSet<Hash>,
}

impl EarlierImports {
    pub(crate) fn none() -> Self {
        let keys = (1..=MAX_IMPORTS + 1).map(|number| Hash::of(key_of(number))).collect();
        Self { newest: ImportMark::default(), count: 0, keys }
    }

    /// Takes note of the session's next record, or says why a file may not have it.
    pub(crate) fn note(&mut self, record: &Record) -> std::result::Result<(), &'static str> {
        if record.kind != IMPORTED {
            let is_disguised = record.key.is_some_and(|key| self.keys.contains(&key));
            return if is_disguised { Err("only an import may have its key") } else { Ok(()) };
        }
        self.newest = ImportMark::of(record);
        self.count += 1;
        if self.count > MAX_IMPORTS { Err("it was imported too often") } else { Ok(()) }
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
