//! Files with instructions: AGENTS.md, or CLAUDE.md in a folder without one.
//!
//! They are read in this order, and the model reads them in it:
//!
//! 1. the AGENTS.md of the home, which are the user's own words;
//! 2. those of the project: from the top of the git repository down to the work folder. Without a repository only the
//!    work folder's own.
//!
//! The agent can write in the work folder, so the file there is read in the way that tools read files: a link may lead
//! to another file in the folder, but nowhere else. Above the work folder, the file must be no link, must belong to the
//! user or root, and must lie in a folder that no other user can write. Each file is opened once, and checked on the
//! open descriptor.

use std::path::{Path, PathBuf};

use longhaul_context::{InstructionAuthor, InstructionText};
use longhaul_protocol::PrintablePath;
use longhaul_tools::{
    FileError, LastLink, Permission, Scope, SmallFile, git_root, read_file_above, read_small_file,
};

use super::PROMPT_FILE;
use crate::Config;
use crate::worker::toolset::tool_scope;

/// The names, the preferred one first. Above the work folder nothing else is opened for instructions.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The most bytes of one file to use. The text is part of every request.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The most bytes of all files together. The nearest ones of the project go first.
const MAX_TOTAL_BYTES: usize = 128 << 10;

/// The instructions of the user and the project in files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) files: Vec<InstructionFile>,
    /// Why files are not used, or only in part, for the user.
    pub(crate) skipped: Vec<String>,
}

/// A file with instructions that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionFile {
    pub(crate) path: PathBuf,
    pub(crate) author: InstructionAuthor,
    pub(crate) text: String,
}

impl InstructionFile {
    pub(crate) fn into_text(self) -> InstructionText {
        InstructionText { path: self.path.printable().to_string(), author: self.author, text: self.text }
    }
}

/// Reads the instructions for sessions in the scope's work folder. Without a folder, only the user's count.
pub(crate) fn read_instructions(home: &Path, scope: Option<&Scope>) -> Instructions {
    let mut found = Instructions::default();
    let path = home.join(NAMES[0]);
    let read = read_small_file(&path, LastLink::Follow, MAX_FILE_BYTES);
    found.add(path.clone(), InstructionAuthor::User, &path.printable().to_string(), read);
    if let Some(scope) = scope {
        let work_dir = scope.work_dir();
        for folder in folders_above(work_dir).filter(|folder| *folder != home) {
            found.add_above(folder, scope);
        }
        found.add_of_work_dir(work_dir, scope);
    }
    found.limit_total();
    found
}

/// The folders above the work folder whose instructions count, the outermost first: those of its repository.
fn folders_above(work_dir: &Path) -> impl Iterator<Item = &Path> {
    let root = git_root(work_dir);
    let above = work_dir
        .ancestors()
        .skip(1)
        .take_while(move |folder| root.is_some_and(|root| folder.starts_with(root)));
    above.collect::<Vec<_>>().into_iter().rev()
}

impl Instructions {
    fn add_above(&mut self, folder: &Path, scope: &Scope) {
        let there = NAMES.map(|name| folder.join(name));
        let Some(path) = there.into_iter().find(|path| path.symlink_metadata().is_ok()) else { return };
        let shown = path.printable().to_string();
        let is_denied = |(denied, permission): (PathBuf, Permission)| {
            permission == Permission::Read && path.starts_with(denied)
        };
        if scope.denied().any(is_denied) {
            self.skipped.push(format!("ignoring {shown}: your config denies it"));
            return;
        }
        let read = read_file_above(&path, MAX_FILE_BYTES);
        self.add(path, InstructionAuthor::Project, &shown, read);
    }

    fn add_of_work_dir(&mut self, work_dir: &Path, scope: &Scope) {
        let is_there = |name: &&str| work_dir.join(name).symlink_metadata().is_ok();
        let Some(name) = NAMES.into_iter().find(is_there) else { return };
        let read = scope.read_in_work_dir(name, MAX_FILE_BYTES);
        self.add(
            work_dir.join(name),
            InstructionAuthor::Project,
            &format!("{name} of the work folder"),
            read,
        );
    }

    /// Adds a file that was read, or why it is not used. `shown` is what the user reads as its name.
    fn add(
        &mut self,
        path: PathBuf,
        author: InstructionAuthor,
        shown: &str,
        read: Result<Option<SmallFile>, FileError>,
    ) {
        let file = match read {
            Ok(None) => return,
            Err(error) => return self.skipped.push(format!("ignoring {shown}: {error}")),
            Ok(Some(SmallFile { foreign: Some(reason), .. })) => {
                return self.skipped.push(format!("ignoring {shown}: {reason}"));
            }
            Ok(Some(file)) => file,
        };
        if file.is_cut {
            let kib = MAX_FILE_BYTES >> 10;
            self.skipped.push(format!("{shown} is longer than {kib} KiB; ignoring the rest"));
        }
        let text = String::from_utf8_lossy(&file.bytes).trim().to_owned();
        if !text.is_empty() {
            self.files.push(InstructionFile { path, author, text });
        }
    }

    /// Leaves out files if all together are too long: the outermost of the project first.
    fn limit_total(&mut self) {
        let total = |files: &[InstructionFile]| files.iter().map(|file| file.text.len()).sum::<usize>();
        while total(&self.files) > MAX_TOTAL_BYTES {
            let is_project = |file: &InstructionFile| file.author == InstructionAuthor::Project;
            let Some(outermost) = self.files.iter().position(is_project) else { return };
            let left_out = self.files.remove(outermost);
            let (shown, kib) = (left_out.path.printable(), MAX_TOTAL_BYTES >> 10);
            self.skipped
                .push(format!("ignoring {shown}: with it, the instruction files are longer than {kib} KiB"));
        }
    }
}

/// The files whose text a session in this folder is told, as people read them: the home's with their path, those of the
/// project from the top of the repository on.
pub fn instruction_files(config: &Config, work_dir: &Path) -> Vec<String> {
    let scope = tool_scope(config, work_dir);
    let work_dir = scope.work_dir();
    let top = git_root(work_dir).unwrap_or(work_dir);
    let own_prompt = config.home.join(PROMPT_FILE);
    let own_prompt = Some(own_prompt).filter(|path| path.is_file()).map(|path| shorten_home(&path));
    let files =
        read_instructions(&config.home, Some(&scope)).files.into_iter().map(|file| match file.author {
            InstructionAuthor::User => shorten_home(&file.path),
            InstructionAuthor::Project => {
                file.path.strip_prefix(top).unwrap_or(&file.path).printable().to_string()
            }
        });
    own_prompt.into_iter().chain(files).collect()
}

/// A path below the user's home folder as `~/…`.
fn shorten_home(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.printable()),
        None => path.printable().to_string(),
    }
}

#[cfg(test)]
#[path = "instruction_files_tests.rs"]
mod tests;
