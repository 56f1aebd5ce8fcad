//! The files of a folder in the work folder, for completion after `@`.

use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use ignore::Match;
use ignore::gitignore::Gitignore;

use super::chips::is_mark;

/// Entries read of a folder: more would delay typing.
pub(super) const MAX_DIR_ENTRIES: usize = 500;

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

/// The entries of a folder that git would not ignore, sorted. Empty if the folder can't be read or is outside of the work folder.
pub(super) fn list(work_dir: &Path, folder: &str) -> Vec<FileEntry> {
    let Some(folder) = resolve_inside(work_dir, folder) else { return Vec::new() };
    let Ok(found) = std::fs::read_dir(&folder) else { return Vec::new() };
    let rules = ignore_rules(&folder, work_dir);
    let entries =
        found.take(MAX_DIR_ENTRIES).filter_map(Result::ok).filter_map(|entry| visible_entry(&entry, &rules));
    let mut entries: Vec<FileEntry> = entries.collect();
    entries.sort();
    entries
}

/// The canonical path of a folder, unless `..`, an absolute path or a link leads out of the work folder.
fn resolve_inside(work_dir: &Path, folder: &str) -> Option<PathBuf> {
    let is_plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    if !Path::new(folder).components().all(is_plain) {
        return None;
    }
    let real = work_dir.join(folder).canonicalize().ok()?;
    real.starts_with(work_dir.canonicalize().ok()?).then_some(real)
}

fn visible_entry(entry: &DirEntry, rules: &[Gitignore]) -> Option<FileEntry> {
    let name = entry.file_name().into_string().ok()?;
    let is_strange = |character: char| character.is_control() || character == '"' || is_mark(character);
    if name.contains(is_strange) {
        return None;
    }
    let kind = entry.file_type().ok()?;
    let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
    // The nearest .gitignore with a matching rule decides.
    let decides =
        rules.iter().map(|rules| rules.matched(entry.path(), is_folder)).find(|found| !found.is_none());
    if matches!(decides, Some(Match::Ignore(_))) {
        return None;
    }
    Some(FileEntry { name, kind: if is_folder { FileKind::Folder } else { FileKind::File } })
}

/// The .gitignore files of a folder and its parents, the nearest first, up to the top of the repository or the work folder.
fn ignore_rules(folder: &Path, work_dir: &Path) -> Vec<Gitignore> {
    let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.to_owned());
    let is_top = |folder: &Path| folder.join(".git").exists();
    let top = folder.ancestors().find(|above| is_top(above)).unwrap_or(&work_dir);
    let folders = folder.ancestors().take_while(|above| above.starts_with(top));
    let files = folders.map(|folder| folder.join(".gitignore")).filter(|file| file.is_file());
    files.map(|file| Gitignore::new(file).0).collect()
}
