//! Replaces a file atomically, durably, and never over another program's change.
//!
//! The new content is written beside the old file, and then the two are exchanged. After the exchange it is certain
//! which file was replaced. If it is not the expected one, they are exchanged back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use longhaul_protocol::{CallId, Hash};
use rustix::fs::{Access, AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use super::hash_of;
use super::temporary_file::{self, TemporaryFile};
use crate::FileError;
use crate::display::display_name;
use crate::scope::{OpenFile, ScopedFolder, ScopedPath};

const CHANGED_MEANWHILE: &str = "changed while it was being written, and was left as it is; read it again";

/// Writes the file if it is still as it was before: absent, or with this hash.
pub(super) fn replace(
    place: &ScopedPath,
    before: Option<Hash>,
    content: &[u8],
    call: CallId,
) -> Result<(), FileError> {
    replace_like(place, before, content, None, call)
}

/// Like [`replace`]; a new file gets the mode, owner and attributes of the file `like`.
pub(super) fn replace_like(
    place: &ScopedPath,
    before: Option<Hash>,
    content: &[u8],
    like: Option<&OpenFile>,
    call: CallId,
) -> Result<(), FileError> {
    let (folder, name, new_folders) = place.create_parent()?;
    temporary_file::remove_leftovers(place, &folder);
    let old = match before {
        Some(before) => Some((open_unchanged(place, &folder, &name, before)?, before)),
        None => None,
    };
    if before == Some(Hash::of(content)) {
        return Ok(());
    }
    let failed = |error| FileError::system("write", place.shown(), error);
    // The mode is set before there is any content.
    let mode = Mode::from_raw_mode(if old.is_some() || like.is_some() { 0o600 } else { 0o666 });
    let mut temporary = TemporaryFile::create(&folder, call, mode).map_err(failed)?;
    temporary.fill(content).map_err(failed)?;
    if let Some(old) = old.as_ref().map(|(old, _)| old).or(like) {
        let kept = temporary.copy_metadata_from(&old.file, &old.status);
        kept.map_err(|error| FileError::system("keep owner and mode of", place.shown(), error))?;
    }
    temporary.sync().map_err(failed)?;
    let put_in_place = match old {
        // Other programs can see the exchange, so it is not begun if it is bound to fail.
        Some((old, _)) if !old.is_unchanged_at(&folder, &name) => Err(changed_meanwhile(place)),
        Some((_, before)) => exchange(place, &folder, &name, &mut temporary, before, call),
        None => match temporary_file::rename_without_replacing(&folder, temporary.name(), &name) {
            Err(Errno::EXIST) => Err(changed_meanwhile(place)),
            other => other.map_err(|error| failed(error.into())),
        },
    };
    put_in_place?;
    drop(temporary);
    new_folders.keep();
    folder.sync().map_err(|error| failed(error.into()))
}

pub(super) fn changed_meanwhile(place: &ScopedPath) -> FileError {
    FileError::Changed { path: place.shown().to_owned(), what: CHANGED_MEANWHILE.to_owned() }
}

/// Opens the file to replace, which must be writable and unchanged.
pub(super) fn open_unchanged(
    place: &ScopedPath,
    folder: &ScopedFolder,
    name: &OsStr,
    before: Hash,
) -> Result<OpenFile, FileError> {
    let mut old = match place.open_in(folder, name) {
        Err(FileError::NotFound { .. }) => return Err(changed_meanwhile(place)),
        other => other?,
    };
    rustix::fs::accessat(folder.handle(), name, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|error| place.refused("write", error))?;
    match hash_of(&mut old.file) {
        Ok(hash) if hash == before => Ok(old),
        Ok(_) => Err(changed_meanwhile(place)),
        Err(error) => Err(FileError::system("read", place.shown(), error)),
    }
}

/// Exchanges the two files, and exchanges them back if the one that came out is not the old one.
fn exchange(
    place: &ScopedPath,
    folder: &ScopedFolder,
    name: &OsStr,
    temporary: &mut TemporaryFile<'_>,
    before: Hash,
    call: CallId,
) -> Result<(), FileError> {
    match swap(folder, temporary.name(), name) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Err(changed_meanwhile(place)),
        // Where the file system can't exchange, a check just before the rename has to do.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            open_unchanged(place, folder, name, before)?;
            return rustix::fs::renameat(folder.handle(), temporary.name(), folder.handle(), name)
                .map_err(|error| place.refused("write", error));
        }
        Err(error) => return Err(place.refused("write", error)),
    }
    let came_out = folder.open(temporary.name()).ok();
    if came_out.is_some_and(|(mut file, _)| hash_of(&mut file).is_ok_and(|hash| hash == before)) {
        temporary.has_replaced();
        return Ok(());
    }
    Err(put_back(place, folder, name, temporary, call))
}

fn swap(folder: &ScopedFolder, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(folder.handle(), one, folder.handle(), other, RenameFlags::EXCHANGE)
}

/// Puts another program's file back under its name. If our file was replaced meanwhile, too, that program did not know
/// of the file that we hold and would have replaced it: its file is the newest, and stays.
fn put_back(
    place: &ScopedPath,
    folder: &ScopedFolder,
    name: &OsStr,
    temporary: &mut TemporaryFile<'_>,
    call: CallId,
) -> FileError {
    let held = temporary.now_under_its_name();
    let back = match swap(folder, temporary.name(), name) {
        Err(Errno::NOENT) => temporary_file::rename_without_replacing(folder, temporary.name(), name),
        Ok(()) if !temporary.is_there() => swap(folder, temporary.name(), name),
        other => other,
    };
    let now = temporary.now_under_its_name();
    if back.is_ok() && (now.is_none() || temporary.is_there()) {
        return changed_meanwhile(place);
    }
    if back.is_ok() && now == held {
        temporary.has_replaced();
        return changed_meanwhile(place);
    }
    let kept = temporary_file::keep(folder, call, name)
        .unwrap_or_else(|_| display_name(temporary.name().as_bytes()));
    let what =
        format!("changed more than once while it was being written; one of the changes was kept in {kept}");
    FileError::Changed { path: place.shown().to_owned(), what }
}

#[cfg(test)]
#[path = "atomic_replace_tests.rs"]
mod tests;
