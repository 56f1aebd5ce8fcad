//! Cached folder listings.
//!
//! The sandbox looks for hundreds of paths, and most of them are missing on any machine. A folder's listing answers
//! for all paths in it, and is cached with the folder's change time from one command to the next. Links, and what a
//! listing can't answer, are looked up in the file system.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder_stamp::FolderStamp;
use crate::scope::PathTrace;

/// A folder with more entries is not listed.
const MAX_ENTRIES: usize = 4_000;

/// `None` if the folder has too many entries or can't be read.
type CachedListing = Option<Arc<Listing>>;

#[derive(Debug, Default)]
struct Listing {
    /// Names that are no links.
    plain: HashSet<OsString>,
    /// All names in lower case: on some file systems another case is the same name.
    folded_names: HashSet<Vec<u8>>,
}

/// The listings that were read for earlier commands.
#[derive(Debug, Default)]
pub(super) struct FolderListings(Mutex<HashMap<PathBuf, (FolderStamp, CachedListing)>>);

/// The listings as one command sees them: the change time of each folder is read once.
#[derive(Debug)]
pub(super) struct ListingView<'a> {
    remembered: &'a FolderListings,
    current: RefCell<HashMap<PathBuf, CachedListing>>,
}

/// What the listings say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedState {
    Missing,
    /// It exists, and neither it nor a folder above it is a link.
    WithoutLinks,
    Unknown,
}

impl FolderListings {
    pub(super) fn now(&self) -> ListingView<'_> {
        ListingView { remembered: self, current: RefCell::default() }
    }

    fn entries(&self, folder: &Path) -> CachedListing {
        let metadata = match fs::metadata(folder) {
            Ok(metadata) if metadata.is_dir() => metadata,
            // A missing folder is empty.
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(Arc::default()),
            _ => return None,
        };
        let stamp = FolderStamp::of(&metadata);
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, entries)) = remembered.get(folder).filter(|(of, _)| *of == stamp) {
            return entries.clone();
        }
        let is_settled = stamp.is_settled();
        let entries = read(folder).map(Arc::new);
        match is_settled {
            true => drop(remembered.insert(folder.to_owned(), (stamp, entries.clone()))),
            false => drop(remembered.remove(folder)),
        }
        entries
    }
}

impl ListingView<'_> {
    /// Follows an absolute path, but no link that lies in one of the writable paths. `None` if nothing is there.
    pub(super) fn trace(&self, path: &Path, writable: &[PathBuf]) -> Option<PathTrace> {
        match self.lookup(path) {
            ListedState::Missing => None,
            ListedState::WithoutLinks => Some(PathTrace::without_links(path)),
            ListedState::Unknown => PathTrace::follow_existing(path, writable),
        }
    }

    /// The names in a folder that are no links. Empty if there are too many.
    pub(super) fn plain_names(&self, folder: &Path) -> Vec<OsString> {
        let entries = self.entries(folder);
        entries.map(|listing| listing.plain.iter().cloned().collect()).unwrap_or_default()
    }

    fn lookup(&self, path: &Path) -> ListedState {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return ListedState::Unknown;
        };
        let Some(listing) = self.entries(folder) else { return ListedState::Unknown };
        match listing.folded_names.contains(&name.as_encoded_bytes().to_ascii_lowercase()) {
            false => ListedState::Missing,
            true if !listing.plain.contains(name) => ListedState::Unknown,
            true if folder.parent().is_none() => ListedState::WithoutLinks,
            true => self.lookup(folder),
        }
    }

    fn entries(&self, folder: &Path) -> CachedListing {
        if let Some(entries) = self.current.borrow().get(folder) {
            return entries.clone();
        }
        let entries = self.remembered.entries(folder);
        self.current.borrow_mut().insert(folder.to_owned(), entries.clone());
        entries
    }
}

fn read(folder: &Path) -> Option<Listing> {
    let mut listing = Listing::default();
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        if listing.folded_names.len() == MAX_ENTRIES {
            return None;
        }
        let name = entry.file_name();
        listing.folded_names.insert(name.as_encoded_bytes().to_ascii_lowercase());
        if !entry.file_type().ok()?.is_symlink() {
            listing.plain.insert(name);
        }
    }
    Some(listing)
}

#[cfg(test)]
#[path = "folder_listings_tests.rs"]
mod tests;
