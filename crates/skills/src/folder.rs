//! The folder of a skill: read once, from open descriptors, with one hash over all that it holds.
//!
//! The hash covers the path, the executable bit and the bytes of every file, and the target of every link. Code that shows,
//! trusts or uses a file of the folder takes it from the same read as the hash, so a folder that changes meanwhile has
//! another hash, and old and new content are never mixed. A `.git` folder is left out: a project can't contain one, and the
//! one of a cloned skill changes by itself.
//!
//! No link is followed. A link inside of the folder may lead to another file of it; one that leads out makes the skill
//! unusable.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use longhaul_protocol::{Hash, PrintablePath, printable};
use longhaul_tools::foreign_writer_of;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{SkillDocument, SkillError, parse_document};

/// The file that makes a folder a skill.
pub const DOCUMENT: &str = "SKILL.md";
const MAX_DOCUMENT_BYTES: u64 = 256 << 10;
pub(crate) const MAX_FOLDER_BYTES: u64 = 32 << 20;
pub(crate) const MAX_ENTRIES: usize = 2_000;
pub(crate) const MAX_DEPTH: usize = 8;
/// The hashed bytes begin with this. A new way of hashing gets a new number.
const HASH_FORM: &str = "longhaul skill 1\n";
const LEFT_OUT: &str = ".git";
/// A text file of more bytes is listed with its hash alone.
const MAX_LISTED_FILE_BYTES: usize = 64 << 10;
/// Bytes of all texts in a listing.
const MAX_LISTING_BYTES: usize = 256 << 10;

/// A skill's folder, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    pub hash: Hash,
    /// In the order of their paths.
    pub files: Vec<SkillFile>,
}

/// A file or a link in a skill's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Relative to the folder.
    pub path: String,
    pub kind: SkillFileKind,
    /// The hash of its bytes, or of the link's target.
    pub hash: Hash,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillFileKind {
    Plain,
    Executable,
    Link,
}

impl SkillFolder {
    /// Reads all files of a folder.
    pub fn read(folder: &Path) -> Result<Self, SkillError> {
        Self::read_with(folder, |_, _| {})
    }

    /// Reads all files of a folder, and shows each with its bytes; a link with its target.
    pub fn read_with(folder: &Path, mut visit: impl FnMut(&SkillFile, &[u8])) -> Result<Self, SkillError> {
        let top = open_top(folder)?;
        let mut reader = FolderReader {
            top: folder,
            files: vec![],
            entries: 0,
            bytes_left: MAX_FOLDER_BYTES,
            visit: &mut visit,
        };
        reader.read_folder(&top, "", 0)?;
        let mut files = reader.files;
        if !files.iter().any(|file| file.path == DOCUMENT) {
            return Err(SkillError::NoDocument);
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { hash: hash_files(&files), files })
    }

    /// Reads a folder, and renders all that it holds as one text: for the user to read, and to compare with a later one.
    pub fn read_listing(folder: &Path) -> Result<(Self, String), SkillError> {
        let mut texts = std::collections::BTreeMap::new();
        let read = Self::read_with(folder, |file, bytes| {
            if bytes.len() <= MAX_LISTED_FILE_BYTES
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                texts.insert(file.path.clone(), text.to_owned());
            }
        })?;
        let mut listing = String::new();
        for file in &read.files {
            let kind = match file.kind {
                SkillFileKind::Plain => "file",
                SkillFileKind::Executable => "program",
                SkillFileKind::Link => "link",
            };
            let path = printable(file.path.as_bytes());
            listing += &format!("== {path} ({kind}, {} bytes, blake3 {})\n", file.bytes, file.hash);
            match texts.get(&file.path) {
                Some(text) if listing.len() + text.len() <= MAX_LISTING_BYTES => {
                    for line in text.split_inclusive('\n') {
                        // Only the listing begins a file.
                        listing += if line.starts_with("== ") { "\\" } else { "" };
                        listing += line;
                    }
                    if !text.is_empty() && !text.ends_with('\n') {
                        listing.push('\n');
                    }
                }
                _ => listing += "(not shown: it is not text, or too long)\n",
            }
        }
        Ok((read, listing))
    }
}

/// Reads and parses the SKILL.md of a folder.
pub fn read_document(folder: &Path) -> Result<SkillDocument, SkillError> {
    let top = open_top(folder)?;
    let status = match rustix::fs::statat(&top, DOCUMENT, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Err(SkillError::NoDocument),
        looked => looked.map_err(|error| SkillError::unreadable(DOCUMENT, error))?,
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(SkillError::DocumentLink { path: DOCUMENT.to_owned() }),
        _ => return Err(SkillError::Special { path: DOCUMENT.to_owned() }),
    }
    let (bytes, _) = read_file(&top, DOCUMENT, DOCUMENT, MAX_DOCUMENT_BYTES)?
        .ok_or(SkillError::DocumentTooLarge { max_bytes: MAX_DOCUMENT_BYTES })?;
    parse_document_bytes(&bytes, folder)
}

/// Parses the bytes of the SKILL.md of this folder.
pub fn parse_document_bytes(bytes: &[u8], folder: &Path) -> Result<SkillDocument, SkillError> {
    let text = std::str::from_utf8(bytes).map_err(|_| SkillError::invalid("SKILL.md is not valid UTF-8"))?;
    parse_document(text, &folder.file_name().unwrap_or_default().to_string_lossy())
}

