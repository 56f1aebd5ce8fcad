use super::*;

#[test]
fn names_that_could_be_paths_or_confuse_are_refused_with_a_reason() {
    let long = "a".repeat(65);
    let bad = ["", "..", "a/b", "/etc", "Core", "über", ".mirror", "-a", "_a", "a b", "a.md", "a\0", &long];

    for name in bad {
        let error = check_page_name(name).unwrap_err();
        assert!(error.to_string().contains("is not a valid page name: "), "{error}");
    }
    for name in ["core", "a", "0-day_notes", "con", &long[1..]] {
        check_page_name(name).unwrap();
    }
}

#[test]
fn a_line_is_taken_apart_into_sign_mark_and_words() {
    let parts = |line| {
        let line = PageLine::of(line);
        (line.prefix, line.is_untrusted, line.words)
    };

    assert_eq!(parts("- tea "), ("- ", false, "tea"));
    assert_eq!(parts("  * [Untrusted]  tea"), ("  * ", true, "tea"));
    assert_eq!(parts("## Title"), ("## ", false, "Title"));
    assert_eq!(parts("-"), ("-", false, ""));
    assert_eq!(parts("#7 is open"), ("", false, "#7 is open"));
    assert_eq!(parts("prose"), ("", false, "prose"));
    assert_eq!(parts("[untrusted] prose"), ("", true, "prose"));
    assert_eq!(PageLine::of("  - tea").as_untrusted(), "  - [untrusted] tea");
}

#[test]
fn items_are_all_lines_but_headings_and_empty_ones() {
    let said: Vec<&str> = page_items("# T\n\n- a\n## H\nprose\n  - b\n").map(|line| line.words).collect();

    assert_eq!(said, ["a", "prose", "b"]);
}

#[test]
fn a_text_is_tidied_and_one_of_blanks_is_none() {
    assert_eq!(normalise_page("\r\n# T  \r\n\r\n- a\t\n\n\n").as_deref(), Some("# T\n\n- a\n"));
    assert_eq!(normalise_page(" \n\t\n"), None);
    assert_eq!(
        normalise_page("- a\r- b\u{2028}- c\u{202e}d\u{1b}\u{200b}e").as_deref(),
        Some("- a\n- b\n- cde\n")
    );
    assert_eq!(title("\n# The title\n- a").map(|title| title.words), Some("The title"));
    assert_eq!(title_from_name("build-and_run"), "Build and run");
}
