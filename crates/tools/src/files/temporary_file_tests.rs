use std::fs;
use std::path::Path;

use super::*;
use crate::scope::{AllowedTarget, Permission, Scope, ScopeConfig};

/// A file in this folder that is about to be written, and its folder.
fn about_to_write(path: &Path, config: &ScopeConfig) -> (ScopedPath, ScopedFolder) {
    let scope = Scope::new(path, config, &path.join("home"));
    let place = scope.resolve("mine", Permission::Write).unwrap();
    let (folder, _) = place.parent().unwrap();
    (place, folder)
}

fn opened(path: &Path) -> (ScopedPath, ScopedFolder) {
    about_to_write(path, &ScopeConfig::default())
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// P2
#[test]
fn what_a_crash_left_is_removed_and_what_is_in_use_is_not() {
    let work = tempfile::tempdir().unwrap();
    let (place, folder) = opened(work.path());
    fs::write(work.path().join(name(CallId::generate())), "half").unwrap();
    fs::write(work.path().join("mine"), "whole").unwrap();
    let in_use = TemporaryFile::create(&folder, CallId::generate(), Mode::from_raw_mode(0o600)).unwrap();

    remove_leftovers_older_than(&place, &folder, Duration::ZERO);

    let mut expected = vec![in_use.name().to_str().unwrap().to_owned(), "mine".to_owned()];
    let mut left = names(work.path());
    expected.sort();
    left.sort();
    assert_eq!(left, expected);
    drop(in_use);
    assert_eq!(names(work.path()), ["mine"]);
}

/// P2: what only begins like one of ours is someone's own.
#[test]
fn a_file_whose_name_only_begins_like_ours_is_left() {
    let work = tempfile::tempdir().unwrap();
    let (place, folder) = opened(work.path());
    let ours = name(CallId::generate()).into_string().unwrap();
    let mut theirs = vec![
        ".longhaul-".to_owned(),
        ".longhaul-notes.md".to_owned(),
        format!("{ours}.txt"),
        ours.to_uppercase().replace(".LONGHAUL-", ".longhaul-"),
        ours[..ours.len() - 1].to_owned(),
    ];
    for name in &theirs {
        fs::write(work.path().join(name), "precious").unwrap();
    }

    remove_leftovers_older_than(&place, &folder, Duration::ZERO);

    let mut left = names(work.path());
    left.sort();
    theirs.sort();
    assert_eq!(left, theirs);
}

/// P1: where only a file is allowed, nothing else in its folder is touched.
#[test]
fn in_a_folder_that_may_not_be_written_nothing_is_removed() {
    let work = tempfile::tempdir().unwrap();
    let allowed = |target: &str, permission| AllowedTarget { target: target.to_owned(), permission };
    let left = name(CallId::generate()).into_string().unwrap();
    fs::write(work.path().join(&left), "half").unwrap();
    let allow = vec![allowed("mine", Permission::Write), allowed("./", Permission::Read)];
    let (place, folder) = about_to_write(work.path(), &ScopeConfig { allow, deny: vec![] });

    remove_leftovers_older_than(&place, &folder, Duration::ZERO);

    assert_eq!(names(work.path()), [left]);
}

/// P2: just after an exchange, the file that came out has such a name and is not locked.
#[test]
fn what_was_touched_a_moment_ago_is_not_removed() {
    let work = tempfile::tempdir().unwrap();
    let (place, folder) = opened(work.path());
    let fresh = name(CallId::generate()).into_string().unwrap();
    fs::write(work.path().join(&fresh), "half").unwrap();

    remove_leftovers(&place, &folder);

    assert_eq!(names(work.path()), [fresh]);
}

/// P2
#[test]
fn someone_elses_file_under_the_name_of_a_temporary_one_is_left() {
    let work = tempfile::tempdir().unwrap();
    let (_, folder) = opened(work.path());
    let temporary = TemporaryFile::create(&folder, CallId::generate(), Mode::from_raw_mode(0o600)).unwrap();
    let path = work.path().join(temporary.name());

    fs::write(work.path().join("theirs"), "theirs").unwrap();
    fs::rename(work.path().join("theirs"), &path).unwrap();
    drop(temporary);

    assert_eq!(fs::read_to_string(path).unwrap(), "theirs");
}
