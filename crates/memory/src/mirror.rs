//! Pages as Markdown files, to read and grep. The journal is the truth: what a person does to a file is said, and never overwritten.
//!
//! A file is ours if it holds what was last written here, or any text that its page has or had: then nothing is lost with it. What was last
//! written stands in a file of its own, which can go at any time: then every file that is missing is written, and every other one is judged by
//! the texts of its page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use longhaul_journal::ReplacingFile;
use longhaul_protocol::{ChangedBy, Hash, PrintablePath, Seq};
use serde::{Deserialize, Serialize};

use crate::book::PageSet;
use crate::page::LARGEST_PAGE;
use crate::{Error, Result, page};

/// What was last written is noted here.
const STATE: &str = ".mirror.json";
/// A file of notes that is larger was not written by us.
const LARGEST_STATE: u64 = 4 << 20;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorReport {
    /// The pages whose files were written.
    pub written: Vec<String>,
    /// Files that a person changed or deleted, and that were left so, each with what can be done.
    pub left: Vec<String>,
}

/// What was last written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MirrorState {
    /// The last change of all that was known then.
    #[serde(default)]
    head: Seq,
    pages: BTreeMap<String, MirroredVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MirroredVersion {
    /// The change that it was.
    seq: Seq,
    /// The hash of the text.
    text: Hash,
}

/// What stands where a page's file should be.
enum FileState {
    Nothing,
    Text(Text),
    /// Something that is not ours to touch, and why.
    Odd(String),
}

/// A text by its hash: as it is, and as a page would have it.
struct Text {
    exact: Hash,
    tidy: Hash,
}

/// Brings the files of a scope up to date. `folder` is that of the scope.
pub fn mirror_pages(book: &PageSet, folder: &Path) -> Result<MirrorReport> {
    if book.pages.is_empty() && is_missing(folder) {
        return Ok(MirrorReport::default());
    }
    make_folder(folder)?;
    // Two at once would take each other's files for a person's. Where a folder can't be locked, that is all that happens.
    let alone = File::open(folder).map_err(|error| said(folder, &error))?;
    let _ = alone.lock();
    let before = MirrorState::read(folder)?;
    if before.head > book.head {
        // Somebody who had read further was faster.
        return Ok(MirrorReport::default());
    }
    let state = MirrorState { head: book.head, ..before.clone() };
    let mut files = Files { book, folder, state, mirrored: MirrorReport::default() };
    for name in book.pages.keys() {
        files.bring_up_to_date(name)?;
    }
    let known: BTreeSet<&str> = before.pages.keys().map(String::as_str).chain(book.removed()).collect();
    for name in known.into_iter().filter(|name| !book.pages.contains_key(*name)) {
        files.remove(name)?;
    }
    if files.state != before {
        files.state.write(folder)?;
    }
    Ok(files.mirrored)
}

struct Files<'a> {
    book: &'a PageSet,
    folder: &'a Path,
    state: MirrorState,
    mirrored: MirrorReport,
}

