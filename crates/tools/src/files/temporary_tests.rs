use std::fs;
use std::path::Path;

use super::*;
use crate::scope::{Permission, Scope, ScopeConfig};

fn opened(path: &Path) -> Folder {
    let scope = Scope::new(path, &ScopeConfig::default(), &path.join("home"));
    scope.resolve(".", Permission::Write).unwrap().folder().unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// P2
#[test]
fn what_a_crash_left_is_removed_and_what_is_in_use_is_not() {
    let work = tempfile::tempdir().unwrap();
    let folder = opened(work.path());
    fs::write(work.path().join(".longhaul-left"), "half").unwrap();
    fs::write(work.path().join("mine"), "whole").unwrap();
    let in_use = Temporary::create(&folder, CallId::generate(), Mode::from_raw_mode(0o600)).unwrap();

    remove_leftovers_older_than(&folder, Duration::ZERO);

    let mut expected = vec![in_use.name().to_str().unwrap().to_owned(), "mine".to_owned()];
    let mut left = names(work.path());
    expected.sort();
    left.sort();
    assert_eq!(left, expected);
    drop(in_use);
    assert_eq!(names(work.path()), ["mine"]);
}

/// P2: just after an exchange, the file that came out has such a name and nobody has locked it.
#[test]
fn what_was_touched_a_moment_ago_is_not_removed() {
    let work = tempfile::tempdir().unwrap();
    let folder = opened(work.path());
    fs::write(work.path().join(".longhaul-fresh"), "half").unwrap();

    remove_leftovers(&folder);

    assert_eq!(names(work.path()), [".longhaul-fresh"]);
}

/// P2
#[test]
fn someone_elses_file_under_the_name_of_a_temporary_one_is_left() {
    let work = tempfile::tempdir().unwrap();
    let folder = opened(work.path());
    let temporary = Temporary::create(&folder, CallId::generate(), Mode::from_raw_mode(0o600)).unwrap();
    let path = work.path().join(temporary.name());

    fs::write(work.path().join("theirs"), "theirs").unwrap();
    fs::rename(work.path().join("theirs"), &path).unwrap();
    drop(temporary);

    assert_eq!(fs::read_to_string(path).unwrap(), "theirs");
}
