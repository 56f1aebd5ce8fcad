//! The last known heads of all streams, in `heads.json`, noted at checkpoints and at exit. Each was durable before it
//! was noted, so a stream that ends before its noted head has lost its tail.

use std::collections::BTreeMap;
use std::fs::File;

use longhaul_protocol::StreamName;
use serde::{Deserialize, Serialize};

use crate::home::{Home, io_error, replace_file};
use crate::{Error, Head, Result};

const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Noted {
    format: u32,
    heads: BTreeMap<StreamName, Head>,
}

/// What was noted; nothing, if nothing was yet.
pub(crate) fn load(home: &Home) -> Result<BTreeMap<StreamName, Head>> {
    let path = home.heads_file();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(io_error(&path, &error)),
    };
    let noted: Noted = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Io { path, reason: format!("the noted heads can't be read: {error}") })?;
    Ok(noted.heads)
}

/// Notes heads that moved. An empty head means that the stream is gone.
pub(crate) fn note(home: &Home, moved: &BTreeMap<StreamName, Head>) -> Result<()> {
    // Two processes that note at the same time take turns; the lock goes with the handle.
    let folder = File::open(home.folder()).map_err(|error| io_error(home.folder(), &error))?;
    folder.lock().map_err(|error| io_error(home.folder(), &error))?;
    let mut heads = load(home).unwrap_or_default();
    for (stream, head) in moved {
        match heads.get(stream) {
            _ if *head == Head::EMPTY => drop(heads.remove(stream)),
            Some(known) if known.seq > head.seq => {}
            _ => drop(heads.insert(stream.clone(), *head)),
        }
    }
    write(home, heads)
}

/// Replaces everything that was noted.
pub(crate) fn write(home: &Home, heads: BTreeMap<StreamName, Head>) -> Result<()> {
    let json =
        serde_json::to_vec(&Noted { format: FORMAT, heads }).expect("a map with string keys is always JSON");
    replace_file(&home.heads_file(), &json)
}
