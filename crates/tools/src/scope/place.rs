//! A path that was found allowed, and the way to what is there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Stat};

use super::borders::{Borders, Identity};
use super::folder::Refused;
use super::{FileError, Folder, Kind, Missing};

/// A canonical path that may be used, together with what was denied when that was found out.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    shown: String,
    borders: Arc<Borders>,
    allowed: String,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) status: Stat,
}

impl OpenFile {
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
    }

    /// Whether this file still has that name, and looks as it did when it was opened.
    pub(crate) fn is_unchanged_at(&self, folder: &Folder, name: &OsStr) -> bool {
        let look = |status: &Stat| {
            let times = (status.st_mtime, status.st_mtime_nsec, status.st_ctime, status.st_ctime_nsec);
            (Identity::from(status), status.st_size, times)
        };
        let now = rustix::fs::statat(folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| look(&now) == look(&self.status))
    }
}

impl Place {
    pub(super) fn new(path: PathBuf, shown: String, borders: Arc<Borders>, allowed: String) -> Self {
        Self { path, shown, borders, allowed }
    }

    /// The canonical path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path as the model is shown it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The canonical path as text, which is how records name it; none if it is not Unicode.
    pub(crate) fn key(&self) -> Option<&str> {
        self.path.to_str()
    }

    /// Goes to the folder here.
    pub(crate) fn folder(&self) -> Result<Folder, FileError> {
        self.descend(&self.path, Missing::Refuse)
    }

    /// Goes to the folder that holds this, and says under which name.
    pub(crate) fn parent(&self, missing: Missing) -> Result<(Folder, OsString), FileError> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(FileError::IsFolder { path: self.shown.clone() });
        };
        Ok((self.descend(parent, missing)?, name.to_owned()))
    }

    /// Opens the regular file here for reading.
    pub(crate) fn open(&self) -> Result<OpenFile, FileError> {
        let (folder, name) = self.parent(Missing::Refuse)?;
        self.open_in(&folder, &name)
    }

    /// The same, from the folder that [`Place::parent`] went to.
    pub(crate) fn open_in(&self, folder: &Folder, name: &OsStr) -> Result<OpenFile, FileError> {
        let (file, status) = folder.open(name).map_err(|refused| self.refused("open", refused))?;
        Ok(OpenFile { file, status })
    }

    /// Says why something here was refused.
    pub(crate) fn refused(&self, doing: &'static str, why: impl Into<Refused>) -> FileError {
        let path = self.shown.clone();
        match why.into() {
            Refused::Denied => FileError::Denied { path, allowed: self.allowed.clone() },
            Refused::Is(Kind::Folder) => FileError::IsFolder { path },
            Refused::Is(Kind::File) => FileError::NotFolder { path },
            Refused::Is(Kind::Special(kind)) => FileError::Special { path, kind },
            Refused::Is(Kind::Link) => FileError::Link { path },
            Refused::System(error) => FileError::system(doing, &path, error),
        }
    }

    fn descend(&self, to: &Path, missing: Missing) -> Result<Folder, FileError> {
        let refused = |why| self.refused("open", why);
        let mut folder = Folder::root(Arc::clone(&self.borders)).map_err(refused)?;
        for part in to.components() {
            if let Component::Normal(name) = part {
                folder = folder.enter(name, missing).map_err(refused)?;
            }
        }
        Ok(folder)
    }
}
