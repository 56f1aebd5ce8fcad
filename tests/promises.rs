//! `docs/promises.md` says which test holds which promise. Here that is checked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many points each part has.
const PARTS: [(char, u32); 14] = [
    ('J', 11),
    ('T', 15),
    ('M', 19),
    ('C', 13),
    ('K', 18),
    ('Y', 13),
    ('S', 8),
    ('P', 8),
    ('H', 8),
    ('E', 8),
    ('B', 4),
    ('N', 5),
    ('W', 3),
    ('A', 3),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What the page says: the points with their tests, and those that are not built.
struct Page {
    promises: BTreeMap<String, Vec<String>>,
    not_built: BTreeSet<String>,
}

fn page() -> Page {
    let text = std::fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let (built, not_built) = text.split_once("\n## Not built\n").unwrap();
    let code = |line: &str| Some(line.strip_prefix("- **")?.split_once("**")?.0.to_owned());
    let mut promises: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut point = None;
    for line in built.lines() {
        if let Some(code) = code(line) {
            assert!(promises.insert(code.clone(), Vec::new()).is_none(), "{code} stands there twice");
            point = Some(code);
        } else if let Some(test) = line.strip_prefix("  - `") {
            let point = point.as_ref().unwrap_or_else(|| panic!("{line} belongs to no point"));
            promises.get_mut(point).unwrap().push(test.trim_end_matches('`').to_owned());
        }
    }
    Page { promises, not_built: not_built.lines().filter_map(code).collect() }
}

fn is_of_tests(name: &str) -> bool {
    let in_tests = name.contains("/tests/") || name.contains("/journal/src/conformance/");
    name.ends_with("_tests.rs") || (name.ends_with(".rs") && in_tests)
}

/// Every file of tests below a folder.
fn files_of_tests(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_of_tests(&path, files);
        } else if path.to_str().is_some_and(is_of_tests) {
            files.push(path);
        }
    }
}

/// The codes in a text: a letter of a part, and a number.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').filter(|word| {
        let mut characters = word.chars();
        let of_a_part = characters.next().is_some_and(|letter| PARTS.iter().any(|(part, _)| *part == letter));
        of_a_part
            && (1..=2).contains(&characters.as_str().len())
            && characters.all(|digit| digit.is_ascii_digit())
    })
}

#[test]
fn every_test_that_the_page_names_exists() {
    for (code, tests) in page().promises {
        assert!(!tests.is_empty(), "{code} has no test");
        for test in tests {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{code}: {test}"));
            let text = std::fs::read_to_string(root().join(file));
            let text = text.unwrap_or_else(|error| panic!("{code}: {file}: {error}"));
            assert!(text.contains(&format!("fn {name}(")), "{code}: {file} has no {name}");
        }
    }
}

#[test]
fn every_point_stands_on_the_page_once() {
    let Page { promises, not_built } = page();
    let all: BTreeSet<String> = PARTS
        .iter()
        .flat_map(|(part, last)| (1..=*last).map(move |number| format!("{part}{number}")))
        .collect();
    let there: BTreeSet<String> = promises.into_keys().chain(not_built.iter().cloned()).collect();

    assert_eq!(there, all);
}

#[test]
fn every_code_that_a_test_names_stands_on_the_page() {
    let Page { promises, not_built } = page();
    let mut files = Vec::new();
    ["crates", "tests"].iter().for_each(|folder| files_of_tests(&root().join(folder), &mut files));

    assert!(files.len() > 100, "the tests were not found");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("///")) {
            for code in codes(line) {
                let is_known = promises.contains_key(code) || not_built.contains(code);
                assert!(is_known, "{}: {code} is no promise: {line}", file.display());
            }
        }
    }
}