impl Files<'_> {
    /// Whether a text is what was written last, or one that the page has or had: then nothing is lost with it.
    fn is_ours(&self, name: &str, there: &Text) -> bool {
        self.state.pages.get(name).is_some_and(|last| last.text == there.exact)
            || self.book.had(name, there.exact)
            || self.book.had(name, there.tidy)
    }

    fn bring_up_to_date(&mut self, name: &str) -> Result<()> {
        let Some(page) = self.book.pages.get(name) else { return Ok(()) };
        let (file, hash) = (self.folder.join(format!("{name}.md")), Hash::of(&page.text));
        let newest = page.versions.last();
        let now = MirroredVersion { seq: newest.map_or(0, |version| version.seq), text: hash };
        let last = self.state.pages.get(name).copied();
        let path = file.printable();
        match (look(&file), last) {
            (FileState::Text(there), _) if there.exact == hash => {
                self.state.pages.insert(name.to_owned(), now);
                return Ok(());
            }
            (FileState::Text(there), _) if self.is_ours(name, &there) => {}
            (FileState::Text(_), _) => {
                let left = format!(
                    "{path} was changed by hand and is left so: `longhaul memory edit {name} --file {path}` takes it in; once it is \
                     deleted, and {STATE} beside it, the page is written there again"
                );
                self.mirrored.left.push(left);
                return Ok(());
            }
            (FileState::Nothing, None) => {}
            // Whoever edits the page after deleting its file wants it.
            (FileState::Nothing, Some(last))
                if newest.is_some_and(|newest| newest.by == ChangedBy::Person && newest.seq > last.seq) => {}
            (FileState::Nothing, Some(_)) => {
                let left = format!(
                    "{path} was deleted by hand and is not written again: `longhaul memory edit {name}` writes it with what you change, \
                     `longhaul memory export` writes all pages elsewhere, and `longhaul memory show {name}` shows it"
                );
                self.mirrored.left.push(left);
                return Ok(());
            }
            (FileState::Odd(reason), _) => {
                self.mirrored.left.push(format!("{path} is not written: {reason}"));
                return Ok(());
            }
        }
        replace(&file, page.text.as_bytes())?;
        self.state.pages.insert(name.to_owned(), now);
        self.mirrored.written.push(name.to_owned());
        Ok(())
    }

    /// Removes the file of a page that is gone, if it is ours.
    fn remove(&mut self, name: &str) -> Result<()> {
        // A name that is none was not noted by us, and would be a path to anywhere.
        if page::check_page_name(name).is_ok() {
            let file = self.folder.join(format!("{name}.md"));
            let path = file.printable();
            match look(&file) {
                FileState::Nothing => {}
                FileState::Text(there) if self.is_ours(name, &there) => {
                    fs::remove_file(&file).map_err(|error| said(&file, &error))?;
                }
                FileState::Text(_) => {
                    self.mirrored.left.push(format!(
                        "{path} was changed by hand, and its page was removed: `longhaul memory edit {name} --file {path}` makes it a \
                         page again; delete it if it is not needed"
                    ));
                    return Ok(());
                }
                FileState::Odd(reason) => {
                    self.mirrored.left.push(format!("{path} is not removed, though its page was: {reason}"));
                    return Ok(());
                }
            }
        }
        self.state.pages.remove(name);
        Ok(())
    }
}

impl MirrorState {
    /// What was noted; nothing, if it was lost or can't be understood.
    fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(STATE);
        match fs::symlink_metadata(&file) {
            Ok(metadata) if metadata.is_symlink() => Err(refused(&file, "it is a link, and is not followed")),
            Ok(metadata) if !metadata.is_file() => Err(refused(&file, "it is no file; move it away")),
            Ok(metadata) if metadata.len() > LARGEST_STATE => Ok(Self::default()),
            Ok(_) => {
                let bytes = fs::read(&file).map_err(|error| said(&file, &error))?;
                Ok(serde_json::from_slice(&bytes).unwrap_or_default())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(said(&file, &error)),
        }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).expect("names, numbers and hashes can be written as JSON");
        replace(&folder.join(STATE), &text)
    }
}

fn is_missing(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Makes a folder that only the user may read, where there is none. A link in its place is not followed.
fn make_folder(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(refused(folder, "it is a link, and is not followed; put a folder in its place"))
        }
        Ok(metadata) if !metadata.is_dir() => Err(refused(folder, "it is not a folder; move it away")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| said(folder, &error))
        }
        Err(error) => Err(said(folder, &error)),
    }
}

fn look(file: &Path) -> FileState {
    let is_plain = |metadata: &Metadata| {
        if metadata.is_symlink() {
            Err("it is a link, and is not followed".to_owned())
        } else if metadata.is_file() {
            Ok(())
        } else {
            Err("it is no file".to_owned())
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
    if metadata.len() > LARGEST_PAGE as u64 {
        // No page is so large: it need not be read to know that it is none of ours.
        return FileState::Text(Text { exact: Hash::ZERO, tidy: Hash::ZERO });
    }
    match fs::read(file) {
        Ok(bytes) => {
            let exact = Hash::of(&bytes);
            let tidied = std::str::from_utf8(&bytes).ok().and_then(page::tidy);
            FileState::Text(Text { exact, tidy: tidied.map_or(exact, Hash::of) })
        }
        Err(error) => FileState::Odd(error.to_string()),
    }
}

/// Replaces a file as a whole; a link that was put in its place meanwhile is replaced too, not followed.
fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut replacing = ReplacingFile::create(file)?;
    replacing.write_all(bytes).map_err(|error| said(file, &error))?;
    Ok(replacing.finish()?)
}

fn said(path: &Path, error: &std::io::Error) -> Error {
    refused(path, &error.to_string())
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::File { path: path.printable().to_string(), reason: reason.to_owned() }
}
