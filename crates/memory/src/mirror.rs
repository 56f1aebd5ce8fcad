//! Mirrors pages as Markdown files, to read and grep. The journal is the truth: a file that a person changed is
//! reported and never overwritten.
//!
//! A file is unmodified if it contains the last written text, or any text that its page has or had. Replacing such a
//! file loses nothing. A state file records what was last written. It can be deleted at any time: then missing files
//! are written, and the others are compared with the texts of their pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use longhaul_journal::ReplacingFile;
use longhaul_protocol::{ChangedBy, Hash, PrintablePath, Seq};
use serde::{Deserialize, Serialize};

use crate::page::MAX_PAGE_BYTES;
use crate::page_set::PageSet;
use crate::{Error, Result, page};

const STATE_FILE: &str = ".mirror.json";
const MAX_STATE_BYTES: u64 = 4 << 20;

/// The result of [`mirror_pages`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorReport {
    pub written: Vec<String>,
    /// Files that a person changed or deleted and that stay as they are, each with a hint.
    pub left: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MirrorState {
    /// The newest change of the scope when the files were written.
    #[serde(default)]
    head: Seq,
    pages: BTreeMap<String, MirroredVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MirroredVersion {
    seq: Seq,
    text: Hash,
}

/// What is at the path of a page's file.
enum FileState {
    Nothing,
    FileText(FileText),
    /// Another kind of file, which must not be touched. Holds the reason.
    Odd(String),
}

/// The hash of a file's text, both unchanged and normalised.
struct FileText {
    exact: Hash,
    normalised: Hash,
}

/// Updates the files of a scope in its folder.
pub fn mirror_pages(page_set: &PageSet, folder: &Path) -> Result<MirrorReport> {
    if page_set.pages.is_empty() && is_missing(folder) {
        return Ok(MirrorReport::default());
    }
    create_folder(folder)?;
    // Two mirrors at once would take each other's files for a person's. If the file system does not support locks,
    // this is the worst that can happen.
    let alone = File::open(folder).map_err(|error| io_error(folder, &error))?;
    let _ = alone.lock();
    let before = MirrorState::read(folder)?;
    if before.head > page_set.head {
        // Another process that had read further has already written the files.
        return Ok(MirrorReport::default());
    }
    let state = MirrorState { head: page_set.head, ..before.clone() };
    let mut files = MirrorJob { page_set, folder, state, mirrored: MirrorReport::default() };
    for name in page_set.pages.keys() {
        files.update_file(name)?;
    }
    let known: BTreeSet<&str> =
        before.pages.keys().map(String::as_str).chain(page_set.removed_pages()).collect();
    for name in known.into_iter().filter(|name| !page_set.pages.contains_key(*name)) {
        files.remove_file(name)?;
    }
    if files.state != before {
        files.state.write(folder)?;
    }
    Ok(files.mirrored)
}

struct MirrorJob<'a> {
    page_set: &'a PageSet,
    folder: &'a Path,
    state: MirrorState,
    mirrored: MirrorReport,
}

