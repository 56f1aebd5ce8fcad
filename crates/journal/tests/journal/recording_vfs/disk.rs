//! The disk as it could be after power loss, from the notes of what was written and synced.

use std::collections::BTreeMap;
use std::path::Path;

use super::Change;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// For each name, the files that it may stand for after power loss; the last is the one that it stands for now.
#[derive(Default)]
pub(crate) struct Disk(BTreeMap<String, Vec<Option<File>>>);

/// What of a file is certain, and what was changed since then.
#[derive(Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl Disk {
    /// Does what the log says; `coin` decides what becomes of writes whose sync was refused.
    pub(crate) fn apply(&mut self, name: &str, change: &Change, coin: impl FnMut() -> bool) {
        let files = self.0.entry(name.to_owned()).or_insert_with(|| vec![None]);
        match (change, files.last_mut().and_then(Option::as_mut)) {
            (Change::Created, _) => files.push(Some(File::default())),
            (Change::Deleted, _) => files.push(None),
            (Change::Replaced(bytes), _) => {
                *files = vec![Some(File { durable: bytes.clone(), pending: Vec::new() })];
            }
            (Change::Written(..) | Change::Truncated(_), Some(file)) => file.pending.push(change.clone()),
            (Change::Synced, Some(file)) => {
                file.settle(|| true);
                // The first sync of a file also makes its name durable.
                files.drain(..files.len() - 1);
            }
            // Some systems drop what they could not write, and say nothing when they are asked again.
            (Change::SyncRefused, Some(file)) => file.settle(coin),
            (_, None) => panic!("{name} was not there when it was changed: {change:?}"),
        }
    }

    /// Fills a folder as it could be: `lasts` decides, change by change, what has reached the disk.
    pub(crate) fn after_power_loss(&self, folder: &Path, mut lasts: impl FnMut() -> bool) {
        for (name, files) in &self.0 {
            if let Some(file) = files.iter().rev().find(|_| lasts()).unwrap_or(&files[0]) {
                std::fs::write(folder.join(name), file.outcome(&mut lasts)).expect("there is space");
            }
        }
    }
}

impl File {
    fn outcome(&self, mut lasts: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Written(offset, written) => {
                    let (mut at, mut rest) = (*offset, &written[..]);
                    while !rest.is_empty() {
                        let (sector, after) = rest.split_at(rest.len().min(SECTOR - at % SECTOR));
                        if lasts() {
                            bytes.resize(bytes.len().max(at + sector.len()), 0);
                            bytes[at..at + sector.len()].copy_from_slice(sector);
                        }
                        (at, rest) = (at + sector.len(), after);
                    }
                }
                Change::Truncated(size) if lasts() => bytes.resize(*size, 0),
                _ => {}
            }
        }
        bytes
    }

    fn settle(&mut self, lasts: impl FnMut() -> bool) {
        *self = Self { durable: self.outcome(lasts), pending: Vec::new() };
    }
}
