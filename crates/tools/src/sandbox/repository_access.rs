//! What a command may do with the repositories in and around its work folder.

use std::path::{Path, PathBuf};

use super::reachable_paths::Places;
use crate::Scope;
use crate::git::{Guards, Holding, USER_CONFIG, guards, holding, is_lifted};
use crate::scope::is_in;

/// The repository around the work folder, where the scope doesn't have it already. Nothing that the scope denies is opened, nor a
/// repository of Longhaul's own folder.
pub(super) fn opened(scope: &Scope, places: &Places<'_>, user_home: Option<&Path>) -> Option<Holding> {
    let holding = holding(scope.work_dir(), user_home)?;
    let denied: Vec<PathBuf> = scope.denied().map(|(path, _)| path).collect();
    let is_needed = !is_in(&holding.common_dir, &places.write) && !is_in(&holding.common_dir, &denied);
    is_needed.then_some(holding)
}

/// The guards of those repositories that commands could change. The scope lifts them by naming the repository, or something in it.
pub(super) fn guarded(
    scope: &Scope,
    writable: &[PathBuf],
    repositories: &[PathBuf],
    user_home: Option<&Path>,
) -> Guards {
    let is_fixed = |path: &Path| scope.denied().any(|(denied, _)| path.starts_with(denied));
    let wanted = repositories.iter().filter(|repository| {
        is_in(repository, writable) && !is_lifted(scope, repository) && !is_fixed(repository)
    });
    let wanted: Vec<PathBuf> = wanted.cloned().collect();
    let mut guards = guards(&wanted, writable, user_home);
    guards.placeholders.retain(|placeholder| !is_fixed(&placeholder.at));
    guards
}

/// The user's own configuration, at which git fails if it is there and can't be read.
pub(super) fn user_config(user_home: Option<&Path>) -> Vec<PathBuf> {
    let files = user_home.into_iter().flat_map(|home| USER_CONFIG.map(|file| home.join(file)));
    files.filter(|file| file.symlink_metadata().is_ok_and(|metadata| metadata.is_file())).collect()
}
