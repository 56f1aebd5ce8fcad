//! The parts of a repository that commands may not write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use longhaul_keeper::Placeholder;
use longhaul_protocol::json_path;
use serde::{Deserialize, Serialize};

use super::config::{GitConfig, expand};
use super::enclosing_repository::{common_dir, named_git_dir};
use super::{is_dot_git, is_git_dir, is_unreadable};
use crate::scope::{PathTrace, is_within_any};
use crate::small_file::LastLink;

/// Git takes this for the same folder, and only the keeper writes it so: by this text the keeper recognises its own
/// file.
const COMMON_DIR_PLACEHOLDER: &str = "././.\n";
/// Levels of nested submodules.
const MAX_DEPTH: usize = 6;
/// Included configuration files of one repository. A repository with more counts as one that can't be read.
const MAX_INCLUDES: usize = 256;
/// Repositories, submodules and linked work trees, all together, that are guarded in parts. Further ones are read-only
/// as a whole.
const MAX_PARTS: usize = 64;
/// Paths that are guarded one by one, those nearest to the top of the scope first. Each of them costs mounts at every
/// command.
const MAX_GUARDS: usize = 700;
/// Further paths. If there are more, the folders that hold them are read-only as a whole.
const MAX_CLOSED_FOLDERS: usize = 50;
/// The user's own configuration files, relative to their home folder.
pub(crate) const USER_CONFIG: [&str; 2] = [".gitconfig", ".config/git/config"];
const SYSTEM_CONFIG: &str = "/etc/gitconfig";

/// Paths that commands may not write, although they lie in writable paths.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RepositoryGuards {
    pub(crate) read_only: BTreeSet<PathBuf>,
    pub(crate) placeholders: Vec<Placeholder>,
    /// Links on the way to hooks or configuration that commands could replace: a link can't be covered by a mount.
    pub(crate) links: BTreeMap<PathBuf, HookLink>,
    /// Folders that are read-only as a whole because they hold too much to guard. They are in `read_only`, too.
    pub(crate) crowded: BTreeSet<PathBuf>,
    parts: usize,
}

/// Where a link to hooks or configuration leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookLink {
    #[serde(with = "json_path::path")]
    pub(super) place: PathBuf,
    /// Whether the target or a placeholder for it exists.
    pub(super) exists: bool,
}

impl HookLink {
    /// `None` if the link leads in a circle.
    pub(super) fn of(link: &Path) -> Option<Self> {
        let PathTrace { target: place, exists, .. } = PathTrace::follow(link, &[])?;
        Some(Self { place, exists })
    }
}

/// The guards of these repositories. Each is a `.git`, or the folder of a bare repository.
pub(crate) fn guard_repositories(
    repositories: &[PathBuf],
    writable: &[PathBuf],
    home: Option<&Path>,
) -> RepositoryGuards {
    let mut guards = RepositoryGuards::default();
    let mut named = GuardContext { writable, home, hooks: Some(Vec::new()) };
    let of_user = home.into_iter().flat_map(|home| USER_CONFIG.map(|file| home.join(file)));
    named.hooks = guards.add_included(of_user.chain([PathBuf::from(SYSTEM_CONFIG)]), &named);
    // The nearest to the top are guarded in most detail.
    let mut repositories: Vec<&PathBuf> = repositories.iter().collect();
    repositories.sort_by_key(|repository| depth(repository));
    for repository in repositories {
        let work_tree = repository.parent().filter(|_| is_dot_git(repository));
        match (kind(repository), work_tree) {
            (Some(kind), _) if kind.is_dir() => guards.add_git_dir(repository, work_tree, &named, 0),
            // The file of a submodule or a linked work tree. A link can't be guarded.
            (Some(kind), Some(work_tree)) if kind.is_file() => {
                guards.read_only.insert(repository.clone());
                guards.add_hooks_of_linked(repository, work_tree, &named);
            }
            _ => {}
        }
    }
    guards.placeholders.sort_by(|a, b| a.at.cmp(&b.at));
    guards.placeholders.dedup_by(|a, b| a.at == b.at);
    guards.close_crowded_folders(writable);
    let read_only = &guards.read_only;
    for target in guards.links.values_mut() {
        target.exists |= target.place.ancestors().any(|above| read_only.contains(above));
    }
    guards
}

