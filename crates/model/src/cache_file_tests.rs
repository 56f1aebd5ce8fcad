use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// P1
#[test]
fn lines_are_neither_read_nor_appended_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&endpoint, "secret\n").unwrap();
    symlink(&endpoint, &link).unwrap();

    let appended = append_line(&link, "planted");

    assert!(appended.is_err());
    assert_eq!(read_lines(&link), "");
    assert_eq!(fs::read_to_string(&endpoint).unwrap(), "secret\n");
}

#[test]
fn a_file_that_is_too_long_counts_for_nothing_and_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cache/lines");
    append_line(&file, &"x".repeat(4 << 20)).unwrap();

    let too_long = read_lines(&file);
    append_line(&file, "one").unwrap();
    append_line(&file, "two").unwrap();

    assert_eq!(too_long, "");
    assert_eq!(read_lines(&file), "one\ntwo\n");
}
