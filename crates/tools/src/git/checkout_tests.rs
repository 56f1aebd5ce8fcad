use std::fs;

use super::test_repository::{commit, git, repository};
use super::*;

#[test]
fn the_branch_and_its_commit_are_found_loose_and_packed_and_from_a_folder_below() {
    let (_folder, work_tree) = repository();
    let below = work_tree.join("a/b");
    fs::create_dir_all(&below).unwrap();

    let unborn = git_checkout(&below);
    let commit = Some(commit(&work_tree));
    git(&work_tree, &["checkout", "-q", "-b", "feature/x"]);
    let loose = git_checkout(&below);
    git(&work_tree, &["pack-refs", "--all"]);
    let packed = git_checkout(&below);
    git(&work_tree, &["checkout", "-q", "--detach"]);
    let detached = git_checkout(&below);

    let on = |branch: &str, commit| Some(GitCheckout { branch: Some(branch.to_owned()), commit });
    assert_eq!(unborn, on("trunk", None));
    assert_eq!(loose, on("feature/x", commit.clone()));
    assert_eq!(packed, on("feature/x", commit.clone()));
    assert_eq!(detached, Some(GitCheckout { branch: None, commit }));
    assert_eq!(git_root(&below), Some(work_tree.as_path()));
}

#[test]
fn a_linked_work_tree_has_its_own_branch() {
    let (folder, work_tree) = repository();
    let commit = commit(&work_tree);
    let linked = folder.path().canonicalize().unwrap().join("linked");
    git(&work_tree, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);

    let checkout = git_checkout(&linked).unwrap();

    assert_eq!(checkout, GitCheckout { branch: Some("side".to_owned()), commit: Some(commit) });
}

#[test]
fn what_is_broken_or_misleading_is_left_out() {
    let heads = [
        "",
        "ref: refs/heads/../../secret",
        "ref: refs/heads/a\u{1b}[31m",
        "ref: refs/heads/.invalid",
        "ref: refs/tags/a",
        "no hash",
    ];
    for head in heads {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/HEAD"), head).unwrap();

        assert_eq!(git_checkout(folder.path()), Some(GitCheckout::default()), "{head:?}");
    }
    for dot_git in ["gitdir: /nowhere", "gitdir: ../elsewhere", "nonsense"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".git"), dot_git).unwrap();

        assert_eq!(git_checkout(folder.path()), Some(GitCheckout::default()), "{dot_git:?}");
    }
    let bare = tempfile::tempdir().unwrap();
    git(bare.path(), &["init", "-q", "--bare"]);
    assert_eq!(git_checkout(bare.path()), None);
    assert_eq!(git_checkout(&bare.path().join("deleted/folder")), None);
}
