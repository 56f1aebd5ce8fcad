//! What a command may do with the repositories in and around its work folder.

use std::path::{Path, PathBuf};

use super::reachable_paths::ReachablePaths;
use crate::Scope;
use crate::git::{
    EnclosingRepository, RepositoryGuards, USER_CONFIG, enclosing_repository, guard_repositories,
    is_guard_lifted,
};
use crate::scope::is_within_any;

/// The repository around the work folder, if the scope doesn't include it already. `None` if the scope or Longhaul's
/// own folder denies it.
pub(super) fn enclosing_repository_outside(
    scope: &Scope,
    places: &ReachablePaths<'_>,
    user_home: Option<&Path>,
) -> Option<EnclosingRepository> {
    let repository = enclosing_repository(scope.work_dir(), user_home)?;
    let denied: Vec<PathBuf> = scope.denied().map(|(path, _)| path).collect();
    let is_needed = !is_within_any(&repository.common_dir, &places.write)
        && !is_within_any(&repository.common_dir, &denied);
    is_needed.then_some(repository)
}

/// The guards of those repositories that commands could change. The scope lifts them by naming the repository, or
/// something in it.
pub(super) fn guards_of(
    scope: &Scope,
    writable: &[PathBuf],
    repositories: &[PathBuf],
    user_home: Option<&Path>,
) -> RepositoryGuards {
    let is_fixed = |path: &Path| scope.denied().any(|(denied, _)| path.starts_with(denied));
    let wanted = repositories.iter().filter(|repository| {
        is_within_any(repository, writable) && !is_guard_lifted(scope, repository) && !is_fixed(repository)
    });
    let wanted: Vec<PathBuf> = wanted.cloned().collect();
    let mut guards = guard_repositories(&wanted, writable, user_home);
    guards.placeholders.retain(|placeholder| !is_fixed(&placeholder.at));
    guards
}

/// The user's own git configuration. Git fails if the file exists and can't be read.
pub(super) fn user_config(user_home: Option<&Path>) -> Vec<PathBuf> {
    let files = user_home.into_iter().flat_map(|home| USER_CONFIG.map(|file| home.join(file)));
    files.filter(|file| file.symlink_metadata().is_ok_and(|metadata| metadata.is_file())).collect()
}
