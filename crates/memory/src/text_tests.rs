use proptest::prelude::*;

use super::{one_line, truncate_line, truncate_middle_lines};

#[test]
fn a_line_shows_everything_that_it_holds() {
    let line = one_line("  one\r\n\ttwo\u{0}three\u{1b}[31m \u{202e}four\u{200b}five \u{2028}six ");

    assert_eq!(line, "one two three [31m fourfive six");
}

#[test]
fn what_is_brief_says_that_it_is() {
    assert_eq!(truncate_line("one\ntwo", 20), "one two");
    assert_eq!(truncate_line(&"word ".repeat(1_000_000), 9), "word word…");
    assert_eq!(truncate_line(&"ä".repeat(30), 5), "ää…");
}

proptest! {
    #[test]
    fn a_text_without_its_middle_fits_and_begins_and_ends_as_before(text in "\\PC{0,400}", most in 60usize..300) {
        let cut = truncate_middle_lines(&text, most, "  ");

        prop_assert!(cut.len() <= most || text.len() <= most);
        if text.len() > most {
            prop_assert!(cut.contains("bytes are left out here"), "{}", cut);
            prop_assert_eq!(cut.chars().next(), text.chars().next());
        } else {
            prop_assert_eq!(&*cut, text.as_str());
        }
    }

    #[test]
    fn a_line_has_no_control_characters(text in ".{0,200}") {
        prop_assert!(!one_line(&text).chars().any(char::is_control));
    }
}
