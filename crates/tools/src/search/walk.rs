//! Walks a folder and everything below it.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::gitignore::GitignoreRules;
use crate::blocking_run::CancelFlag;
use crate::scope::{EntryKind, EntryStatus, Scope, ScopedFolder};

/// Names of one folder to hold in memory.
const MAX_FOLDER_NAMES: usize = 100_000;
/// Levels of folders. Each keeps a handle open.
const MAX_DEPTH: usize = 100;

/// An entry that the walk visits.
pub(super) struct WalkEntry<'a> {
    pub(super) folder: &'a ScopedFolder,
    pub(super) name: &'a OsStr,
    pub(super) path: PathBuf,
    pub(super) status: EntryStatus,
}

/// What the walk did not visit.
#[derive(Debug, Default)]
pub(super) struct WalkSummary {
    /// Folders that were not walked completely: too many entries, too deep, or unreadable.
    incomplete: Vec<PathBuf>,
}

impl WalkSummary {
    /// A note for the model; `None` if the walk was complete.
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

pub(super) struct FolderWalk<'a, F> {
    /// Levels to walk; 1 is the folder itself.
    pub(super) depth: usize,
    pub(super) cancel: &'a CancelFlag,
    /// Called for each entry, in the order of the names, a folder before its entries.
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
            // Denied and vanished entries are skipped.
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

pub(super) const UNLIMITED_DEPTH: usize = usize::MAX;
