//! A canonical path that the scope allows, and opening what is there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

use super::boundaries::{Boundaries, DenialReason, FileIdentity};
use super::folder::AccessError;
use super::{EntryKind, FileError, ScopedFolder};

/// A canonical path that may be used, with the boundaries at the time of the check.
#[derive(Debug)]
pub(crate) struct ScopedPath {
    pub(super) path: PathBuf,
    pub(super) shown: String,
    /// The path as the model wrote it. Errors about denied paths show this one: they don't tell the model where links
    /// lead.
    pub(super) written: String,
    /// It ends as only the path of a folder does.
    pub(super) only_folder: bool,
    /// Whether its folder may be written too, not only this file.
    pub(super) is_folder_writable: bool,
    pub(super) boundaries: Arc<Boundaries>,
    pub(super) allowed: String,
}

/// Folders that were created for a file. They are removed again, unless the file was written.
#[derive(Debug, Default)]
pub(crate) struct CreatedFolders {
    made: Vec<(ScopedFolder, OsString)>,
}

impl CreatedFolders {
    pub(crate) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for (folder, name) in self.made.drain(..).rev() {
            folder.remove_empty(&name);
        }
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) status: Stat,
}

impl OpenFile {
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
    }

    /// Whether the file still has this name, identity, size and times.
    pub(crate) fn is_unchanged_at(&self, folder: &ScopedFolder, name: &OsStr) -> bool {
        let look = |status: &Stat| {
            let times = (status.st_mtime, status.st_mtime_nsec, status.st_ctime, status.st_ctime_nsec);
            (FileIdentity::from(status), status.st_size, times)
        };
        let now = rustix::fs::statat(folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| look(&now) == look(&self.status))
    }
}

impl ScopedPath {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path for the model.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The canonical path as text, for records. `None` if it is not Unicode.
    pub(crate) fn key(&self) -> Option<&str> {
        self.path.to_str()
    }

    pub(crate) fn is_folder_writable(&self) -> bool {
        self.is_folder_writable
    }

    pub(crate) fn folder(&self) -> Result<ScopedFolder, FileError> {
        self.descend(&self.path, None)
    }

    /// Opens the folder of this file, and returns the name in it.
    pub(crate) fn parent(&self) -> Result<(ScopedFolder, OsString), FileError> {
        let (parent, name) = self.split()?;
        Ok((self.descend(parent, None)?, name))
    }

    /// Like [`ScopedPath::parent`], and creates missing folders.
    pub(crate) fn create_parent(&self) -> Result<(ScopedFolder, OsString, CreatedFolders), FileError> {
        let (parent, name) = self.split()?;
        let mut new = CreatedFolders::default();
        let folder = self.descend(parent, Some(&mut new))?;
        Ok((folder, name, new))
    }

    fn split(&self) -> Result<(&Path, OsString), FileError> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(FileError::IsFolder { path: self.shown.clone() });
        };
        if self.only_folder {
            return Err(match self.folder() {
                Ok(_) => FileError::IsFolder { path: self.shown.clone() },
                Err(FileError::NotFound { .. }) => FileError::OnlyFolder { path: self.written.clone() },
                Err(error) => error,
            });
        }
        Ok((parent, name.to_owned()))
    }

    pub(crate) fn open(&self) -> Result<OpenFile, FileError> {
        let (folder, name) = self.parent()?;
        self.open_in(&folder, &name)
    }

    /// Opens the file through the folder that [`ScopedPath::parent`] opened.
    pub(crate) fn open_in(&self, folder: &ScopedFolder, name: &OsStr) -> Result<OpenFile, FileError> {
        let (file, status) = folder.open(name).map_err(|refused| self.refused("open", refused))?;
        Ok(OpenFile { file, status })
    }

    /// The error for the model.
    pub(crate) fn refused(&self, doing: &'static str, why: impl Into<AccessError>) -> FileError {
        let path = self.shown.clone();
        match why.into() {
            AccessError::Denied(DenialReason::Denied) => {
                FileError::Denied { path: self.written.clone(), allowed: self.allowed.clone() }
            }
            AccessError::Denied(DenialReason::Protected) => {
                FileError::Protected { path: self.written.clone() }
            }
            AccessError::WrongKind(EntryKind::Folder) => FileError::IsFolder { path },
            AccessError::WrongKind(EntryKind::File) => FileError::NotFolder { path },
            AccessError::WrongKind(EntryKind::Special(kind)) => FileError::Special { path, kind },
            AccessError::WrongKind(EntryKind::Link) => FileError::Link { path },
            AccessError::System(error) => FileError::system(doing, &path, error),
        }
    }

    /// Opens a folder on the way to this path, from `/` down. Missing folders are created if there is a list to note
    /// them in.
    fn descend(&self, to: &Path, mut new: Option<&mut CreatedFolders>) -> Result<ScopedFolder, FileError> {
        let refused = |why| self.refused("open", why);
        let mut folder = ScopedFolder::root(Arc::clone(&self.boundaries)).map_err(refused)?;
        for part in to.components() {
            let Component::Normal(name) = part else { continue };
            let entered = match (folder.enter(name), &mut new) {
                (Err(AccessError::System(Errno::NOENT)), Some(new)) => {
                    let is_ours = folder.make(name).map_err(refused)?;
                    let entered = folder.enter(name);
                    if is_ours {
                        new.made.push((folder, name.to_owned()));
                    }
                    entered.map_err(refused)?
                }
                (Ok(entered), _) => entered,
                (Err(AccessError::WrongKind(EntryKind::File | EntryKind::Special(_))), _) => {
                    return Err(FileError::NotFolder { path: self.shown_above(&folder.path().join(name)) });
                }
                (Err(why), _) => return Err(refused(why)),
            };
            folder = entered;
        }
        Ok(folder)
    }

    /// A part of this path, for the model.
    fn shown_above(&self, part: &Path) -> String {
        let below = self.path.components().count().saturating_sub(part.components().count());
        let shown = Path::new(&self.shown).ancestors().nth(below).and_then(Path::to_str);
        shown.filter(|shown| !shown.is_empty()).unwrap_or(&self.shown).to_owned()
    }
}
