//! The rules of `.gitignore`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::scope::{Permission, Scope, ScopedFolder};

/// The rest of a larger `.gitignore` is not read.
const MAX_GITIGNORE_BYTES: u64 = 1 << 20;

/// The rules that apply in a folder, innermost first. They are read through the folder's handle, like any other file.
#[derive(Debug, Clone, Default)]
pub(super) struct GitignoreRules(Option<Arc<GitignoreLevel>>);

#[derive(Debug)]
struct GitignoreLevel {
    rules: Gitignore,
    outer: GitignoreRules,
}

impl GitignoreRules {
    /// The rules of the folders around one, up to the top of its repository or of what may be read.
    pub(super) fn around(scope: &Scope, folder: &ScopedFolder) -> Self {
        let mut around = Vec::new();
        let mut inner_is_top = is_top_of_repository(folder);
        for path in folder.path().ancestors().skip(1) {
            if inner_is_top {
                break;
            }
            let Some(outer) = scope.at(path, Permission::Read).ok().and_then(|place| place.folder().ok())
            else {
                break;
            };
            inner_is_top = is_top_of_repository(&outer);
            around.push(outer);
        }
        around.iter().rev().fold(Self::default(), |ignored, folder| ignored.inside(folder))
    }

    /// The rules inside a folder: its own come before those of the folders around it.
    pub(super) fn inside(&self, folder: &ScopedFolder) -> Self {
        match rules_of(folder) {
            Some(rules) => Self(Some(Arc::new(GitignoreLevel { rules, outer: self.clone() }))),
            None => self.clone(),
        }
    }

    pub(super) fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let Some(level) = &self.0 else { return false };
        match level.rules.matched(path, is_folder) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => level.outer.is_ignored(path, is_folder),
        }
    }
}

fn is_top_of_repository(folder: &ScopedFolder) -> bool {
    folder.status(OsStr::new(".git")).is_ok()
}

/// A rule that can't be parsed is skipped, as git does.
fn rules_of(folder: &ScopedFolder) -> Option<Gitignore> {
    let (file, _) = folder.open(OsStr::new(".gitignore")).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_GITIGNORE_BYTES).read_to_end(&mut bytes).ok()?;
    let mut rules = GitignoreBuilder::new(folder.path());
    for line in String::from_utf8_lossy(&bytes).lines() {
        let _ = rules.add_line(None, line);
    }
    rules.build().ok()
}
