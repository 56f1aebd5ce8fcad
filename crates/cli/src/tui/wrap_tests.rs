use proptest::prelude::*;
use ratatui::style::{Color, Stylize};

use super::*;

fn texts(rows: &[Line<'_>]) -> Vec<String> {
    rows.iter().map(ToString::to_string).collect()
}

fn rows(text: &str, width: u16, indent: &str) -> Vec<String> {
    texts(&wrapped(&Line::from(Span::raw(text.to_owned())), width, indent))
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
    let line = Line::from(vec!["one ".red(), "two".blue(), "three".blue()]).bold();

    let rows = wrapped(&line, 8, "");

    assert_eq!(rows, [Line::from(vec!["one".red()]).bold(), Line::from(vec!["twothree".blue()]).bold()]);
}

#[test]
fn what_drives_a_terminal_does_not_come_through() {
    assert_eq!(rows("a\u{1b}[31m\tb\r\nc\u{202e}", 80, ""), ["a\u{fffd}[31m    b c\u{fffd}"]);
}

#[test]
fn one_row_ends_with_a_mark_if_it_is_not_all() {
    let line = Line::from(vec!["one ".fg(Color::Cyan), "two".into()]);

    assert_eq!(one_row(&line, 7).to_string(), "one two");
    assert_eq!(one_row(&line, 6).to_string(), "one t…");
    assert_eq!(one_row(&Line::from("日本"), 3).to_string(), "日…");
    assert_eq!(one_row(&line, 0).to_string(), "…");
}

proptest! {
    #[test]
    fn every_row_fits_and_no_word_is_lost(text in "(?s)[a-c日é\u{301}👩\u{200d}\u{1f1e6}\u{200b} \t\n\u{1b}\u{644}\u{627}]{0,60}", width in 1u16..12, indent in " {0,4}") {
        let rows = wrapped(&Line::from(Span::raw(text.clone())), width, &indent);

        for row in &rows {
            prop_assert!(columns_of(&row.spans) <= usize::from(width), "{row:?}");
            prop_assert!(row.width() <= usize::from(width), "{row:?}");
        }
        // One that is wider than what is left of a row has no place in it.
        let widest = clean(&text).graphemes(true).map(columns).max().unwrap_or(0);
        if widest + indent.len() <= usize::from(width) {
            let bare = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&texts(&rows).concat()), bare(&clean(&text)));
        }
    }

    #[test]
    fn one_row_is_one_row_whatever_comes(text in any::<String>(), width in 0u16..30) {
        let row = one_row(&Line::from(text), width);

        prop_assert!(columns_of(&row.spans) <= usize::from(width.max(1)));
    }
}
