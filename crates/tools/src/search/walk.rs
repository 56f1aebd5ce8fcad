//! Through a folder and all that is in it, on foot.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::gitignore::Ignored;
use crate::blocking::Wanted;
use crate::scope::{Folder, Kind, Scope, Status};

/// Names of one folder that are held in memory at once.
const MOST_NAMES: usize = 100_000;
/// Each level keeps a handle open.
const DEEPEST: usize = 100;

/// Something that was come by.
pub(super) struct Entry<'a> {
    /// The folder that it is in.
    pub(super) folder: &'a Folder,
    pub(super) name: &'a OsStr,
    pub(super) path: PathBuf,
    pub(super) status: Status,
}

/// Whether all of it was seen.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Folders of which only a part was seen, or nothing: too many entries, too deep, or not to be read.
    partly: Vec<PathBuf>,
}

impl Walked {
    /// Says what was not seen.
    pub(super) fn note(&self, scope: &Scope) -> Option<String> {
        let first = scope.show(self.partly.first()?);
        let others = match self.partly.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!(
            "[not all was looked at in {first}{others}: too many entries, too deep, or not readable]"
        ))
    }
}

/// A walk through a folder.
pub(super) struct Walk<'a, F> {
    /// How far down; 1 is the folder itself.
    pub(super) depth: usize,
    pub(super) wanted: &'a Wanted,
    /// Called for all that is come by, in the order of the names, a folder before what is in it.
    pub(super) visit: F,
}

impl<F: FnMut(&Entry<'_>) -> ControlFlow<()>> Walk<'_, F> {
    pub(super) fn through(mut self, scope: &Scope, folder: &Folder) -> Walked {
        let mut walked = Walked::default();
        let _ = self.go(folder, &Ignored::around(scope, folder), 1, &mut walked);
        walked
    }

    fn go(
        &mut self,
        folder: &Folder,
        around: &Ignored,
        level: usize,
        walked: &mut Walked,
    ) -> ControlFlow<()> {
        let Ok(found) = folder.names(MOST_NAMES) else {
            walked.partly.push(folder.path().to_owned());
            return ControlFlow::Continue(());
        };
        if found.more {
            walked.partly.push(folder.path().to_owned());
        }
        let ignored = around.inside(folder);
        for name in &found.names {
            if self.wanted.is_over() {
                return ControlFlow::Break(());
            }
            // What is denied, or gone by now, is not there.
            let Ok(status) = folder.status(name) else { continue };
            let path = folder.path().join(name);
            let is_folder = status.kind == Kind::Folder;
            if (is_folder && name == ".git") || ignored.leaves_out(&path, is_folder) {
                continue;
            }
            (self.visit)(&Entry { folder, name, path, status })?;
            if is_folder && level < self.depth {
                self.enter(folder, name, &ignored, level + 1, walked)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn enter(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        ignored: &Ignored,
        level: usize,
        walked: &mut Walked,
    ) -> ControlFlow<()> {
        match folder.enter(name) {
            Ok(inner) if level <= DEEPEST => self.go(&inner, ignored, level, walked),
            _ => {
                walked.partly.push(folder.path().join(name));
                ControlFlow::Continue(())
            }
        }
    }
}

/// All the way down.
pub(super) const ALL_THE_WAY: usize = usize::MAX;
