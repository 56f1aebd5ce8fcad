//! Small files that the runtime reads by itself: configuration, rules and instructions.
//!
//! Such a file is opened once, without blocking, and every check is made on the open descriptor that is then read. A
//! file that is swapped after a check is never read in its place.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::FileError;
use crate::display::display_path;
use crate::scope::{EntryKind, EntryStatus, PATH_ONLY};

/// What to do with a link in place of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// Follow it: the user named it.
    Follow,
    /// Refuse it: it may be part of a project, or a command may have put it there.
    Refuse,
}

/// The content of a small file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    /// At most as many bytes as the caller asked for.
    pub bytes: Vec<u8>,
    /// Whether the file is longer.
    pub is_cut: bool,
    /// Why another user could have written it: `it belongs to another user (1001)`. `None` if none could.
    pub foreign: Option<String>,
}

/// Which folder a file lies in, by whether another user may put files into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderRule {
    /// A sticky folder such as `/tmp` is fine: only the owner of a file can replace it there.
    OwnFile,
    /// No other user may be able to put anything there, so a sticky folder is not.
    OwnFolder,
}

/// Reads a small file. `None` if it does not exist.
pub fn read_small_file(path: &Path, link: LastLink, max_bytes: u64) -> Result<Option<SmallFile>, FileError> {
    read_small_file_by(path, link, FolderRule::OwnFile, max_bytes)
}

/// Reads a small file of a folder above the work folder, which the user may not even know of. `None` if it does not
/// exist. A link is refused, and so is a file in a folder that every user can write, sticky or not.
pub fn read_file_above(path: &Path, max_bytes: u64) -> Result<Option<SmallFile>, FileError> {
    read_small_file_by(path, LastLink::Refuse, FolderRule::OwnFolder, max_bytes)
}

