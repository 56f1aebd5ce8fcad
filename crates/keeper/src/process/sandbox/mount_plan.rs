//! Which mounts the bounds of a command need. Pure: computed before the first mount.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::Bounds;

/// The mounts of a command. Each comes after those that contain it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MountPlan {
    pub(super) covers: Vec<(PathBuf, Cover)>,
    pub(super) rest: Rest,
}

/// Whether paths without a cover are writable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rest {
    #[default]
    ReadOnly,
    /// The bounds allow writing to `/` itself, and nothing visible can be mounted over that.
    Writable,
}

/// The folder of terminal devices.
pub(super) const TERMINALS: &str = "/dev/pts";

/// Writing there changes kernel settings, so these are always read-only.
const KERNEL_FILE_SYSTEMS: [&str; 2] = ["/proc", "/sys"];

/// What is mounted over a path. If several apply to one path, the later in this list wins.
///
/// Usually the whole system is read-only and writable paths are mounted on top, because Landlock does not restrict
/// changes of the modes, owners and times of files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// A read-only bind mount of the path as it was before anything covered it.
    Kept,
    /// A bind mount of the path itself. A mount point can't be renamed, so denied paths inside it can't be moved
    /// away.
    Pinned,
    /// A writable bind mount of the path itself.
    Writable,
    /// An overlay: the path, with the command's own changes on top.
    Layered,
    /// A read-only bind mount of the path itself.
    ReadOnly,
    /// An empty writable tmpfs.
    Memory,
    /// A writable bind mount of another folder.
    Folder(PathBuf),
    /// A private devpts, because other terminals show what people type.
    Terminals,
    /// An empty readable file.
    Emptied,
    /// An empty file or folder that can't be opened.
    Hidden,
    /// An empty folder that can't be listed or written, with a kept path in it.
    HiddenAround,
}

impl Cover {
    /// Whether it conceals the contents of the path.
    pub(super) fn conceals(&self) -> bool {
        match self {
            Self::Memory | Self::Folder(_) | Self::Terminals | Self::Hidden | Self::HiddenAround => true,
            Self::Kept | Self::Pinned | Self::Writable | Self::Layered | Self::ReadOnly | Self::Emptied => {
                false
            }
        }
    }

    /// Whether it is a mask.
    pub(super) fn is_masked(&self) -> bool {
        matches!(self, Self::Emptied | Self::Hidden)
    }

    /// Whether it shows an existing file or folder.
    pub(super) fn shows(&self) -> bool {
        match self {
            Self::Kept | Self::Pinned | Self::Writable | Self::Layered | Self::ReadOnly | Self::Folder(_) => {
                true
            }
            Self::Memory | Self::Terminals | Self::Emptied | Self::Hidden | Self::HiddenAround => false,
        }
    }
}

impl MountPlan {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let root = Path::new("/");
        let has_root = |paths: &[PathBuf]| paths.iter().any(|path| path == root);
        let is_writable = has_root(&bounds.write) && !has_root(&bounds.read_only);
        let rest = if is_writable { Rest::Writable } else { Rest::ReadOnly };
        let mut covers = BTreeMap::new();
        // Bounds may have thousands of paths, so don't compare each with all others.
        let fixed: HashSet<&Path> = bounds.read_only.iter().map(PathBuf::as_path).collect();
        let is_fixed = |path: &Path| path.ancestors().any(|above| fixed.contains(above));
        let mut cover = |path: &Path, cover: Cover| {
            let cover = match cover {
                // A mount on top of a read-only path is read-only too.
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
            KERNEL_FILE_SYSTEMS.iter().for_each(|path| cover(Path::new(path), Cover::ReadOnly));
        }
        bounds.emptied.iter().for_each(|path| cover(path, Cover::Emptied));
        bounds.hidden.iter().for_each(|path| cover(path, Cover::Hidden));
        for guarded in bounds.hidden.iter().chain(&bounds.read_only).chain(&bounds.emptied) {
            for above in movable_above(guarded, &bounds.write) {
                cover(above, Cover::Pinned);
            }
        }
        covers.remove(root);
        // Sorted by path, so each comes after those that contain it.
        let mut plan = Self { covers: covers.into_iter().collect(), rest };
        plan.remove_needless_covers(&bounds.kept);
        plan.open_hidden_parents();
        plan
    }

    /// The nearest cover that contains a path.
    pub(super) fn around(&self, path: &Path) -> Option<&(PathBuf, Cover)> {
        let mut above = path.ancestors().skip(1);
        above.find_map(|above| {
            // The covers are sorted by path.
            let found = self.covers.binary_search_by(|(at, _)| at.as_path().cmp(above)).ok()?;
            self.covers.get(found)
        })
    }

    /// Whether a cover around the path conceals it.
    fn is_concealed(&self, path: &Path) -> bool {
        self.around(path).is_some_and(|(_, cover)| cover.conceals())
    }

    /// Removes the cover of a concealed path unless the path is kept, and `Kept` from a visible path.
    fn remove_needless_covers(&mut self, kept: &[PathBuf]) {
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

    /// A hidden folder with covers in it must be traversable.
    fn open_hidden_parents(&mut self) {
        let around: Vec<PathBuf> =
            self.covers.iter().filter_map(|(path, _)| self.around(path)).map(|(at, _)| at.clone()).collect();
        for (at, cover) in &mut self.covers {
            if *cover == Cover::Hidden && around.contains(at) {
                *cover = Cover::HiddenAround;
            }
        }
    }
}

/// The folders above a path that a command could rename, which would move the path.
fn movable_above<'a>(path: &'a Path, writable: &[PathBuf]) -> impl Iterator<Item = &'a Path> {
    let is_movable = |above: &&Path| writable.iter().any(|place| *above != place && above.starts_with(place));
    path.ancestors().skip(1).filter(is_movable).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
#[path = "mount_plan_tests.rs"]
mod tests;
