//! The record `imported`, which marks a session as imported.
//!
//! It follows the records of the file and is durable before the session has a name. So every imported session that
//! can be found by a key is marked. Its key is `imported/<n>`, so one look-up tells whether a session was ever
//! imported.

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
    /// The key to give it; `None` for its own.
    pub key: Option<String>,
    /// The folder in which it works from now on.
    pub work_dir: Option<String>,
    /// Who wrote the user's inputs in it.
    pub author: Author,
}

impl ImportOptions {
    /// An import of a stranger's session, under its own key, without a folder.
    pub fn at(at: At) -> Self {
        Self { at, key: None, work_dir: None, author: Author::Stranger }
    }
}

/// Who wrote the inputs that a file attributes to the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    /// Another person. Their words are data, never the importer's instructions.
    #[default]
    Stranger,
    /// The importer.
    Importer,
}

/// What the newest import of a session says about its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportMark {
    /// The position of the record `imported`; 0 if the session was never imported.
    pub seq: Seq,
    /// The key that the session was given.
    pub key: String,
    /// The folder that it works in.
    pub work_dir: Option<String>,
    /// The last record that came from a stranger's session.
    pub foreign_through: Seq,
    /// The last extract that was not made in this home.
    pub foreign_extracts_through: Seq,
}

impl ImportMark {
    fn from_record(record: &Record) -> Self {
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
/// Earlier imports that a file may contain. Finding the newest one reads each of them.
const MAX_IMPORTS: u64 = 1_000;

/// The key of the record of a session's nth import.
fn import_key(number: u64) -> String {
    format!("{IMPORTED}/{number}")
}

/// The hash of the key of a session's first import. A fork uses it for its copy of the mark.
pub fn first_import_key() -> Hash {
    Hash::of(import_key(1))
}

/// The record of the newest import of a session up to the record `through`; `None` if there is none.
pub async fn newest_import(
    journal: &dyn Journal,
    session: SessionId,
    through: Seq,
) -> Result<Option<Record>> {
    let stream = StreamName::session(session);
    let mut newest: Option<Record> = None;
    let mut number = 1;
    // A file may contain records under such keys. The one that this home's import appended comes after all of them.
    while let Some(seq) = journal.find(&stream, &import_key(number)).await? {
        number += 1;
        if seq > through {
            continue;
        }
        let record = record_at(journal, &stream, seq).await?;
        let is_newer = |record: &Record| newest.as_ref().is_none_or(|newest| newest.seq < record.seq);
        newest = record.filter(|record| record.kind == IMPORTED && is_newer(record)).or(newest);
    }
    Ok(newest)
}

/// What the newest import of a session says. The default if it was never imported. If the record is damaged,
/// everything before it counts as a stranger's.
pub async fn import_mark(journal: &dyn Journal, session: SessionId) -> Result<ImportMark> {
    match newest_import(journal, session, Seq::MAX).await {
        Ok(newest) => Ok(newest.as_ref().map(ImportMark::from_record).unwrap_or_default()),
        Err(Error::Damaged { seq, .. }) => Ok(ImportMark::from_body(seq, Imported::unknown(seq))),
        Err(error) => Err(error),
    }
}

/// The key and the folder that a session first had in this home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    pub key: String,
    pub work_dir: Option<String>,
}

/// The first key and folder of a session in this home, from its newest import, otherwise from its first record.
/// `None` if there is no such record or it can't be decoded.
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

/// What the mark says about the imported file.
pub(crate) struct ImportedFile<'a> {
    pub(crate) id: SessionId,
    pub(crate) key: &'a str,
    pub(crate) file_hash: Hash,
    /// The last records of the file's streams.
    pub(crate) session_head: Seq,
    pub(crate) inbox_head: Seq,
    pub(crate) extract_head: Seq,
    /// The newest import in the file.
    pub(crate) earlier: &'a ImportMark,
}

/// The earlier imports in a file.
pub(crate) struct EarlierImports {
    pub(crate) newest: ImportMark,
    count: u64,
    keys: HashSet<Hash>,
}

impl EarlierImports {
    pub(crate) fn new() -> Self {
        let keys = (1..=MAX_IMPORTS + 1).map(|number| Hash::of(import_key(number))).collect();
        Self { newest: ImportMark::default(), count: 0, keys }
    }

    /// Checks the session's next record. Fails if a file may not contain it.
    pub(crate) fn push(&mut self, record: &Record) -> std::result::Result<(), &'static str> {
        if record.kind != IMPORTED {
            let has_import_key = record.key.is_some_and(|key| self.keys.contains(&key));
            return if has_import_key { Err("the key is reserved for imports") } else { Ok(()) };
        }
        self.newest = ImportMark::from_record(record);
        self.count += 1;
        if self.count > MAX_IMPORTS { Err("it was imported too many times") } else { Ok(()) }
    }
}

/// Appends the record that marks a session as imported, after the records of the file.
pub(crate) async fn mark_imported(
    journal: &dyn Journal,
    lease: &Lease,
    file: &ImportedFile<'_>,
    options: &ImportOptions,
) -> Result<()> {
    let mut number = 1;
    while journal.find(&lease.stream, &import_key(number)).await?.is_some() {
        number += 1;
    }
    let mut facts: Vec<NewRecord> = Vec::new();
    if file.session_head == 0 {
        // The file has only an inbox, but every session has to begin with its creation.
        facts.push(
            SessionRecord::SessionCreated(SessionCreated {
                id: file.id,
                key: file.key.to_owned(),
                work_dir: options.work_dir.clone(),
                origin: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                parent: None,
            })
            .encode(),
        );
    }
    let own_seq = file.session_head + facts.len() as Seq + 1;
    let (foreign_through, foreign_extracts_through) = match options.author {
        Author::Stranger => (own_seq, file.extract_head),
        Author::Importer => {
            let earlier = file.earlier;
            (earlier.foreign_through, earlier.foreign_extracts_through.min(file.extract_head))
        }
    };
    let imported = Imported {
        file_hash: file.file_hash,
        at: options.at,
        key: file.key.to_owned(),
        work_dir: options.work_dir.clone(),
        mine: options.author == Author::Importer,
        inbox_through: file.inbox_head,
        foreign_through,
        foreign_extracts_through,
    };
    facts.push(SessionRecord::Imported(imported).encode().with_key(&import_key(number)));
    let append = Append::under(lease).expecting(file.session_head);
    journal.append(facts.into_iter().fold(append, Append::record)).await?;
    Ok(())
}
