//! Removes a file durably, and never another program's change of it; moves a file without replacing another.
//!
//! The file is renamed first. After that it is certain which file is removed. If it is not the expected one, it is
//! renamed back.

use std::ffi::OsStr;

use longhaul_protocol::{CallId, Hash};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::atomic_replace::{changed_meanwhile, open_unchanged};
use super::write_plan::{Leftover, left_by};
use super::{hash_of, temporary_file};
use crate::FileError;
use crate::scope::{ScopedFolder, ScopedPath};

/// Removes the file if it still has this hash.
pub(super) fn remove(place: &ScopedPath, before: Hash, id: CallId) -> Result<(), FileError> {
    let (folder, name) = match place.parent() {
        Err(FileError::NotFound { .. }) => return Err(changed_meanwhile(place)),
        parent => parent?,
    };
    temporary_file::remove_leftovers(place, &folder);
    temporary_file::discard(&folder, id);
    open_unchanged(place, &folder, &name, before)?;
    let aside = temporary_file::name(id);
    temporary_file::rename_without_replacing(&folder, &name, &aside)
        .map_err(|error| place.refused("remove", error))?;
    if !has_hash(&folder, &aside, before) {
        // Another program wrote it in this moment.
        let _ = temporary_file::rename_without_replacing(&folder, &aside, &name);
        return Err(changed_meanwhile(place));
    }
    rustix::fs::unlinkat(folder.handle(), &aside, AtFlags::empty())
        .map_err(|error| place.refused("remove", error))?;
    folder.sync().map_err(|error| FileError::system("remove", place.shown(), error))
}

/// Moves a file that still has this hash to a name that is not taken.
pub(super) fn rename(from: &ScopedPath, to: &ScopedPath, before: Hash) -> Result<(), FileError> {
    let (folder, name) = from.parent()?;
    open_unchanged(from, &folder, &name, before)?;
    let (new_folder, new_name, created) = to.create_parent()?;
    let renamed = rename_between(&folder, &name, &new_folder, &new_name);
    match renamed {
        Err(Errno::EXIST) => return Err(exists_already(to)),
        Err(Errno::NOENT) => return Err(changed_meanwhile(from)),
        other => other.map_err(|error| from.refused("move", error))?,
    }
    if !has_hash(&new_folder, &new_name, before) {
        let _ = rename_between(&new_folder, &new_name, &folder, &name);
        return Err(changed_meanwhile(from));
    }
    created.keep();
    for folder in [&new_folder, &folder] {
        folder.sync().map_err(|error| FileError::system("move", to.shown(), error))?;
    }
    Ok(())
}

/// The error for a name that is taken.
pub(super) fn exists_already(place: &ScopedPath) -> FileError {
    let what = "exists already, and nothing is moved over a file; delete it first, or choose another name"
        .to_owned();
    FileError::Changed { path: place.shown().to_owned(), what }
}

fn rename_between(
    folder: &ScopedFolder,
    name: &OsStr,
    new_folder: &ScopedFolder,
    new_name: &OsStr,
) -> rustix::io::Result<()> {
    let (from, to) = (folder.handle(), new_folder.handle());
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Where the file system can't, a hard link does the same in two steps.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(from, name, to, new_name, AtFlags::empty())?;
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        }
        other => other,
    }
}

fn has_hash(folder: &ScopedFolder, name: &OsStr, expected: Hash) -> bool {
    let opened = folder.open(name).ok();
    opened.is_some_and(|(mut file, _)| hash_of(&mut file).is_ok_and(|hash| hash == expected))
}

/// Finishes a removal that a crash interrupted: the file that was set aside is removed if it is the expected one, and
/// kept under its own name otherwise.
pub(super) fn finish_interrupted_removal(
    place: &ScopedPath,
    before: Hash,
    id: CallId,
) -> Result<Option<String>, FileError> {
    let (folder, name) = match place.parent() {
        Err(FileError::NotFound { .. }) => return Ok(None),
        parent => parent?,
    };
    let failed = |error| FileError::system("make durable", place.shown(), error);
    let kept = match left_by(&folder, id) {
        Leftover::Nothing => None,
        Leftover::File(Some(hash)) if hash == before => {
            temporary_file::discard(&folder, id);
            None
        }
        Leftover::File(_) => Some(temporary_file::keep(&folder, id, &name).map_err(failed)?),
    };
    folder.sync().map_err(|error| failed(error.into()))?;
    Ok(kept)
}
