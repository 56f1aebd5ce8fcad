//! A repository for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(in super::super) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(in super::super) fn repository() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let work_tree = folder.path().canonicalize().unwrap().join("project");
    fs::create_dir(&work_tree).unwrap();
    git(&work_tree, &["init", "-q", "-b", "trunk"]);
    (folder, work_tree)
}

pub(in super::super) fn commit(work_tree: &Path) -> String {
    git(work_tree, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(work_tree, &["rev-parse", "HEAD"])[..super::SHORT_COMMIT].to_owned()
}
