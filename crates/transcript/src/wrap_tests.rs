use proptest::prelude::*;

use super::*;
use crate::style::Color;

fn texts(rows: &[StyledLine]) -> Vec<String> {
    rows.iter().map(ToString::to_string).collect()
}

fn rows(text: &str, width: u16, indent: &str) -> Vec<String> {
    texts(&wrap_line(&StyledLine::raw(text), width, indent))
}

#[test]
fn a_line_is_broken_at_words_and_the_space_there_is_dropped() {
    assert_eq!(rows("one two three", 8, ""), ["one two", "three"]);
    assert_eq!(rows("one two three", 8, "  "), ["one two", "  three"]);
    assert_eq!(rows("  in  two", 80, ""), ["  in  two"]);
    assert_eq!(rows("", 8, "  "), [""]);
    assert_eq!(rows("   ", 2, "  "), [""]);
}

#[test]
fn a_word_that_is_too_long_is_broken() {
    assert_eq!(rows("a abcdefghij", 4, ""), ["a", "abcd", "efgh", "ij"]);
}

#[test]
fn wide_characters_are_broken_anywhere_and_counted_as_two_columns() {
    assert_eq!(rows("日本語です", 4, ""), ["日本", "語で", "す"]);
    assert_eq!(rows("日a", 1, ""), ["\u{fffd}", "a"]);
    assert_eq!(rows("👩‍👩‍👧 ok", 4, ""), ["👩‍👩‍👧", "ok"]);
}

#[test]
fn styles_go_with_their_words() {
    let bold = |text: &str, color| Span::styled(text, Style::new().fg(color).bold());
    let line = StyledLine::from(vec![
        bold("one ", Color::Red),
        bold("two", Color::Blue),
        bold("three", Color::Blue),
    ]);

    let rows = wrap_line(&line, 8, "");

    assert_eq!(
        rows,
        [StyledLine::from(bold("one", Color::Red)), StyledLine::from(bold("twothree", Color::Blue))]
    );
}

#[test]
fn what_drives_a_terminal_does_not_come_through() {
    assert_eq!(rows("a\u{1b}[31m\tb\r\nc\u{202e}", 80, ""), ["a\u{fffd}[31m    b c\u{fffd}"]);
}

#[test]
fn one_row_ends_with_a_mark_if_it_is_not_all() {
    let line = StyledLine::from(vec![Span::colored("one ", Color::Cyan), "two".into()]);

    assert_eq!(truncate_line(&line, 7).to_string(), "one two");
    assert_eq!(truncate_line(&line, 6).to_string(), "one t…");
    assert_eq!(truncate_line(&StyledLine::raw("日本"), 3).to_string(), "日…");
    assert_eq!(truncate_line(&line, 0).to_string(), "…");
}

proptest! {
    #[test]
    fn every_row_fits_and_no_word_is_lost(text in "(?s)[a-c日é\u{301}👩\u{200d}\u{1f1e6}\u{200b} \t\n\u{1b}\u{644}\u{627}]{0,60}", width in 1u16..12, indent in " {0,4}") {
        let rows = wrap_line(&StyledLine::raw(text.clone()), width, &indent);

        for row in &rows {
            prop_assert!(spans_width(&row.spans) <= usize::from(width), "{row:?}");
            prop_assert!(row.width() <= usize::from(width), "{row:?}");
        }
        // One that is wider than what is left of a row has no place in it.
        let widest = sanitize_line(&text).graphemes(true).map(text_width).max().unwrap_or(0);
        if widest + indent.len() <= usize::from(width) {
            let bare = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&texts(&rows).concat()), bare(&sanitize_line(&text)));
        }
    }

    #[test]
    fn one_row_is_one_row_whatever_comes(text in any::<String>(), width in 0u16..30) {
        let row = truncate_line(&StyledLine::raw(text), width);

        prop_assert!(spans_width(&row.spans) <= usize::from(width.max(1)));
    }
}