impl MirrorJob<'_> {
    /// Whether a file contains the last written text, or a text that the page has or had.
    fn is_unmodified(&self, name: &str, there: &FileText) -> bool {
        self.state.pages.get(name).is_some_and(|last| last.text == there.exact)
            || self.page_set.has_had(name, there.exact)
            || self.page_set.has_had(name, there.normalised)
    }

    fn update_file(&mut self, name: &str) -> Result<()> {
        let Some(page) = self.page_set.pages.get(name) else { return Ok(()) };
        let (file, hash) = (self.folder.join(format!("{name}.md")), Hash::of(&page.text));
        let newest = page.versions.last();
        let now = MirroredVersion { seq: newest.map_or(0, |version| version.seq), text: hash };
        let last = self.state.pages.get(name).copied();
        let path = file.printable();
        match (read_state(&file), last) {
            (FileState::FileText(there), _) if there.exact == hash => {
                self.state.pages.insert(name.to_owned(), now);
                return Ok(());
            }
            (FileState::FileText(there), _) if self.is_unmodified(name, &there) => {}
            (FileState::FileText(_), _) => {
                let left = format!(
                    "{path} was edited, so it is not updated; to use the edited text: `longhaul memory edit {name} --file {path}`; \
                     to get the page back, delete it and {STATE_FILE} next to it"
                );
                self.mirrored.left.push(left);
                return Ok(());
            }
            (FileState::Nothing, None) => {}
            // A person who edits the page after deleting its file wants the file back.
            (FileState::Nothing, Some(last))
                if newest.is_some_and(|newest| newest.by == ChangedBy::Person && newest.seq > last.seq) => {}
            (FileState::Nothing, Some(_)) => {
                let left = format!(
                    "{path} was deleted, so it is not written again; to see the page: `longhaul memory show {name}`; to get the \
                     file back, change the page with `longhaul memory edit {name}`"
                );
                self.mirrored.left.push(left);
                return Ok(());
            }
            (FileState::Odd(reason), _) => {
                self.mirrored.left.push(format!("could not write {path}: {reason}"));
                return Ok(());
            }
        }
        replace_file(&file, page.text.as_bytes())?;
        self.state.pages.insert(name.to_owned(), now);
        self.mirrored.written.push(name.to_owned());
        Ok(())
    }

    /// Removes the file of a removed page, if it is unmodified.
    fn remove_file(&mut self, name: &str) -> Result<()> {
        // The runtime never writes an invalid name, and such a name could be a path to anywhere.
        if page::check_page_name(name).is_ok() {
            let file = self.folder.join(format!("{name}.md"));
            let path = file.printable();
            match read_state(&file) {
                FileState::Nothing => {}
                FileState::FileText(there) if self.is_unmodified(name, &there) => {
                    fs::remove_file(&file).map_err(|error| io_error(&file, &error))?;
                }
                FileState::FileText(_) => {
                    self.mirrored.left.push(format!(
                        "{path} was edited, but its page was removed; to make it a page again: `longhaul memory edit {name} --file \
                         {path}`; delete the file if you don't need it"
                    ));
                    return Ok(());
                }
                FileState::Odd(reason) => {
                    self.mirrored
                        .left
                        .push(format!("could not remove {path}, whose page was removed: {reason}"));
                    return Ok(());
                }
            }
        }
        self.state.pages.remove(name);
        Ok(())
    }
}

impl MirrorState {
    /// Empty if the file is missing or unreadable.
    fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(STATE_FILE);
        match fs::symlink_metadata(&file) {
            Ok(metadata) if metadata.is_symlink() => Err(file_error(&file, "it is a symbolic link")),
            Ok(metadata) if !metadata.is_file() => {
                Err(file_error(&file, "it is not a regular file; move it away"))
            }
            Ok(metadata) if metadata.len() > MAX_STATE_BYTES => Ok(Self::default()),
            Ok(_) => {
                let bytes = fs::read(&file).map_err(|error| io_error(&file, &error))?;
                Ok(serde_json::from_slice(&bytes).unwrap_or_default())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(io_error(&file, &error)),
        }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).expect("names, numbers and hashes can be written as JSON");
        replace_file(&folder.join(STATE_FILE), &text)
    }
}

fn is_missing(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Creates a folder that only the user may read. A symbolic link in its place is not followed.
fn create_folder(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(file_error(folder, "it is a symbolic link; replace it with a folder"))
        }
        Ok(metadata) if !metadata.is_dir() => Err(file_error(folder, "it is not a folder; move it away")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| io_error(folder, &error)),
        Err(error) => Err(io_error(folder, &error)),
    }
}

fn read_state(file: &Path) -> FileState {
    let is_plain = |metadata: &Metadata| {
        if metadata.is_symlink() {
            Err("it is a symbolic link".to_owned())
        } else if metadata.is_file() {
            Ok(())
        } else {
            Err("it is not a regular file".to_owned())
        }
    };
    let metadata = match fs::symlink_metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return FileState::Nothing,
        Err(error) => return FileState::Odd(error.to_string()),
    };
    if let Err(reason) = is_plain(&metadata) {
        return FileState::Odd(reason);
    }
    if metadata.len() > MAX_PAGE_BYTES as u64 {
        // No page is that large, so the file can't be a page.
        return FileState::FileText(FileText { exact: Hash::ZERO, normalised: Hash::ZERO });
    }
    match fs::read(file) {
        Ok(bytes) => {
            let exact = Hash::of(&bytes);
            let normalised = std::str::from_utf8(&bytes).ok().and_then(page::normalise_page);
            FileState::FileText(FileText { exact, normalised: normalised.map_or(exact, Hash::of) })
        }
        Err(error) => FileState::Odd(error.to_string()),
    }
}

/// Replaces a file atomically. A symbolic link in its place is replaced, not followed.
fn replace_file(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut replacing = ReplacingFile::create(file)?;
    replacing.write_all(bytes).map_err(|error| io_error(file, &error))?;
    Ok(replacing.finish()?)
}

fn io_error(path: &Path, error: &std::io::Error) -> Error {
    file_error(path, &error.to_string())
}

fn file_error(path: &Path, reason: &str) -> Error {
    Error::File { path: path.printable().to_string(), reason: reason.to_owned() }
}
