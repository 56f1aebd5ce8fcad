//! The last known heads of all streams, in `heads.json`, noted at checkpoints and at exit. Each was durable before it
//! was noted, so a stream that ends before its noted head has lost its tail.

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

/// What was noted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Noted {
    format: u32,
    /// Where each stream ended.
    pub(crate) heads: BTreeMap<StreamName, Head>,
    /// Heads that were noted and that the journal did not have any more when it was next written. They stay, or
    /// going on would destroy the evidence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lost: BTreeMap<StreamName, Head>,
}

impl Noted {
    pub(crate) fn of(heads: BTreeMap<StreamName, Head>) -> Self {
        Self { format: FORMAT, heads, lost: BTreeMap::new() }
    }
}

/// What was noted; nothing, if nothing was yet.
pub(crate) fn load(home: &Home) -> Result<Noted> {
    let path = home.heads_file();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Noted::of(BTreeMap::new())),
        Err(error) => return Err(io_error(&path, &error)),
    };
    serde_json::from_slice(&bytes).map_err(|error| Error::Io {
        path,
        reason: format!("the noted heads can't be read ({error}); remove the file, it is made again"),
    })
}

/// Notes where these streams end now, by the journal itself.
pub(crate) fn note(home: &Home, journal: &Connection, streams: &BTreeSet<StreamName>) -> Result<()> {
    change(home, |noted| {
        for stream in streams {
            let ends = end_of(journal, stream, noted.heads.get(stream));
            let (head, is_whole) = ends.map_err(|error| failure(&home.journal_file(), &error))?;
            let before = if head == Head::EMPTY {
                noted.heads.remove(stream)
            } else {
                noted.heads.insert(stream.clone(), head)
            };
            if let (Some(before), false) = (before, is_whole) {
                noted.lost.entry(stream.clone()).or_insert(before);
            }
        }
        Ok(())
    })
}

/// Where a stream ends, and whether it still has the record that was noted as its last.
fn end_of(journal: &Connection, stream: &StreamName, noted: Option<&Head>) -> rusqlite::Result<(Head, bool)> {
    let Some(number) = rows::number_of(journal, stream)? else { return Ok((Head::EMPTY, true)) };
    let is_whole = match noted {
        Some(noted) => has_record(journal, number, *noted)?,
        None => true,
    };
    Ok((rows::head(journal, number)?, is_whole))
}

/// Whether the record at this place has this hash.
pub(crate) fn has_record(journal: &Connection, stream: StreamNumber, head: Head) -> rusqlite::Result<bool> {
    journal
        .prepare_cached("SELECT 1 FROM records WHERE id = ?1 AND hash = ?2")?
        .exists(params![stream.row(head.seq), head.hash.as_bytes()])
}

/// Notes that a stream is about to be removed. This comes first: a head that is not noted is no harm.
pub(crate) fn forget(home: &Home, stream: &StreamName) -> Result<()> {
    let noted = load(home)?;
    if !noted.heads.contains_key(stream) && !noted.lost.contains_key(stream) {
        // Most streams that are removed are young; a full disk must not keep them.
        return Ok(());
    }
    change(home, |noted| {
        noted.heads.remove(stream);
        noted.lost.remove(stream);
        Ok(())
    })
}

fn change(home: &Home, act: impl FnOnce(&mut Noted) -> Result<()>) -> Result<()> {
    // Two processes that note at the same time take turns; the lock goes with the handle.
    let folder = File::open(home.folder()).map_err(|error| io_error(home.folder(), &error))?;
    folder.lock().map_err(|error| io_error(home.folder(), &error))?;
    let mut noted = load(home)?;
    act(&mut noted)?;
    write(home, &noted)
}

/// Replaces everything that was noted.
pub(crate) fn write(home: &Home, noted: &Noted) -> Result<()> {
    let json = serde_json::to_vec(noted).expect("a map with string keys is always JSON");
    replace_file(&home.heads_file(), &json)
}
