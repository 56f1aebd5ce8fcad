use super::*;

/// The paths that match, the best first.
fn ranked<'a>(paths: &[&'a str], pattern: &str) -> Vec<&'a str> {
    let mut found: Vec<(i32, &str)> =
        paths.iter().filter_map(|path| Some((score(path, pattern)?, *path))).collect();
    found.sort_by_key(|(score, path)| (-score, path.len()));
    found.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn characters_match_in_their_order_and_without_regard_to_case() {
    assert!(score("src/Main.rs", "smr").is_some());
    assert!(score("src/Main.rs", "main").is_some());
    assert!(score("src/main.rs", "niam").is_none());
    assert!(score("src/main.rs", "mainn").is_none());
    assert!(score("a", "").is_some());
}

#[test]
fn a_name_beats_a_folder_and_a_row_beats_scattered_characters() {
    assert_eq!(
        ranked(&["main/other.rs", "src/remaining.rs", "src/main.rs", "src/m_a_i_n.rs"], "main"),
        ["src/main.rs", "src/remaining.rs", "src/m_a_i_n.rs", "main/other.rs"]
    );
    assert_eq!(
        ranked(&["src/tui/input/files.rs", "src/file_system.rs"], "files")[0],
        "src/tui/input/files.rs"
    );
    assert_eq!(
        ranked(&["crates/abc/tin.rs", "crates/tui/input/mod.rs"], "tuiinp")[0],
        "crates/tui/input/mod.rs"
    );
    assert_eq!(ranked(&["distant/x", "docs/install.md"], "di")[0], "distant/x");
}

#[test]
fn a_set_of_bytes_rules_out_only_paths_that_cannot_match() {
    let (path, pattern) = (byte_set("src/Main.rs"), byte_set("main"));

    assert_eq!(path & pattern, pattern);
    assert_ne!(path & byte_set("mainz"), byte_set("mainz"));
}
