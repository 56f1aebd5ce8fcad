//! Which mounts make a command see what its bounds say, worked out before anything is mounted.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::Bounds;

/// The covers of a command, each after those that it lies in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) covers: Vec<(PathBuf, Cover)>,
    pub(super) rest: Rest,
}

/// What can be done with everything that has no cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// Reading it.
    #[default]
    ReadOnly,
    /// Writing it too: the bounds have `/` itself, over which nothing can be mounted that anybody would see.
    Writable,
}

/// Where every terminal has its device.
pub(super) const TERMINALS: &str = "/dev/pts";

/// Where the system shows itself. Whoever may write there sets it, so nobody does, whatever else may be written.
const OF_THE_KERNEL: [&str; 2] = ["/proc", "/sys"];

/// What is mounted over a path. Where several claim one path, the later in this list wins.
///
/// Usually everything that is not covered can't be written: Landlock lets modes, owners and times of any file be changed, so the command sees
/// the whole system for reading, and what it may write is mounted on top.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// The path as it was before anything covered it, for reading.
    Kept,
    /// The path itself: a mount point can't be renamed, and neither can what is denied in it be carried away with it.
    Pinned,
    /// The path itself, for writing.
    Writable,
    /// What is there, with the command's own changes on top.
    Layered,
    /// The path itself, for reading.
    ReadOnly,
    /// An empty folder in memory that can be written.
    Memory,
    /// Another folder, that can be written.
    Folder(PathBuf),
    /// Terminals of the command's own: in those of others stands what people type there.
    Terminals,
    /// A file that reads as empty.
    Emptied,
    /// Something empty that can't be opened.
    Hidden,
    /// An empty folder that can't be listed or written, in which something is kept.
    HiddenAround,
}

impl Cover {
    /// Whether what lies beneath it is out of sight.
    pub(super) fn conceals(&self) -> bool {
        match self {
            Self::Memory | Self::Folder(_) | Self::Terminals | Self::Hidden | Self::HiddenAround => true,
            Self::Kept | Self::Pinned | Self::Writable | Self::Layered | Self::ReadOnly | Self::Emptied => {
                false
            }
        }
    }

    /// Whether it is an empty thing of the masks.
    pub(super) fn is_masked(&self) -> bool {
        matches!(self, Self::Emptied | Self::Hidden)
    }

    /// Whether it shows something that is there already.
    pub(super) fn shows(&self) -> bool {
        match self {
            Self::Kept | Self::Pinned | Self::Writable | Self::Layered | Self::ReadOnly | Self::Folder(_) => {
                true
            }
            Self::Memory | Self::Terminals | Self::Emptied | Self::Hidden | Self::HiddenAround => false,
        }
    }
}

impl Plan {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let root = Path::new("/");
        let has_root = |paths: &[PathBuf]| paths.iter().any(|path| path == root);
        let is_writable = has_root(&bounds.write) && !has_root(&bounds.read_only);
        let rest = if is_writable { Rest::Writable } else { Rest::ReadOnly };
        let mut covers = BTreeMap::new();
        // Bounds may have thousands of paths, so none is compared with all of them.
        let fixed: HashSet<&Path> = bounds.read_only.iter().map(PathBuf::as_path).collect();
        let is_fixed = |path: &Path| path.ancestors().any(|above| fixed.contains(above));
        let mut cover = |path: &Path, cover: Cover| {
            let cover = match cover {
                // What is mounted on top of something fixed is as fixed.
                Cover::Pinned | Cover::Writable if is_fixed(path) => Cover::ReadOnly,
                other => other,
            };
            let known = covers.entry(path.to_owned()).or_insert_with(|| cover.clone());
            if *known < cover {
                *known = cover;
            }
        };
        for private in &bounds.private {
            cover(&private.at, private.kept_in.clone().map_or(Cover::Memory, Cover::Folder));
        }
        if bounds.devices.iter().any(|device| device.starts_with(TERMINALS)) {
            cover(Path::new(TERMINALS), Cover::Terminals);
        }
        bounds.kept.iter().for_each(|path| cover(path, Cover::Kept));
        bounds.write.iter().for_each(|path| cover(path, Cover::Writable));
        let layered = bounds.overlays.iter().flat_map(|overlay| &overlay.at);
        layered.for_each(|path| cover(path, Cover::Layered));
        bounds.read_only.iter().for_each(|path| cover(path, Cover::ReadOnly));
        if rest == Rest::Writable {
            OF_THE_KERNEL.iter().for_each(|path| cover(Path::new(path), Cover::ReadOnly));
        }
        bounds.emptied.iter().for_each(|path| cover(path, Cover::Emptied));
        bounds.hidden.iter().for_each(|path| cover(path, Cover::Hidden));
        for guarded in bounds.hidden.iter().chain(&bounds.read_only).chain(&bounds.emptied) {
            for above in movable_above(guarded, &bounds.write) {
                cover(above, Cover::Pinned);
            }
        }
        covers.remove(root);
        // The order of paths puts each after those that it lies in.
        let mut plan = Self { covers: covers.into_iter().collect(), rest };
        plan.leave_out_what_is_not_needed(&bounds.kept);
        plan.open_around_the_kept();
        plan
    }

    /// The nearest cover that a path lies in.
    pub(super) fn around(&self, path: &Path) -> Option<&(PathBuf, Cover)> {
        let mut above = path.ancestors().skip(1);
        above.find_map(|above| {
            // They are in the order of paths.
            let found = self.covers.binary_search_by(|(at, _)| at.as_path().cmp(above)).ok()?;
            self.covers.get(found)
        })
    }

    /// Whether a path is out of sight unless something brings it back.
    fn is_concealed(&self, path: &Path) -> bool {
        self.around(path).is_some_and(|(_, cover)| cover.conceals())
    }

    /// What lies in something concealed needs no cover, unless it is kept; and what is in sight needs nothing to keep it there.
    fn leave_out_what_is_not_needed(&mut self, kept: &[PathBuf]) {
        let mut index = 0;
        while let Some((path, cover)) = self.covers.get(index) {
            let is_needed = match self.is_concealed(path) {
                true => kept.contains(path),
                false => *cover != Cover::Kept,
            };
            match is_needed {
                true => index += 1,
                false => drop(self.covers.remove(index)),
            }
        }
    }

    /// A hidden folder in which something has a cover must lead there.
    fn open_around_the_kept(&mut self) {
        let around: Vec<PathBuf> =
            self.covers.iter().filter_map(|(path, _)| self.around(path)).map(|(at, _)| at.clone()).collect();
        for (at, cover) in &mut self.covers {
            if *cover == Cover::Hidden && around.contains(at) {
                *cover = Cover::HiddenAround;
            }
        }
    }
}

/// The folders above a path that a command could rename, and the path with them.
fn movable_above<'a>(path: &'a Path, writable: &[PathBuf]) -> impl Iterator<Item = &'a Path> {
    let is_movable = |above: &&Path| writable.iter().any(|place| *above != place && above.starts_with(place));
    path.ancestors().skip(1).filter(is_movable).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