/// Opens the folder itself. Its path is canonical, so a link in its place was put there since.
fn open_top(folder: &Path) -> Result<OwnedFd, SkillError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = match rustix::fs::openat(CWD, folder, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(SkillError::Gone),
        opened => opened.map_err(|error| SkillError::unreadable(&folder.printable().to_string(), error))?,
    };
    check_owner(&top, "its folder", ".")?;
    Ok(top)
}

/// Refuses what another user could have written.
fn check_owner(file: impl AsFd, what: &str, path: &str) -> Result<Stat, SkillError> {
    let status = rustix::fs::fstat(file).map_err(|error| SkillError::unreadable(path, error))?;
    match foreign_writer_of(&status, what) {
        Some(reason) => Err(SkillError::Foreign { path: path.to_owned(), reason }),
        None => Ok(status),
    }
}

/// Reads a regular file of an open folder. `None` if it has more than `max_bytes`.
fn read_file(
    folder: &OwnedFd,
    name: &str,
    path: &str,
    max_bytes: u64,
) -> Result<Option<(Vec<u8>, Stat)>, SkillError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| SkillError::unreadable(path, error))?);
    let status = check_owner(&file, path, path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(SkillError::Special { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let read = file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes);
    let length = read.map_err(|error| SkillError::unreadable(path, error))? as u64;
    Ok((length <= max_bytes).then_some((bytes, status)))
}

struct FolderReader<'a> {
    top: &'a Path,
    files: Vec<SkillFile>,
    entries: usize,
    bytes_left: u64,
    visit: &'a mut dyn FnMut(&SkillFile, &[u8]),
}

impl FolderReader<'_> {
    fn read_folder(&mut self, folder: &OwnedFd, above: &str, depth: usize) -> Result<(), SkillError> {
        if depth > MAX_DEPTH {
            return Err(SkillError::TooDeep);
        }
        for name in entry_names(folder, above)? {
            let path = if above.is_empty() { name.clone() } else { format!("{above}/{name}") };
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(SkillError::TooManyFiles);
            }
            let status = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW);
            let status = status.map_err(|error| SkillError::unreadable(&path, error))?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let below = rustix::fs::openat(folder, &name, flags, Mode::empty());
                    let below = below.map_err(|error| SkillError::unreadable(&path, error))?;
                    check_owner(&below, &path, &path)?;
                    self.read_folder(&below, &path, depth + 1)?;
                }
                FileType::RegularFile => self.read_file(folder, &name, path)?,
                FileType::Symlink => self.read_link(folder, &name, path)?,
                _ => return Err(SkillError::Special { path }),
            }
        }
        Ok(())
    }

    fn read_file(&mut self, folder: &OwnedFd, name: &str, path: String) -> Result<(), SkillError> {
        let (bytes, status) =
            read_file(folder, name, &path, self.bytes_left)?.ok_or(SkillError::FolderTooLarge)?;
        if path == DOCUMENT && bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            return Err(SkillError::DocumentTooLarge { max_bytes: MAX_DOCUMENT_BYTES });
        }
        self.bytes_left -= bytes.len() as u64;
        let is_executable = status.st_mode & 0o100 != 0;
        let kind = if is_executable { SkillFileKind::Executable } else { SkillFileKind::Plain };
        self.add(path, kind, &bytes);
        Ok(())
    }

    fn read_link(&mut self, folder: &OwnedFd, name: &str, path: String) -> Result<(), SkillError> {
        if path == DOCUMENT {
            return Err(SkillError::DocumentLink { path });
        }
        let target = rustix::fs::readlinkat(folder, name, Vec::new());
        let target = target.map_err(|error| SkillError::unreadable(&path, error))?.into_bytes();
        let leads_to = self.top.join(&path).canonicalize().ok();
        if !leads_to.is_some_and(|leads_to| leads_to.starts_with(self.top)) {
            let target = printable(&target).to_string();
            return Err(SkillError::LeadsOut { path, target });
        }
        self.add(path, SkillFileKind::Link, &target);
        Ok(())
    }

    fn add(&mut self, path: String, kind: SkillFileKind, bytes: &[u8]) {
        let file = SkillFile { path, kind, hash: Hash::of(bytes), bytes: bytes.len() as u64 };
        (self.visit)(&file, bytes);
        self.files.push(file);
    }
}

/// The names in an open folder, sorted.
fn entry_names(folder: &OwnedFd, path: &str) -> Result<Vec<String>, SkillError> {
    let shown = if path.is_empty() { "." } else { path };
    let failed = |error: Errno| SkillError::unreadable(shown, error);
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." || name == LEFT_OUT.as_bytes() {
            continue;
        }
        let name = std::str::from_utf8(name).map_err(|_| {
            SkillError::unreadable(shown, format!("the name {} is not valid UTF-8", printable(name)))
        })?;
        names.push(name.to_owned());
        if names.len() > MAX_ENTRIES {
            return Err(SkillError::TooManyFiles);
        }
    }
    names.sort();
    Ok(names)
}

/// The hash of a folder with these files, which are sorted.
fn hash_files(files: &[SkillFile]) -> Hash {
    let mut framed = HASH_FORM.as_bytes().to_vec();
    for file in files {
        framed.push(match file.kind {
            SkillFileKind::Plain => b'f',
            SkillFileKind::Executable => b'x',
            SkillFileKind::Link => b'l',
        });
        framed.extend((file.path.len() as u64).to_le_bytes());
        framed.extend(file.path.as_bytes());
        framed.extend(file.hash.as_bytes());
    }
    Hash::of(&framed)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
