//! The last known head of every stream, in `heads.json`, written at checkpoints and at exit. A head is durable before it
//! is written here, so a stream that ends before its known head has lost its tail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use longhaul_protocol::StreamName;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::home::{Home, io_error, replace_file};
use crate::sqlite::failure;
use crate::sqlite::rows::{self, StreamNumber};
use crate::{Error, Head, Result};

const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KnownHeads {
    format: u32,
    pub(crate) heads: BTreeMap<StreamName, Head>,
    /// Known heads that were missing when their stream was next written. They are kept, because otherwise further
    /// appends would destroy the evidence of the loss.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lost: BTreeMap<StreamName, Head>,
}

impl KnownHeads {
    pub(crate) fn new(heads: BTreeMap<StreamName, Head>) -> Self {
        Self { format: FORMAT, heads, lost: BTreeMap::new() }
    }
}

/// Reads `heads.json`; empty if there is none.
pub(crate) fn load(home: &Home) -> Result<KnownHeads> {
    let path = home.heads_file();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(KnownHeads::new(BTreeMap::new()));
        }
        Err(error) => return Err(io_error(&path, &error)),
    };
    serde_json::from_slice(&bytes).map_err(|error| Error::Io {
        path,
        reason: format!("can't read the file: {error}; remove it, longhaul writes it again"),
    })
}

/// Records the current ends of these streams, as the journal itself has them.
pub(crate) fn update(home: &Home, journal: &Connection, streams: &BTreeSet<StreamName>) -> Result<()> {
    prepare_update(home, journal, streams)?.write()
}

/// Heads that are about to be written.
pub(crate) struct HeadsUpdate<'a> {
    home: &'a Home,
    known: KnownHeads,
    /// Other processes wait until this is dropped.
    _lock: File,
}

impl HeadsUpdate<'_> {
    pub(crate) fn write(&self) -> Result<()> {
        write(self.home, &self.known)
    }
}

/// Reads the current ends of these streams.
pub(crate) fn prepare_update<'a>(
    home: &'a Home,
    journal: &Connection,
    streams: &BTreeSet<StreamName>,
) -> Result<HeadsUpdate<'a>> {
    let lock = lock(home)?;
    let mut known = load(home)?;
    for stream in streams {
        let head = current_head(journal, stream, known.heads.get(stream));
        let (head, is_whole) = head.map_err(|error| failure(&home.journal_file(), &error))?;
        let before = if head == Head::EMPTY {
            known.heads.remove(stream)
        } else {
            known.heads.insert(stream.clone(), head)
        };
        if let (Some(before), false) = (before, is_whole) {
            known.lost.entry(stream.clone()).or_insert(before);
        }
    }
    Ok(HeadsUpdate { home, known, _lock: lock })
}

/// The current end of a stream, and whether it still has the record that was known as its last.
fn current_head(
    journal: &Connection,
    stream: &StreamName,
    known: Option<&Head>,
) -> rusqlite::Result<(Head, bool)> {
    let Some(number) = rows::stream_number(journal, stream)? else { return Ok((Head::EMPTY, true)) };
    let is_whole = match known {
        Some(known) => has_record(journal, number, *known)?,
        None => true,
    };
    Ok((rows::head(journal, number)?, is_whole))
}

/// Whether the record at this position has this hash.
pub(crate) fn has_record(journal: &Connection, stream: StreamNumber, head: Head) -> rusqlite::Result<bool> {
    journal
        .prepare_cached("SELECT 1 FROM records WHERE id = ?1 AND hash = ?2")?
        .exists(params![stream.row_id(head.seq), head.hash.as_bytes()])
}

/// Forgets the head of a stream before it is removed. If the removal then fails, the missing entry does no harm.
pub(crate) fn forget(home: &Home, stream: &StreamName) -> Result<()> {
    let known = load(home)?;
    if !known.heads.contains_key(stream) && !known.lost.contains_key(stream) {
        // Most removed streams are young and have no entry. A full disk must not prevent their removal.
        return Ok(());
    }
    let _lock = lock(home)?;
    let mut known = load(home)?;
    known.heads.remove(stream);
    known.lost.remove(stream);
    write(home, &known)
}

/// Processes take turns. The lock ends when the handle is closed.
fn lock(home: &Home) -> Result<File> {
    let folder = File::open(home.folder()).map_err(|error| io_error(home.folder(), &error))?;
    folder.lock().map_err(|error| io_error(home.folder(), &error))?;
    Ok(folder)
}

/// Replaces the file.
pub(crate) fn write(home: &Home, known: &KnownHeads) -> Result<()> {
    let path = home.heads_file();
    let json = serde_json::to_vec(known).map_err(|error| io_error(&path, &error.into()))?;
    replace_file(&path, &json)
}
