use super::*;

/// P3
#[test]
fn repositories_are_found_at_any_depth_and_what_changed_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["a/b/c/.git/objects/.git", "bare/objects", "bare/refs", "plain/d"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::create_dir(root.join("module")).unwrap();
    fs::write(root.join("module/.git"), "gitdir: x").unwrap();
    fs::write(root.join("bare/HEAD"), "").unwrap();
    std::os::unix::fs::symlink("a", root.join("link")).unwrap();
    let mut survey = RepositoryScan::default();
    let mut found = || -> Vec<String> {
        let found = survey.find(&root);
        found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
    };

    let first = found();
    fs::create_dir_all(root.join("plain/d/.git")).unwrap();
    fs::remove_dir_all(root.join("a")).unwrap();
    let second = found();

    assert_eq!(first, ["a/b/c/.git", "bare", "module/.git"]);
    assert_eq!(second, ["bare", "module/.git", "plain/d/.git"]);
}

/// P3: on most file systems `.GIT` is another folder than `.git`, and any command can make it.
#[test]
fn every_spelling_of_a_repository_is_found_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let names = [".GIT", ".GIt", ".Git", ".gIT", ".giT", ".git"];
    for name in names {
        // On a file system that ignores case there is only the first.
        let _ = fs::create_dir(root.join(name));
    }
    let all = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();

    assert_eq!(RepositoryScan::default().find(&root), all);
}

/// P3: what a bare repository keeps for a linked work tree must stay writable for git.
#[test]
fn a_repository_split_by_commondir_is_found_and_a_linked_work_tree_of_a_bare_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["split", "bare/objects", "bare/refs", "bare/worktrees/linked", "bare/worktrees/elsewhere"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("bare/HEAD"), "").unwrap();
    let split =
        [("split", "../common"), ("bare/worktrees/linked", "../.."), ("bare/worktrees/elsewhere", "/etc")];
    for (name, common) in split {
        fs::write(root.join(name).join("HEAD"), "").unwrap();
        fs::write(root.join(name).join("commondir"), common).unwrap();
    }

    let found = RepositoryScan::default().find(&root);

    let expected = ["bare", "bare/worktrees/elsewhere", "split"].map(|name| root.join(name));
    assert_eq!(found, BTreeSet::from(expected));
}
