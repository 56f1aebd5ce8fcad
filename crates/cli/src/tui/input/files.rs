//! The files and folders of one folder below the folder of work, for `@`.

use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use ignore::Match;
use ignore::gitignore::Gitignore;

use super::chips::is_mark;

/// How many entries of a folder are looked at; more would be felt while typing.
pub(super) const MAX_DIR_ENTRIES: usize = 500;

/// A file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) kind: FileKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileKind {
    File,
    Folder,
}

/// What a folder below the folder of work holds that git would not ignore, sorted. Nothing, if it can't be read or leads
/// out of there.
pub(super) fn list(work_dir: &Path, folder: &str) -> Vec<FileEntry> {
    let Some(folder) = below(work_dir, folder) else { return Vec::new() };
    let Ok(found) = std::fs::read_dir(&folder) else { return Vec::new() };
    let rules = rules_of(&folder, work_dir);
    let entries =
        found.take(MAX_DIR_ENTRIES).filter_map(Result::ok).filter_map(|entry| named(&entry, &rules));
    let mut entries: Vec<FileEntry> = entries.collect();
    entries.sort();
    entries
}

/// The folder, if it is where it says: neither `..` nor an absolute path nor a link leads out of the folder of work.
fn below(work_dir: &Path, folder: &str) -> Option<PathBuf> {
    let is_plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    if !Path::new(folder).components().all(is_plain) {
        return None;
    }
    let real = work_dir.join(folder).canonicalize().ok()?;
    real.starts_with(work_dir.canonicalize().ok()?).then_some(real)
}

fn named(entry: &DirEntry, rules: &[Gitignore]) -> Option<FileEntry> {
    let name = entry.file_name().into_string().ok()?;
    let is_strange = |character: char| character.is_control() || character == '"' || is_mark(character);
    if name.contains(is_strange) {
        return None;
    }
    let kind = entry.file_type().ok()?;
    let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
    // The rule that is nearest to the file decides.
    let decides =
        rules.iter().map(|rules| rules.matched(entry.path(), is_folder)).find(|found| !found.is_none());
    if matches!(decides, Some(Match::Ignore(_))) {
        return None;
    }
    Some(FileEntry { name, kind: if is_folder { FileKind::Folder } else { FileKind::File } })
}

/// The rules of a folder and those above it, the nearest first: up to the top of the repository, or else of the work.
fn rules_of(folder: &Path, work_dir: &Path) -> Vec<Gitignore> {
    let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.to_owned());
    let is_top = |folder: &Path| folder.join(".git").exists();
    let top = folder.ancestors().find(|above| is_top(above)).unwrap_or(&work_dir);
    let folders = folder.ancestors().take_while(|above| above.starts_with(top));
    let files = folders.map(|folder| folder.join(".gitignore")).filter(|file| file.is_file());
    files.map(|file| Gitignore::new(file).0).collect()
}
