use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{AllowedTarget, ScopeConfig};

fn world(folders: &[&str], files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in folders {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    (folder, root)
}

fn allow(target: &str) -> AllowedTarget {
    AllowedTarget { target: target.to_owned(), permission: Permission::Write }
}

/// P3
#[test]
fn file_tools_write_nothing_that_git_runs() {
    let config = "[core]\nhooksPath = .githooks\n[include]\npath = ../shared";
    let files =
        [("work/.git/config", config), ("work/bare/HEAD", ""), ("work/bare/config", ""), ("work/file", "")];
    let folders =
        ["work/.git/objects", "work/.git/refs", "work/bare/objects", "work/bare/refs", "work/.githooks"];
    let (_folder, root) = world(&folders, &files);
    fs::write(root.join("work/.git/HEAD"), "").unwrap();
    let scope = Scope::new(&root.join("work"), &ScopeConfig::default(), &root.join("home"));
    let named = ScopeConfig { allow: vec![allow("./"), allow(".git")], deny: vec![] };
    let lifted = Scope::new(&root.join("work"), &named, &root.join("home"));
    let refused = |scope: &Scope, path: &str| {
        let place = scope.resolve(path, Permission::Write);
        matches!(place, Err(crate::FileError::RunByGit { .. }))
    };

    for path in [
        ".git",
        ".git/config",
        ".git/new",
        "sub/.git",
        "sub/.GIT/hooks/x",
        "bare/config",
        ".githooks/x",
        "shared",
    ] {
        assert!(refused(&scope, path), "{path}");
        assert!(
            scope.resolve(path, Permission::Read).is_ok() || !root.join("work").join(path).exists(),
            "{path}"
        );
    }
    for path in ["file", ".gitignore", "git/config", "sub/new"] {
        assert!(!refused(&scope, path), "{path}");
    }
    assert!(!refused(&lifted, ".git/config"));
    assert!(refused(&lifted, "sub/.git/config"));
}

/// A2, P3: only the user lifts the guard of a repository.
#[test]
fn a_subagent_whose_scope_names_a_repository_writes_nothing_that_git_runs() {
    let (_folder, root) =
        world(&["work/bare/objects", "work/bare/refs"], &[("work/bare/HEAD", ""), ("work/bare/config", "")]);
    let work = root.join("work");
    let config = ScopeConfig { allow: vec![allow("./"), allow("bare")], deny: vec![] };
    let whole = |config: &ScopeConfig| Scope::new(&work, config, &root.join("home"));
    let narrow = |scope: Scope| scope.narrow_to([(work.join("bare"), Permission::Write)]);

    let refused = narrow(whole(&ScopeConfig::default())).resolve("bare/config", Permission::Write);
    let lifted = narrow(whole(&config)).resolve("bare/config", Permission::Write);

    assert!(matches!(refused, Err(crate::FileError::RunByGit { .. })), "{refused:?}");
    assert!(lifted.is_ok(), "{lifted:?}");
}
