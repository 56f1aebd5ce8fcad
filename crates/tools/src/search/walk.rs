//! Through a folder and all that is in it, on foot.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::gitignore::GitignoreRules;
use crate::blocking::CancelFlag;
use crate::scope::{EntryKind, EntryStatus, Scope, ScopedFolder};

/// Names of one folder that are held in memory at once.
const MAX_FOLDER_NAMES: usize = 100_000;
/// Each level keeps a handle open.
const MAX_DEPTH: usize = 100;

/// Something that was come by.
pub(super) struct WalkEntry<'a> {
    /// The folder that it is in.
    pub(super) folder: &'a ScopedFolder,
    pub(super) name: &'a OsStr,
    pub(super) path: PathBuf,
    pub(super) status: EntryStatus,
}

/// Whether all of it was seen.
#[derive(Debug, Default)]
pub(super) struct WalkSummary {
    /// Folders of which only a part was seen, or nothing: too many entries, too deep, or not to be read.
    incomplete: Vec<PathBuf>,
}

impl WalkSummary {
    /// Says what was not seen.
    pub(super) fn note(&self, scope: &Scope) -> Option<String> {
        let first = scope.show(self.incomplete.first()?);
        let others = match self.incomplete.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!(
            "[not all was looked at in {first}{others}: too many entries, too deep, or not readable]"
        ))
    }
}

/// A walk through a folder.
pub(super) struct FolderWalk<'a, F> {
    /// How far down; 1 is the folder itself.
    pub(super) depth: usize,
    pub(super) cancel: &'a CancelFlag,
    /// Called for all that is come by, in the order of the names, a folder before what is in it.
    pub(super) visit: F,
}

impl<F: FnMut(&WalkEntry<'_>) -> ControlFlow<()>> FolderWalk<'_, F> {
    pub(super) fn walk(mut self, scope: &Scope, folder: &ScopedFolder) -> WalkSummary {
        let mut walked = WalkSummary::default();
        let _ = self.walk_folder(folder, &GitignoreRules::around(scope, folder), 1, &mut walked);
        walked
    }

    fn walk_folder(
        &mut self,
        folder: &ScopedFolder,
        around: &GitignoreRules,
        level: usize,
        walked: &mut WalkSummary,
    ) -> ControlFlow<()> {
        let Ok(found) = folder.names(MAX_FOLDER_NAMES) else {
            walked.incomplete.push(folder.path().to_owned());
            return ControlFlow::Continue(());
        };
        if found.is_truncated {
            walked.incomplete.push(folder.path().to_owned());
        }
        let ignored = around.inside(folder);
        for name in &found.names {
            if self.cancel.is_cancelled() {
                return ControlFlow::Break(());
            }
            // What is denied, or gone by now, is not there.
            let Ok(status) = folder.status(name) else { continue };
            let path = folder.path().join(name);
            let is_folder = status.kind == EntryKind::Folder;
            if (is_folder && name == ".git") || ignored.is_ignored(&path, is_folder) {
                continue;
            }
            (self.visit)(&WalkEntry { folder, name, path, status })?;
            if is_folder && level < self.depth {
                self.enter_folder(folder, name, &ignored, level + 1, walked)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn enter_folder(
        &mut self,
        folder: &ScopedFolder,
        name: &OsStr,
        ignored: &GitignoreRules,
        level: usize,
        walked: &mut WalkSummary,
    ) -> ControlFlow<()> {
        match folder.enter(name) {
            Ok(inner) if level <= MAX_DEPTH => self.walk_folder(&inner, ignored, level, walked),
            _ => {
                walked.incomplete.push(folder.path().join(name));
                ControlFlow::Continue(())
            }
        }
    }
}

/// All the way down.
pub(super) const UNLIMITED_DEPTH: usize = usize::MAX;
