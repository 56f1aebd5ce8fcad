//! Git repositories in and around the work folder, and which parts of them make git run programs.
//!
//! A changed configuration or hook decides what the user's next `git status` or `git commit` runs, outside of any
//! sandbox. So these parts are read-only for commands (`guards`), while the rest of `.git` can be written. File tools
//! write nothing in a `.git` at all. A repository that a command creates stays writable, and is reported to the user
//! (`repositories`).
//!
//! | module | what it holds |
//! | --- | --- |
//! | `checkout` | the branch and the commit that are checked out |
//! | `config` | git's configuration files |
//! | `guards` | the parts of a repository that commands may not write |
//! | `enclosing_repository` | the repository whose work tree the work folder is a part of |
//! | `repository_scan` | finding the repositories below a folder |
//! | `status` | whether a work tree is clean |
//! | `repositories` | which of them a session began with, and which are new |

mod checkout;
mod config;
mod enclosing_repository;
mod guards;
mod repositories;
mod repository_scan;
mod status;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub use checkout::{GitCheckout, git_checkout, git_root};
pub(crate) use enclosing_repository::{EnclosingRepository, enclosing_repository};
pub(crate) use guards::{HookLink, RepositoryGuards, USER_CONFIG, guard_repositories};
pub use repositories::{RepositoryTracker, RepositoryWarning};
pub use status::is_work_tree_clean;

use crate::{Permission, Scope};

/// The name of a repository's folder, or of the file that points to it.
pub(crate) const DOT_GIT: &str = ".git";

/// Whether a path is called `.git`, in any case: on some file systems all of them are one name.
pub(crate) fn is_dot_git(path: &Path) -> bool {
    let name = path.file_name().map(std::ffi::OsStr::as_encoded_bytes);
    name.is_some_and(|name| name.eq_ignore_ascii_case(DOT_GIT.as_bytes()))
}

/// Whether git would take a folder for a repository. For git, `objects` and `refs` need not be folders.
pub(crate) fn is_git_dir(folder: &Path) -> bool {
    let has_objects = || folder.join("objects").exists() && folder.join("refs").exists();
    folder.join("HEAD").symlink_metadata().is_ok() && (has_objects() || folder.join("commondir").is_file())
}

/// Whether the entries of a folder can be looked up by name.
fn can_be_searched(folder: &Path) -> io::Result<()> {
    folder.join(".").symlink_metadata().map(drop)
}

/// Whether a folder's entries can't be listed or looked up.
fn is_unreadable(folder: &Path) -> bool {
    let read = can_be_searched(folder).and_then(|()| fs::read_dir(folder)).map(drop);
    read.is_err_and(|error| !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Whether the user allows writing a repository by naming it, or something in it.
pub(crate) fn is_guard_lifted(scope: &Scope, repository: &Path) -> bool {
    let mut named = scope.named().filter(|(_, permission)| *permission == Permission::Write);
    named.any(|(path, _)| path.starts_with(repository))
}

/// Whether file tools must not write a path because of git: it is a `.git` or lies in one, or in a bare repository, or
/// it is a hook or a configuration file that git takes from the work tree.
///
/// Commands may write most of a repository, through git. File tools have no reason to.
pub(crate) fn is_controlled_by_git(scope: &Scope, path: &Path) -> bool {
    if let Some(repository) = repository_around(path) {
        return !is_guard_lifted(scope, &repository);
    }
    let dot_gits = path.ancestors().skip(1).map(|folder| folder.join(DOT_GIT));
    let Some(dot_git) = dot_gits.into_iter().find(|dot_git| dot_git.symlink_metadata().is_ok()) else {
        return false;
    };
    let writable: Vec<PathBuf> = scope.allowed().map(|(path, _)| path.to_owned()).collect();
    let guards =
        guard_repositories(std::slice::from_ref(&dot_git), &writable, std::env::home_dir().as_deref());
    guards.read_only.iter().any(|guarded| path.starts_with(guarded)) && !is_guard_lifted(scope, &dot_git)
}

/// The repository that a path is, or lies in: a `.git`, or a bare one.
fn repository_around(path: &Path) -> Option<PathBuf> {
    let named = path.ancestors().find(|folder| is_dot_git(folder));
    let bare = || path.ancestors().skip(1).find(|folder| is_git_dir(folder));
    named.or_else(bare).map(Path::to_owned)
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
