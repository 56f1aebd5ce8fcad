//! The repository around the work folder, where it lies outside of what commands may write.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::guards::{module_work_tree, modules};
use super::{DOT_GIT, is_git_dir};
use crate::small_file::{LastLink, read_whole};

/// Files of a work tree that git reads wherever it is called.
const READ_BY_GIT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// The `.git` file of a submodule or linked work tree has one line.
const MAX_LINK_BYTES: u64 = 8 << 10;

/// A repository outside of the work folder that git needs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnclosingRepository {
    /// The folder that all work trees of the repository share.
    pub(crate) common_dir: PathBuf,
    /// The top of the work tree.
    pub(crate) work_tree: PathBuf,
    /// Files above the work folder that git reads.
    pub(crate) read: Vec<PathBuf>,
}

/// Finds the repository around a folder as git does, by going up.
///
/// It counts only if it belongs to the user and isn't that of their whole home folder. A command could have written a
/// `.git` file, so the repository that it names must name it in turn.
pub(crate) fn enclosing_repository(folder: &Path, home: Option<&Path>) -> Option<EnclosingRepository> {
    let has_dot_git = |above: &&Path| above.join(DOT_GIT).symlink_metadata().is_ok();
    let work_tree = folder.ancestors().find(has_dot_git)?;
    if work_tree.parent().is_none() || home.is_some_and(|home| home.starts_with(work_tree)) {
        return None;
    }
    let dot_git = work_tree.join(DOT_GIT);
    let kind = dot_git.symlink_metadata().ok()?.file_type();
    let common_dir = match kind {
        kind if kind.is_dir() => Some(dot_git.clone()),
        kind if kind.is_file() => named_by(&dot_git, work_tree),
        _ => None,
    }?;
    let is_own = |path: &Path| {
        path.symlink_metadata().is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
    };
    if !is_own(&dot_git) || !is_own(&common_dir) || !is_git_dir(&common_dir) {
        return None;
    }
    let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(work_tree));
    let files = above.flat_map(|above| READ_BY_GIT.map(|name| above.join(name)));
    // Git looks into the submodules of the whole work tree, and fails if it can't open one.
    let modules = modules(&common_dir).into_iter().filter_map(|module| module_work_tree(&module));
    let modules = modules.filter(|module| module.starts_with(work_tree)).map(|module| module.join(DOT_GIT));
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let read = files.chain(modules).filter(is_file).collect();
    Some(EnclosingRepository { common_dir, work_tree: work_tree.to_owned(), read })
}

/// The repository that a `.git` file points to, if that repository points back.
fn named_by(dot_git: &Path, work_tree: &Path) -> Option<PathBuf> {
    let git_dir = named_git_dir(dot_git, work_tree)?;
    if git_dir.join("commondir").symlink_metadata().is_err() {
        // A submodule. Its configuration says where it is checked out.
        return (module_work_tree(&git_dir)?.as_path() == work_tree).then_some(git_dir);
    }
    let common_dir = common_dir(&git_dir)?;
    let back = git_dir.join(read_line(&git_dir.join("gitdir"))?).canonicalize().ok()?;
    (git_dir.parent() == Some(common_dir.join("worktrees").as_path()) && back == dot_git)
        .then_some(common_dir)
}

/// The canonical folder that a `.git` file names.
pub(super) fn named_git_dir(dot_git: &Path, work_tree: &Path) -> Option<PathBuf> {
    work_tree.join(read_line(dot_git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// The canonical folder with the objects, references and configuration, if a repository has them elsewhere.
pub(super) fn common_dir(git_dir: &Path) -> Option<PathBuf> {
    git_dir.join(read_line(&git_dir.join("commondir"))?).canonicalize().ok()
}

fn read_line(file: &Path) -> Option<String> {
    let text = read_whole(file, LastLink::Refuse, MAX_LINK_BYTES).ok()??;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
#[path = "enclosing_repository_tests.rs"]
mod tests;
