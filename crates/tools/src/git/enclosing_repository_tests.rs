use std::fs;

use super::*;

fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text.replace("ROOT", root.to_str().unwrap())).unwrap();
    }
    (folder, root)
}

const MAIN: [(&str, &str); 4] =
    [("main/.git/HEAD", ""), ("main/.git/objects/x", ""), ("main/.git/refs/x", ""), ("main/.git/config", "")];

/// P3
#[test]
fn the_repository_above_a_folder_is_found_unless_it_is_that_of_the_whole_home() {
    let (_folder, root) = world(&[&MAIN[..], &[("main/a/b/file", ""), ("main/.gitignore", "")]].concat());

    let found = enclosing_repository(&root.join("main/a/b"), Some(&root)).unwrap();

    assert_eq!((found.common_dir, found.work_tree), (root.join("main/.git"), root.join("main")));
    assert_eq!(found.read, [root.join("main/.gitignore")]);
    assert_eq!(enclosing_repository(&root.join("main/a/b"), Some(&root.join("main"))), None);
    assert_eq!(enclosing_repository(&root.join("main/a/b"), Some(&root.join("main/a"))), None);
}

/// P3
#[test]
fn a_file_leads_to_a_repository_only_if_that_leads_back() {
    let linked = [
        ("tree/.git", "gitdir: ROOT/main/.git/worktrees/tree\n"),
        ("main/.git/worktrees/tree/commondir", "../..\n"),
        ("main/.git/worktrees/tree/gitdir", "ROOT/tree/.git\n"),
        ("planted/.git", "gitdir: ROOT/main/.git/worktrees/tree\n"),
        ("direct/.git", "gitdir: ../main/.git\n"),
        ("own/worktrees/x/commondir", "ROOT/main/.git\n"),
        ("own/worktrees/x/gitdir", "ROOT/through/.git\n"),
        ("through/.git", "gitdir: ROOT/own/worktrees/x\n"),
    ];
    let (_folder, root) = world(&[&MAIN[..], &linked[..]].concat());
    let found =
        |folder: &str| enclosing_repository(&root.join(folder), None).map(|repository| repository.common_dir);

    assert_eq!(found("tree"), Some(root.join("main/.git")));
    assert_eq!([found("planted"), found("direct"), found("through")], [None, None, None]);
}