fn read_small_file_by(
    path: &Path,
    link: LastLink,
    rule: FolderRule,
    max_bytes: u64,
) -> Result<Option<SmallFile>, FileError> {
    let shown = display_path(path);
    let failed = |error: Errno| FileError::system("read", &shown, error);
    let Some(name) = path.file_name() else { return Err(FileError::IsFolder { path: shown }) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(CWD, parent, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    match open_in(&folder, name, link) {
        Ok(Some(Ok(file))) => read_open_file(file, &folder, rule, max_bytes)
            .map(Some)
            .map_err(|error| FileError::system("read", &shown, error)),
        Ok(Some(Err(EntryKind::Folder))) => Err(FileError::IsFolder { path: shown }),
        Ok(Some(Err(EntryKind::Link))) => Err(FileError::IsLink { path: shown }),
        Ok(Some(Err(EntryKind::Special(kind)))) => Err(FileError::Special { path: shown, kind }),
        Ok(None | Some(Err(EntryKind::File))) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Reads a small file that is useless in part: a file longer than `max_bytes` is an error. `None` if it does not
/// exist.
pub(crate) fn read_whole(path: &Path, link: LastLink, max_bytes: u64) -> Result<Option<String>, FileError> {
    match read_small_file(path, link, max_bytes)? {
        Some(SmallFile { is_cut: true, .. }) => {
            Err(FileError::system("read", &display_path(path), Errno::FBIG))
        }
        file => Ok(file.map(|file| String::from_utf8_lossy(&file.bytes).into_owned())),
    }
}

/// Opens a regular file, or returns the kind of what else is there. Nothing else is opened: that can block for ever,
/// or have an effect.
fn open_in(
    folder: &OwnedFd,
    name: &OsStr,
    link: LastLink,
) -> rustix::io::Result<Option<Result<File, EntryKind>>> {
    let (at, follow) = match link {
        LastLink::Follow => (AtFlags::empty(), OFlags::empty()),
        LastLink::Refuse => (AtFlags::SYMLINK_NOFOLLOW, OFlags::NOFOLLOW),
    };
    let kind = |status: &Stat| EntryStatus::from(status).kind;
    let before = match rustix::fs::statat(folder, name, at) {
        Err(Errno::NOENT) => return Ok(None),
        looked => kind(&looked?),
    };
    if before != EntryKind::File {
        return Ok(Some(Err(before)));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Ok(Some(Err(EntryKind::Link))),
        opened => opened?,
    };
    match kind(&rustix::fs::fstat(&file)?) {
        EntryKind::File => Ok(Some(Ok(File::from(file)))),
        other => Ok(Some(Err(other))),
    }
}

/// Reads an open file of this folder.
pub(crate) fn read_open_file(
    file: File,
    folder: &impl AsFd,
    rule: FolderRule,
    max_bytes: u64,
) -> io::Result<SmallFile> {
    let (status, folder_status) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(folder)?);
    let foreign = foreign_writer((&status).into(), (&folder_status).into(), rule);
    let mut bytes = Vec::new();
    let length = file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)? as u64;
    let is_cut = length > max_bytes;
    if is_cut {
        bytes.truncate(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    }
    Ok(SmallFile { bytes, is_cut, foreign })
}

/// Owner, group and mode.
#[derive(Debug, Clone, Copy)]
struct WriteAccess {
    user: u32,
    group: u32,
    mode: u32,
}

#[allow(clippy::unnecessary_cast, reason = "these have other types on other systems")]
impl From<&Stat> for WriteAccess {
    fn from(status: &Stat) -> Self {
        Self { user: status.st_uid, group: status.st_gid, mode: status.st_mode as u32 }
    }
}

/// Why a user other than this one and root could have written a file, or replaced it in its folder.
fn foreign_writer(file: WriteAccess, folder: WriteAccess, rule: FolderRule) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let is_sticky = folder.mode & 0o1000 != 0;
    let folder = match rule {
        FolderRule::OwnFile if is_sticky => WriteAccess { mode: 0, ..folder },
        FolderRule::OwnFile | FolderRule::OwnFolder => folder,
    };
    other_writer(user, file, "it").or_else(|| other_writer(user, folder, "its folder"))
}

/// Why a user other than this one and root could have written what has this status. `what` names it in the answer: `it`,
/// `its folder`.
pub fn foreign_writer_of(status: &Stat, what: &str) -> Option<String> {
    other_writer(rustix::process::geteuid().as_raw(), status.into(), what)
}

fn other_writer(user: u32, of: WriteAccess, what: &str) -> Option<String> {
    if of.user != user && of.user != 0 {
        Some(format!("{what} belongs to another user ({})", of.user))
    } else if of.mode & 0o002 != 0 {
        Some(format!("every user can write {what}"))
    } else if of.mode & 0o020 != 0 && !is_own_group(user, of.group) {
        Some(format!("the group {} can write {what}", of.group))
    } else {
        None
    }
}

/// Whether a group has no other member than this user. Many systems give each user such a group, and let it write the
/// user's files.
fn is_own_group(user: u32, group: u32) -> bool {
    let list = |path| fs::read_to_string(path).unwrap_or_default();
    group == 0 || has_no_other_member(user, group, &list("/etc/passwd"), &list("/etc/group"))
}

/// Decides by the system's lists of users and groups. A group that they don't have counts if it has the user's number.
fn has_no_other_member(user: u32, group: u32, users: &str, groups: &str) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let is = |field: Option<&String>, number: u32| field.is_some_and(|field| *field == number.to_string());
    let (own, others): (Vec<_>, Vec<_>) = users.lines().map(fields).partition(|line| is(line.get(2), user));
    let is_first_group = |line: &Vec<String>| is(line.get(3), group);
    let members = groups
        .lines()
        .map(fields)
        .filter(|line| is(line.get(2), group))
        .filter_map(|line| line.into_iter().nth(3));
    let is_own_name = |name: &str| own.iter().any(|line| line.first().is_some_and(|own| own == name));
    let has_others =
        members.into_iter().any(|names| names.split(',').any(|name| !name.is_empty() && !is_own_name(name)));
    (group == user || own.iter().any(is_first_group)) && !others.iter().any(is_first_group) && !has_others
}

#[cfg(test)]
#[path = "small_file_tests.rs"]
mod tests;
