//! Finds the repositories below a folder.
//!
//! A folder's listing is cached with its change time, which no program can set. So scanning again costs one `stat` a
//! folder.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::enclosing_repository::common_dir;
use super::{DOT_GIT, can_be_searched, is_dot_git, is_git_dir};
use crate::folder_stamp::FolderStamp;

/// Folders to scan, nearest to the top first.
const MAX_FOLDERS: usize = 30_000;

/// The cached listings.
#[derive(Debug, Default)]
pub(super) struct RepositoryScan {
    folders: HashMap<PathBuf, ScannedFolder>,
}

#[derive(Debug, Clone)]
struct ScannedFolder {
    stamp: FolderStamp,
    is_settled: bool,
    /// Whether its entries could be listed. If not, repositories may be below it.
    is_complete: bool,
    below: Vec<PathBuf>,
    /// Every entry called `.git`, in any case: a file system may take them for one name.
    dot_gits: Vec<PathBuf>,
    /// Whether it has the entries of a bare repository. Their targets can change while the listing stays the same.
    has_bare_names: bool,
}

impl RepositoryScan {
    /// The repositories in a folder and below it: each `.git`, the folder of each bare repository, and folders that
    /// can't be read and may hold some.
    pub(super) fn find(&mut self, top: &Path) -> BTreeSet<PathBuf> {
        let (mut seen, mut found) = (HashMap::new(), BTreeSet::new());
        let mut queue = VecDeque::from([top.to_owned()]);
        while let Some(folder) = queue.pop_front().filter(|_| seen.len() < MAX_FOLDERS) {
            let Some(listing) = self.listing(&folder) else { continue };
            found.extend(listing.dot_gits.iter().cloned());
            if !listing.is_complete || listing.has_bare_names && is_bare(&folder) {
                found.insert(folder.clone());
            }
            queue.extend(listing.below.iter().cloned());
            seen.insert(folder, listing);
        }
        self.folders.retain(|folder, _| !folder.starts_with(top));
        self.folders.extend(seen);
        found
    }

    fn listing(&mut self, folder: &Path) -> Option<ScannedFolder> {
        let stamp = FolderStamp::of(&folder.symlink_metadata().ok()?);
        match self.folders.remove(folder) {
            Some(known) if known.stamp == stamp && known.is_settled => Some(known),
            _ => read(folder, stamp),
        }
    }
}

/// Whether a folder is a bare repository and not part of another. What a bare repository keeps for a linked work tree
/// has a `HEAD` and a `commondir`, too.
fn is_bare(folder: &Path) -> bool {
    let worktrees = folder.parent().filter(|parent| parent.ends_with("worktrees"));
    is_git_dir(folder)
        && (worktrees.is_none() || common_dir(folder).as_deref() != worktrees.and_then(Path::parent))
}

/// Which entries of a bare repository a folder has.
#[derive(Debug, Default)]
struct BareNames {
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
}

/// Reads a folder. No name excludes what is below it: a command can create any name. `None` if the folder is gone.
fn read(folder: &Path, stamp: FolderStamp) -> Option<ScannedFolder> {
    let is_settled = stamp.is_settled();
    let (mut below, mut dot_gits, mut parts) = (Vec::new(), Vec::new(), BareNames::default());
    let entries = match can_be_searched(folder).and_then(|()| fs::read_dir(folder)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let is_complete = entries.is_ok();
    for entry in entries.into_iter().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        match name.as_encoded_bytes() {
            b"HEAD" => parts.head = true,
            b"objects" => parts.objects = true,
            b"refs" => parts.refs = true,
            b"commondir" => parts.commondir = true,
            _ => {}
        }
        if name != DOT_GIT && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below.push(path.clone());
        }
        if is_dot_git(&path) {
            dot_gits.push(path);
        }
    }
    // With a `commondir`, objects and references are elsewhere.
    let has_bare_names = parts.head && (parts.commondir || parts.objects && parts.refs);
    // An unreadable folder may be readable the next time, with the same change time.
    let is_settled = is_settled && is_complete;
    Some(ScannedFolder { stamp, is_settled, is_complete, below, dot_gits, has_bare_names })
}

#[cfg(test)]
#[path = "repository_scan_tests.rs"]
mod tests;
