//! Where skills are: in which folders they are looked for, and what is found there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;

use crate::folder::DOCUMENT;
use crate::{SkillDocument, SkillError, read_document};

/// Folders between a folder of skills and a skill, at most.
const MAX_NESTING: usize = 3;
/// Folders that are looked at below one folder of skills.
const MAX_FOLDERS: usize = 4_000;
const SKIPPED: &str = "node_modules";

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillSource {
    /// From the project. It is used only if the user trusts it.
    Project,
    /// In the user's home folder.
    User,
    /// In Longhaul's home.
    Home,
    /// In a folder that the config names.
    Config,
}

impl SkillSource {
    /// The word for it, for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Home => "home",
            Self::Config => "config",
        }
    }
}

/// A folder with skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRoot {
    pub path: PathBuf,
    pub source: SkillSource,
    /// No link of a skill may lead out of this folder.
    pub base: PathBuf,
}

/// A folder that has a SKILL.md, or that should be a skill and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPlace {
    /// The folder's name, which must be the skill's.
    pub name: String,
    /// Its canonical path.
    pub folder: PathBuf,
    pub source: SkillSource,
    /// Why it can't be used, if that is known before it is read.
    pub problem: Option<SkillError>,
}

impl SkillPlace {
    /// Reads its SKILL.md.
    pub fn document(&self) -> Result<SkillDocument, SkillError> {
        match &self.problem {
            Some(problem) => Err(problem.clone()),
            None => read_document(&self.folder),
        }
    }
}

/// What was found in folders of skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// In the order of the folders, then by name. Each folder once.
    pub places: Vec<SkillPlace>,
    /// Folders that could not be searched, and why.
    pub notes: Vec<String>,
}

/// Finds the skills in these folders. Reads no SKILL.md.
pub fn find_skill_folders(roots: &[SkillRoot]) -> Discovery {
    let mut search = Search::default();
    for root in roots {
        search.search_root(root);
    }
    Discovery { places: search.places, notes: search.notes }
}

#[derive(Default)]
struct Search {
    places: Vec<SkillPlace>,
    notes: Vec<String>,
    /// Canonical paths.
    seen: HashSet<PathBuf>,
    folders_left: usize,
}

impl Search {
    fn search_root(&mut self, root: &SkillRoot) {
        let Ok(canonical) = root.path.canonicalize() else { return };
        if !canonical.is_dir() {
            return;
        }
        let base = root.base.canonicalize().unwrap_or_else(|_| root.base.clone());
        if !canonical.starts_with(&base) {
            let (path, base) = (root.path.printable(), base.printable());
            self.notes.push(format!("ignoring {path}: it is a link that leads out of {base}"));
            return;
        }
        self.folders_left = MAX_FOLDERS;
        let is_skill =
            root.source == SkillSource::Config && canonical.join(DOCUMENT).symlink_metadata().is_ok();
        if is_skill {
            self.add(canonical, root.source, None);
            return;
        }
        self.search_folder(&canonical, root.source, &base, 1);
        if self.folders_left == 0 {
            let path = root.path.printable();
            self.notes.push(format!("{path} has more than {MAX_FOLDERS} folders; ignoring the rest"));
        }
    }

    fn search_folder(&mut self, folder: &Path, source: SkillSource, base: &Path, nesting: usize) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.notes.push(format!("can't read {}: {error}", folder.printable())),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let is_skipped =
                |name: &std::ffi::OsStr| name == SKIPPED || name.as_encoded_bytes().starts_with(b".");
            let Ok(status) = path.symlink_metadata() else { continue };
            if path.file_name().is_none_or(is_skipped) || status.is_file() {
                continue;
            }
            let Some(left) = self.folders_left.checked_sub(1) else { return };
            self.folders_left = left;
            let Ok(canonical) = path.canonicalize() else { continue };
            if !canonical.is_dir() {
                continue;
            }
            let has_document = canonical.join(DOCUMENT).symlink_metadata().is_ok();
            if has_document && !canonical.starts_with(base) {
                let problem = SkillError::Elsewhere { base: base.printable().to_string() };
                self.add(path, source, Some(problem));
            } else if has_document {
                self.add(canonical, source, None);
            // A link could lead in a circle.
            } else if status.is_dir() && nesting < MAX_NESTING {
                self.search_folder(&path, source, base, nesting + 1);
            }
        }
    }

    fn add(&mut self, folder: PathBuf, source: SkillSource, problem: Option<SkillError>) {
        if !self.seen.insert(folder.clone()) {
            return;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.places.push(SkillPlace { name, folder, source, problem });
    }
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
