//! Finding the repositories below a folder.
//!
//! A folder's listing is remembered with its change time, which no program can set, so that looking again costs one `stat` a folder.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::DOT_GIT;

/// Folders that are looked at, nearest to the top first.
const MAX_FOLDERS: usize = 30_000;
/// A folder that changed within this time before it was read may change again without another change time.
const UNSETTLED: Duration = Duration::from_millis(100);

/// What is known of the folders below some others.
#[derive(Debug, Default)]
pub(super) struct Survey {
    folders: HashMap<PathBuf, Listing>,
}

#[derive(Debug, Clone)]
struct Listing {
    stamp: Stamp,
    is_settled: bool,
    below: Vec<PathBuf>,
    repository: Option<PathBuf>,
}

/// A folder's device, inode and change time.
type Stamp = (u64, u64, i64, i64);

impl Survey {
    /// The repositories in a folder and below it: each a `.git`, whatever that is, or the folder of a bare repository.
    pub(super) fn find(&mut self, top: &Path) -> BTreeSet<PathBuf> {
        let (mut seen, mut found) = (HashMap::new(), BTreeSet::new());
        let mut queue = VecDeque::from([top.to_owned()]);
        while let Some(folder) = queue.pop_front().filter(|_| seen.len() < MAX_FOLDERS) {
            let Some(listing) = self.listing(&folder) else { continue };
            found.extend(listing.repository.clone());
            queue.extend(listing.below.iter().cloned());
            seen.insert(folder, listing);
        }
        self.folders.retain(|folder, _| !folder.starts_with(top));
        self.folders.extend(seen);
        found
    }

    fn listing(&mut self, folder: &Path) -> Option<Listing> {
        let metadata = folder.symlink_metadata().ok()?;
        let stamp = (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        match self.folders.remove(folder) {
            Some(known) if known.stamp == stamp && known.is_settled => Some(known),
            _ => read(folder, stamp),
        }
    }
}

fn read(folder: &Path, stamp: Stamp) -> Option<Listing> {
    let (mut below, mut dot_git, mut parts) = (Vec::new(), None, 0);
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (name, kind) = (entry.file_name(), entry.file_type());
        match name.as_encoded_bytes() {
            name if name.eq_ignore_ascii_case(DOT_GIT.as_bytes()) => dot_git = Some(entry.path()),
            b"HEAD" | b"objects" | b"refs" => parts += 1,
            _ => {}
        }
        if kind.is_ok_and(|kind| kind.is_dir()) && dot_git.as_ref() != Some(&entry.path()) {
            below.push(entry.path());
        }
    }
    let is_bare = parts == 3;
    if is_bare {
        below.clear();
    }
    let repository = if is_bare { Some(folder.to_owned()) } else { dot_git };
    Some(Listing { stamp, is_settled: is_settled(stamp), below, repository })
}

fn is_settled((_, _, seconds, nanoseconds): Stamp) -> bool {
    let since = |time: Duration| SystemTime::UNIX_EPOCH.checked_add(time);
    let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
    let changed = changed.and_then(|(seconds, nanoseconds)| since(Duration::new(seconds, nanoseconds)));
    changed.is_some_and(|changed| changed.elapsed().is_ok_and(|age| age > UNSETTLED))
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
