use proptest::prelude::*;

use super::*;
use crate::wrap::spans_width;

fn shown(rows: &[StyledLine]) -> String {
    rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn numbered(lines: std::ops::Range<usize>) -> String {
    lines.map(|line| format!("line {line}\n")).collect()
}

#[test]
fn changes_are_shown_with_two_lines_around_them() {
    let old = numbered(1..20);
    let new = old.replace("line 5\n", "line five\n").replace("line 15\n", "");

    insta::assert_snapshot!(shown(&diff(&old, &new, None, 80)), @r"
      line 3
      line 4
    - line 5
    + line five
      line 6
      line 7
    …
      line 13
      line 14
    - line 15
      line 16
      line 17
    ");
    assert_eq!(count_changed_lines(&old, &new), (1, 2));
}

#[test]
fn a_mark_stands_before_every_row_of_a_line_and_has_its_colour() {
    let rows = diff("", "one two three", None, 8);

    assert_eq!(shown(&rows), "+ one\n+ two\n+ three");
    assert_eq!(rows[0].spans[0].style, Style::new().fg(Color::Green));
    assert_eq!(diff("a", "", None, 8)[0].spans[0].style, Style::new().fg(Color::Red));
}

#[test]
fn what_came_has_the_colours_of_its_language() {
    let rows = diff("let a = 1;", "let a = 2;", Some("rs"), 80);

    assert_eq!(rows[0].spans, [Span::colored("- let a = 1;", Color::Red)]);
    assert_eq!(rows[1].spans[1], Span::colored("let", Color::Magenta));
}

#[test]
fn texts_that_are_the_same_have_no_difference_and_ends_of_lines_are_told() {
    assert_eq!(diff("a\n", "a\n", None, 80), []);
    assert_eq!(shown(&diff("a\r\n", "a\n", None, 80)), "only the ends of lines differ");
}

#[test]
fn a_large_change_is_not_compared() {
    let (old, new) = (numbered(1..15_000), numbered(20_000..35_000));

    assert_eq!(shown(&diff(&old, &new, None, 80)), "large change: up to 15,000 lines added, 14,999 removed");
    assert_eq!(count_changed_lines(&old, &new), (15_000, 14_999));
}

#[test]
fn a_large_text_with_a_small_change_is_compared() {
    let old = numbered(1..100_000);
    let new = old.replace("line 50000\n", "");

    assert_eq!(count_changed_lines(&old, &new), (0, 1));
    assert_eq!(diff(&old, &new, None, 80).len(), 5);
}

#[test]
fn only_the_first_lines_are_drawn_if_that_is_asked() {
    let (rows, left_out) = diff_lines("", &numbered(1..100_001), None, 80, 3);

    assert_eq!(shown(&rows), "+ line 1\n+ line 2\n+ line 3");
    assert_eq!(more_lines_notice(left_out).unwrap().to_string(), "… 99,997 more lines");
    assert!(diff("", &"x".repeat(1 << 20), None, 80).len() < 30);
}

proptest! {
    #[test]
    fn every_row_fits_and_the_counts_are_those_of_the_marks(
        old in "([a-c日\t\u{1b}]{0,3}\n){0,8}",
        new in "([a-c日\t\u{1b}]{0,3}\n){0,8}",
        width in 1u16..12,
    ) {
        let (added, removed) = count_changed_lines(&old, &new);

        for row in diff(&old, &new, Some("rust"), width) {
            prop_assert!(spans_width(&row.spans) <= usize::from(width));
        }
        let rows = diff(&old, &new, None, 80);
        let marked = |mark: &str| rows.iter().filter(|row| row.to_string().starts_with(mark)).count();
        prop_assert_eq!((added, removed), (marked("+"), marked("-")));
    }
}