/// These paths; or if they are too many, a few folders that hold all of them, as deep as possible.
fn closed_folders(paths: &BTreeSet<PathBuf>, writable: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut folders = paths.clone();
    while folders.len() > MAX_CLOSED_FOLDERS {
        let is_below_top = |path: &PathBuf| !writable.contains(path);
        let Some(deepest) = folders.iter().filter(|path| is_below_top(path)).map(|path| depth(path)).max()
        else {
            break;
        };
        let (deep, others): (BTreeSet<_>, BTreeSet<_>) =
            folders.into_iter().partition(|path| depth(path) == deepest && is_below_top(path));
        let above = deep.iter().filter_map(|path| path.parent()).map(Path::to_owned);
        folders = others.into_iter().chain(above).collect();
    }
    folders
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

/// What applies to the paths that a configuration names.
struct GuardContext<'a> {
    writable: &'a [PathBuf],
    home: Option<&'a Path>,
    /// The hook folders that the user's own configuration names. `None` if it can't be read.
    hooks: Option<Vec<String>>,
}

impl RepositoryGuards {
    /// Guards what makes git run programs in the folder of a repository. If the folder isn't as git makes it, it is
    /// read-only as a whole.
    fn add_git_dir(
        &mut self,
        folder: &Path,
        work_tree: Option<&Path>,
        named: &GuardContext<'_>,
        depth: usize,
    ) {
        self.parts += 1;
        // A repository has guards of its own.
        if let Some(common) = common_dir(folder).filter(|common| common != folder && !is_git_dir(common)) {
            self.add_named(&common, None, named);
        }
        let config = GitConfig::read(&folder.join("config"), LastLink::Refuse);
        let has_worktree_config =
            config.as_ref().is_some_and(|config| config.is_true("extensions.worktreeconfig"));
        let files = ["config", "config.worktree"].into_iter().take(1 + usize::from(has_worktree_config));
        let files = files.filter(|_| config.is_some()).map(|name| folder.join(name));
        let hooks = self.add_included(files, named);
        self.add_hooks(hooks.iter().chain(&named.hooks).flatten(), work_tree.unwrap_or(folder), named);
        let is_in_limits = self.parts <= MAX_PARTS && depth <= MAX_DEPTH && !is_unreadable(folder);
        let is_known = is_in_limits && hooks.is_some() && named.hooks.is_some();
        if !is_known || !config.is_some_and(|config| is_ordinary(folder, &config)) {
            self.read_only.insert(folder.to_owned());
            return;
        }
        self.read_only.insert(folder.join("config"));
        self.add(folder.join("hooks"), None);
        self.add(folder.join("commondir"), Some(COMMON_DIR_PLACEHOLDER));
        if has_worktree_config {
            self.add(folder.join("config.worktree"), Some(""));
        }
        self.add_links_in(&folder.join("hooks"), named);
        let worktrees = folder.join("worktrees");
        if is_unreadable(&worktrees) {
            self.read_only.insert(worktrees.clone());
        }
        for linked in folders_in(&worktrees) {
            self.add_linked_work_tree(&linked, has_worktree_config);
        }
        for module in modules(folder) {
            self.add_git_dir(&module, module_work_tree(&module).as_deref(), named, depth + 1);
        }
    }

    fn add_linked_work_tree(&mut self, folder: &Path, has_worktree_config: bool) {
        self.parts += 1;
        let files = [folder.join("commondir"), folder.join("gitdir")];
        if self.parts > MAX_PARTS || !files.iter().all(|file| kind(file).is_some_and(|kind| kind.is_file())) {
            self.read_only.insert(folder.to_owned());
            return;
        }
        self.read_only.extend(files);
        if has_worktree_config {
            self.add(folder.join("config.worktree"), Some(""));
        }
    }

