use std::os::unix::fs::PermissionsExt;

use longhaul_agent::Config;
use tempfile::TempDir;

use super::*;

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    (folder, path)
}

fn load(path: &Path) -> History {
    History::load(path, Redactor::default())
}

fn entries(history: &History) -> Vec<&str> {
    history.entries.iter().map(String::as_str).collect()
}

#[test]
fn what_was_entered_is_there_in_the_next_run() {
    let (_folder, path) = file();
    let mut history = load(&path);

    history.add("one");
    history.add("two\nlines with a \\ and a \\n");
    history.add("two\nlines with a \\ and a \\n");

    let stored = std::fs::read_to_string(&path).unwrap();
    assert_eq!(stored, "#V2\none\ntwo\\nlines with a \\\\ and a \\\\n\n");
    assert_eq!(entries(&load(&path)), ["one", "two\nlines with a \\ and a \\n"]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_was_written_without_escapes_is_read_and_written_anew() {
    let (_folder, path) = file();
    std::fs::write(&path, "C:\\new\nplain\n").unwrap();

    let mut history = load(&path);
    history.add("more");

    assert_eq!(std::fs::read_to_string(&path).unwrap(), "#V2\nC:\\\\new\nplain\nmore\n");
}

#[test]
fn a_file_that_cannot_be_read_is_no_history_and_no_error() {
    let folder = tempfile::tempdir().unwrap();

    let mut history = load(folder.path());
    history.add("still typed");

    assert_eq!(entries(&history), ["still typed"]);
}

#[test]
fn half_an_entry_at_the_end_of_the_file_does_not_swallow_the_next() {
    let (_folder, path) = file();
    std::fs::write(&path, b"#V2\none\nha\xff").unwrap();

    load(&path).add("two");

    assert_eq!(entries(&load(&path)), ["one", "ha\u{FFFD}", "two"]);
}

#[test]
fn two_processes_append_to_one_file() {
    let (_folder, path) = file();
    let (mut one, mut other) = (load(&path), load(&path));

    one.add("from one");
    other.add("from the other");
    one.add("from one again");

    assert_eq!(entries(&load(&path)), ["from one", "from the other", "from one again"]);
}

#[test]
fn the_file_is_cut_to_its_newest_entries_when_it_has_twice_as_many() {
    let (_folder, path) = file();
    let lines: String = (0..2 * MAX_ENTRIES - 1).map(|number| format!("entry {number}\n")).collect();
    std::fs::write(&path, format!("#V2\n{lines}")).unwrap();

    let mut history = load(&path);
    history.add("the newest");

    assert_eq!(history.len(), MAX_ENTRIES);
    let stored = std::fs::read_to_string(&path).unwrap();
    assert_eq!(stored.lines().count(), MAX_ENTRIES + 1);
    assert!(stored.starts_with("#V2\nentry 1000\n") && stored.ends_with("entry 1998\nthe newest\n"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    history.add("one more");
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("the newest\none more\n"));
}

#[test]
fn what_was_cleared_away_stays_out_of_the_file() {
    let (_folder, path) = file();
    let mut history = load(&path);

    history.add_for_this_run("half a thought");

    assert_eq!(entries(&history), ["half a thought"]);
    assert!(!path.exists());
    history.add("half a thought");
    assert_eq!(entries(&history), ["half a thought"]);
    assert_eq!(entries(&load(&path)), ["half a thought"]);
}

#[test]
fn a_very_long_entry_is_kept_for_this_run_only() {
    let (_folder, path) = file();
    let mut history = load(&path);

    history.add(&"x".repeat(MAX_STORED_BYTES + 1));

    assert_eq!(history.len(), 1);
    assert!(!path.exists());
}

/// J8
#[test]
fn secrets_stay_out_of_the_history() {
    let (folder, path) = file();
    let mut config = Config::at(folder.path());
    config.settings.secrets.patterns = vec!["sk-[a-z]{8}".to_owned()];
    let mut history = History::load(&path, longhaul_agent::redactor(&config).unwrap());

    history.add("the key is sk-abcdefgh");

    assert_eq!(entries(&history), ["the key is [redacted]"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "#V2\nthe key is [redacted]\n");
}
