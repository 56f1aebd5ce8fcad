//! What is checked out in a repository, read from its files. No git runs, so a stranger's repository can't make it run
//! anything.

use std::path::{Path, PathBuf};

use super::DOT_GIT;
use super::enclosing_repository::{common_dir, named_git_dir};
use crate::small_file::{LastLink, read_whole};

/// `HEAD` and the file of a branch have one line.
const MAX_HEAD_BYTES: u64 = 4 << 10;
/// A larger list of packed references is not searched: that would delay the first request.
const MAX_PACKED_REFS_BYTES: u64 = 256 << 10;
/// Digits of a commit that are enough for people.
const SHORT_COMMIT: usize = 10;
const BRANCHES: &str = "refs/heads/";

/// What is checked out in a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitCheckout {
    /// The branch. `None` if a commit is checked out, or if `HEAD` can't be read.
    pub branch: Option<String>,
    /// The first digits of the commit. `None` before the first commit, or if it is not found quickly.
    pub commit: Option<String>,
}

/// The top of the work tree that a folder belongs to: the nearest folder at or above it with a `.git`.
pub fn git_root(folder: &Path) -> Option<&Path> {
    let has_dot_git = |above: &&Path| {
        above.join(DOT_GIT).symlink_metadata().is_ok_and(|metadata| metadata.is_dir() || metadata.is_file())
    };
    folder.ancestors().find(has_dot_git)
}

/// What is checked out around a folder. `None` if there is no repository. What can't be read is left out.
pub fn git_checkout(folder: &Path) -> Option<GitCheckout> {
    let work_tree = git_root(folder)?;
    let head = git_dir(work_tree).and_then(|git_dir| read_head(&git_dir)).unwrap_or_default();
    let commit = head.commit.map(|commit| commit[..SHORT_COMMIT].to_owned());
    Some(GitCheckout { branch: head.branch, commit })
}

/// The folder with the `HEAD` of a work tree.
pub(super) fn git_dir(work_tree: &Path) -> Option<PathBuf> {
    let dot_git = work_tree.join(DOT_GIT);
    match dot_git.symlink_metadata().ok()?.is_dir() {
        true => Some(dot_git),
        false => named_git_dir(&dot_git, work_tree),
    }
}

/// Like [`GitCheckout`], with the whole hash of the commit.
pub(super) fn read_head(git_dir: &Path) -> Option<GitCheckout> {
    let head = read_whole(&git_dir.join("HEAD"), LastLink::Refuse, MAX_HEAD_BYTES).ok()??;
    let Some(reference) = head.trim_end().strip_prefix("ref: ") else {
        return Some(GitCheckout { branch: None, commit: commit_hash(&head) });
    };
    let branch = reference.strip_prefix(BRANCHES).filter(|name| is_branch_name(name))?;
    let common_dir = common_dir(git_dir).unwrap_or_else(|| git_dir.to_owned());
    let commit = branch_commit(&common_dir, branch);
    Some(GitCheckout { branch: Some(branch.to_owned()), commit })
}

/// Whether git would allow this name, as far as it matters here. A repository without files for its references has
/// `.invalid` there.
fn is_branch_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    name.len() <= 255
        && !name.contains(|letter: char| letter.is_control() || letter == ' ')
        && name.split('/').all(is_part)
}

fn branch_commit(common_dir: &Path, branch: &str) -> Option<String> {
    let reference = format!("{BRANCHES}{branch}");
    let loose = read_whole(&common_dir.join(&reference), LastLink::Refuse, MAX_HEAD_BYTES);
    if let Ok(Some(commit)) = loose {
        return commit_hash(&commit);
    }
    let packed =
        read_whole(&common_dir.join("packed-refs"), LastLink::Refuse, MAX_PACKED_REFS_BYTES).ok()??;
    let of_branch = |line: &str| {
        let (commit, name) = line.split_once(' ')?;
        (name == reference).then(|| commit_hash(commit))?
    };
    packed.lines().find_map(of_branch)
}

fn commit_hash(text: &str) -> Option<String> {
    let commit = text.trim_end();
    let is_hash = matches!(commit.len(), 40 | 64) && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hash.then(|| commit.to_owned())
}

#[cfg(test)]
#[path = "repository_tests.rs"]
pub(super) mod test_repository;
#[cfg(test)]
#[path = "checkout_tests.rs"]
mod tests;