    /// Guards included configuration files that commands could write, and returns the hook folders that all of them
    /// name. `None` if there are too many.
    fn add_included(
        &mut self,
        files: impl IntoIterator<Item = PathBuf>,
        named: &GuardContext<'_>,
    ) -> Option<Vec<String>> {
        let mut queue: VecDeque<PathBuf> = files.into_iter().collect();
        let mut known: BTreeSet<PathBuf> = queue.iter().cloned().collect();
        let mut includes = BTreeSet::new();
        let mut hooks = Vec::new();
        while let Some(file) = queue.pop_front() {
            let config = GitConfig::read(&file, LastLink::Follow).unwrap_or_default();
            hooks.extend(config.last("core.hookspath").map(str::to_owned));
            // Git resolves includes from where a file is named, even if that is a link.
            let folder = file.parent().unwrap_or(&file);
            for include in config.includes().filter_map(|path| expand(path, folder, named.home)) {
                if !includes.insert(include.clone()) {
                    continue;
                }
                if includes.len() > MAX_INCLUDES {
                    return None;
                }
                self.add_named(&include, Some(""), named);
                queue.extend(in_real_folder(&include).filter(|file| known.insert(file.clone())));
            }
        }
        Some(hooks)
    }

    /// Guards hook folders as a configuration names them, for a repository whose hooks run in `folder`.
    fn add_hooks<'a>(
        &mut self,
        hooks: impl IntoIterator<Item = &'a String>,
        folder: &Path,
        named: &GuardContext<'_>,
    ) {
        for hooks in hooks.into_iter().filter_map(|path| expand(path, folder, named.home)) {
            // Husky keeps the scripts that its hooks run beside them.
            let hooks = if hooks.ends_with(".husky/_") { hooks.parent().unwrap_or(&hooks) } else { &hooks };
            if let Some(hooks) = self.add_named(hooks, None, named) {
                self.add_links_in(&hooks, named);
            }
        }
    }

    /// Guards the hook folders of a submodule or a linked work tree. In each of them the same configuration may name
    /// another folder.
    fn add_hooks_of_linked(&mut self, dot_git: &Path, work_tree: &Path, named: &GuardContext<'_>) {
        let git_dir = named_git_dir(dot_git, work_tree);
        let common = git_dir.as_deref().and_then(common_dir).or_else(|| git_dir.clone());
        let files = common.map(|common| common.join("config")).into_iter();
        let files = files.chain(git_dir.map(|git_dir| git_dir.join("config.worktree")));
        // If it includes too many files, its repository is read-only.
        let hooks = self.add_included(files, named).unwrap_or_default();
        self.add_hooks(hooks.iter().chain(named.hooks.iter().flatten()), work_tree, named);
    }

    /// Guards the targets of hooks that are links.
    fn add_links_in(&mut self, hooks: &Path, named: &GuardContext<'_>) {
        let entries = fs::read_dir(hooks).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links.map(|link| link.path()) {
            match link.canonicalize() {
                Ok(_) => drop(self.add_named(&link, None, named)),
                // The target may be part of a folder that commands have to create, such as `node_modules`.
                Err(_) => self.add_link(link, named),
            }
        }
    }

    fn add_link(&mut self, link: PathBuf, named: &GuardContext<'_>) {
        let is_in_reach = link.parent().is_some_and(|folder| is_within_any(folder, named.writable));
        if let Some(target) = HookLink::of(&link).filter(|_| is_in_reach) {
            self.links.insert(link, target);
        }
    }

    /// Guards a path that a configuration names, and returns it if it exists and commands could write it.
    fn add_named(&mut self, path: &Path, text: Option<&str>, named: &GuardContext<'_>) -> Option<PathBuf> {
        let trace = PathTrace::follow(path, &[])?;
        trace.links.into_iter().for_each(|link| self.add_link(link, named));
        // Of several missing names only the first is guarded, as a folder.
        let found = trace.target.ancestors().find_map(|above| Some((above, kind(above)?)));
        let (found, kind) = found?;
        let place = match trace.target.strip_prefix(found).ok()?.iter().next() {
            Some(missing) if kind.is_dir() => found.join(missing),
            // Nothing can be created in a file before it is replaced.
            _ => found.to_owned(),
        };
        if named.writable.iter().any(|writable| writable.starts_with(&place)) {
            return None;
        }
        if is_within_any(&place, named.writable) {
            self.add(place.clone(), text.filter(|_| place == trace.target));
        }
        Some(place)
    }

    /// Makes whole folders read-only where there is more to guard than can be mounted at every command.
    fn close_crowded_folders(&mut self, writable: &[PathBuf]) {
        let mut near: Vec<PathBuf> = self.read_only.iter().cloned().collect();
        near.sort_by_key(|path| depth(path));
        let beyond: BTreeSet<PathBuf> = near.split_off(near.len().min(MAX_GUARDS)).into_iter().collect();
        let closed = closed_folders(&beyond, writable);
        self.crowded = closed.difference(&beyond).cloned().collect();
        let is_closed = |path: &Path| path.ancestors().any(|above| self.crowded.contains(above));
        self.placeholders.retain(|placeholder| !is_closed(&placeholder.at));
        self.read_only = near.into_iter().filter(|path| !is_closed(path)).chain(closed).collect();
    }

    /// Guards a path; a placeholder stands in for a missing one.
    fn add(&mut self, at: PathBuf, text: Option<&str>) {
        if kind(&at).is_none() {
            self.placeholders.push(Placeholder { at: at.clone(), text: text.map(str::to_owned) });
        }
        self.read_only.insert(at);
    }
}

