use super::super::checkout::test_repository::{commit, git, repository};
use super::*;

const TIMEOUT: Duration = Duration::from_secs(30);

fn is_clean(folder: &Path) -> Option<bool> {
    let scratch = tempfile::tempdir().unwrap();
    let is_clean = is_work_tree_clean(folder, &scratch.path().join("git"), TIMEOUT);
    assert_eq!(
        fs::read_dir(scratch.path().join("git")).map_or(0, Iterator::count),
        0,
        "nothing is left behind"
    );
    is_clean
}

#[test]
fn what_is_changed_staged_or_untracked_is_not_clean() {
    let (_folder, work_tree) = repository();
    assert_eq!(is_clean(&work_tree), Some(true), "before the first commit");
    fs::write(work_tree.join("a.txt"), "one\n").unwrap();
    assert_eq!(is_clean(&work_tree), Some(false), "untracked");
    git(&work_tree, &["add", "a.txt"]);
    assert_eq!(is_clean(&work_tree), Some(false), "staged");
    commit(&work_tree);
    assert_eq!(is_clean(&work_tree), Some(true), "committed");
    fs::create_dir(work_tree.join("below")).unwrap();
    fs::write(work_tree.join("a.txt"), "two\n").unwrap();
    assert_eq!(is_clean(&work_tree.join("below")), Some(false), "changed");
    git(&work_tree, &["checkout", "-q", "a.txt"]);
    git(&work_tree, &["pack-refs", "--all"]);
    git(&work_tree, &["gc", "-q"]);
    fs::write(work_tree.join(".git/info/exclude"), "ignored\n").unwrap();
    fs::write(work_tree.join("ignored"), "").unwrap();
    assert_eq!(is_clean(&work_tree), Some(true), "packed, with an ignored file");
}

#[test]
fn a_linked_work_tree_is_clean_by_its_own_index() {
    let (folder, work_tree) = repository();
    fs::write(work_tree.join("a.txt"), "one\n").unwrap();
    git(&work_tree, &["add", "."]);
    commit(&work_tree);
    let linked = folder.path().canonicalize().unwrap().join("linked");
    git(&work_tree, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    fs::write(work_tree.join("a.txt"), "two\n").unwrap();

    assert_eq!(is_clean(&linked), Some(true));
    assert_eq!(is_clean(&work_tree), Some(false));
}

/// P7, P8: a repository that came from elsewhere names programs wherever git knows a place for one.
#[test]
fn nothing_that_the_repository_names_is_run() {
    let (folder, work_tree) = repository();
    fs::write(work_tree.join("a.txt"), "one\n").unwrap();
    fs::write(work_tree.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    git(&work_tree, &["add", "."]);
    commit(&work_tree);
    let (ran, script) = (folder.path().join("ran"), folder.path().join("evil"));
    fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display())).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    for name in
        ["core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external", "core.sshCommand"]
    {
        git(&work_tree, &["config", name, evil]);
    }
    git(&work_tree, &["config", "core.hooksPath", folder.path().to_str().unwrap()]);
    git(&work_tree, &["config", "status.submoduleSummary", "true"]);
    for hook in ["post-index-change", "fsmonitor-watchman"] {
        fs::copy(&script, folder.path().join(hook)).unwrap();
        fs::copy(&script, work_tree.join(".git/hooks").join(hook)).unwrap();
    }
    let _ = fs::remove_file(&ran);
    // Other times than in the index, so that git has to look at the content.
    fs::write(work_tree.join("a.txt"), "one\n").unwrap();

    assert_eq!(is_clean(&work_tree), Some(true));

    assert!(!ran.exists(), "a program of the repository was run");
    // The repository is dangerous indeed.
    let _ = Command::new("git").arg("status").current_dir(&work_tree).output();
    assert!(ran.exists(), "a plain git status runs none of them, so this test shows nothing");
}

#[test]
fn what_git_does_not_know_in_time_or_at_all_is_unknown() {
    let (_folder, work_tree) = repository();
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(is_work_tree_clean(&work_tree, scratch.path(), Duration::ZERO), None);
    fs::write(work_tree.join(".git/index"), "nonsense").unwrap();
    assert_eq!(is_clean(&work_tree), None, "a broken index");
    fs::write(work_tree.join(".git/HEAD"), "nonsense").unwrap();
    assert_eq!(is_clean(&work_tree), None, "a broken HEAD");
    assert_eq!(is_clean(Path::new("/")), None, "no repository");
}

#[test]
fn what_a_killed_process_left_behind_is_removed() {
    let (_folder, work_tree) = repository();
    let scratch = tempfile::tempdir().unwrap();
    let (old, new) = (scratch.path().join("1-0"), scratch.path().join("2-0"));
    fs::create_dir(&old).unwrap();
    fs::create_dir(&new).unwrap();
    let long_ago = std::time::SystemTime::now() - 2 * LEFTOVER_AGE;
    fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();

    assert_eq!(is_work_tree_clean(&work_tree, scratch.path(), TIMEOUT), Some(true));

    assert_eq!((old.exists(), new.exists()), (false, true));
}