/// Whether the guarded parts are as git makes them. A link can't be covered by a mount; and with another store for
/// references, git takes a repository with a `commondir` file for two that lock each other out.
fn is_ordinary(folder: &Path, config: &GitConfig) -> bool {
    let is =
        |name: &str, right: fn(&FileType) -> bool| kind(&folder.join(name)).is_none_or(|kind| right(&kind));
    kind(&folder.join("config")).is_some_and(|kind| kind.is_file())
        && ["hooks", "worktrees", "modules"].into_iter().all(|name| is(name, FileType::is_dir))
        && ["commondir", "config.worktree"].into_iter().all(|name| is(name, FileType::is_file))
        && config.last("extensions.refstorage").is_none_or(|store| store == "files")
}

/// The path with its folder resolved, so that it is the same however it was written.
fn in_real_folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    Some(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(path.file_name()?))
}

/// The type of a file. A link is not followed.
fn kind(path: &Path) -> Option<FileType> {
    path.symlink_metadata().ok().map(|metadata| metadata.file_type())
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The repositories of a repository's submodules, and folders among them that can't be read. Their names may contain
/// slashes.
pub(super) fn modules(git_dir: &Path) -> Vec<PathBuf> {
    let (mut modules, mut folders) = (Vec::new(), vec![(git_dir.join("modules"), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        if is_unreadable(&folder) {
            modules.push(folder);
            continue;
        }
        for inside in folders_in(&folder) {
            // A folder that is too deep for any submodule is guarded as a repository.
            match is_git_dir(&inside) || depth == MAX_DEPTH {
                true => modules.push(inside),
                false => folders.push((inside, depth + 1)),
            }
        }
    }
    modules
}

/// The folder into which a submodule is checked out.
pub(super) fn module_work_tree(module: &Path) -> Option<PathBuf> {
    let config = GitConfig::read(&module.join("config"), LastLink::Refuse)?;
    module.join(config.last("core.worktree")?).canonicalize().ok()
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;
