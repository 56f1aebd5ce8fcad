use proptest::prelude::*;

use super::*;
use crate::style::{Color, Span, Style};
use crate::wrap::spans_width;

fn whole(text: &str, width: u16) -> Vec<StyledLine> {
    let mut markdown = Markdown::new();
    markdown.push(text);
    markdown.finish(width)
}

fn shown(rows: &[StyledLine]) -> String {
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The one span with this text.
fn style_of(rows: &[StyledLine], text: &str) -> Style {
    let spans = || rows.iter().flat_map(|row| &row.spans);
    let found: Vec<&Span> = spans().filter(|span| span.content == text).collect();
    assert_eq!(found.len(), 1, "{text} in {:?}", spans().collect::<Vec<_>>());
    found[0].style
}

#[test]
fn paragraphs_lists_quotes_and_code_look_like_what_they_are() {
    let text = "# Title\nSome *text* with `code`\nand [a link](https://example.org/x), <https://a.b>.\n\
                Intro:\n- one\n- two that is longer than the row is wide\n  - nested\n\n    ```rust\n    fn main() {}\n    ```\n\
                - [x] done\n- [ ] not done\n\n1. first\n\n   second paragraph\n1. second\n> quoted\n> more\n>\n> - item\nlazy\n\n\
                ```\na\n\nb\n```\n***\nend  \nof it";

    insta::assert_snapshot!(shown(&whole(text, 36)), @r"
    Title

    Some text with code and a link
    (https://example.org/x),
    https://a.b. Intro:

    • one
    • two that is longer than the row is
      wide
      • nested

          rust
          fn main() {}
    ☑ done
    ☐ not done

    1. first

       second paragraph
    2. second

    ▌ quoted more
    ▌
    ▌ • item lazy

      a

      b

    ────────────────────────────────────

    end
    of it
    ");
}

#[test]
fn a_table_is_aligned_and_shrunk_and_where_that_is_too_narrow_a_list() {
    let text = "Before\n| Name | Value | What it is |\n|:-----|------:|---|\n| a | 1 | **bold** |\n\
                | a long name | 22 | something that needs more room than there is |\nAfter";

    insta::assert_snapshot!(shown(&whole(text, 40)), @r"
    Before

    Name        │ Value │ What it is
    ────────────┼───────┼───────────────────
    a           │     1 │ bold
    a long name │    22 │ something that
                │       │ needs more room
                │       │ than there is

    After
    ");
    insta::assert_snapshot!(shown(&whole(text, 20)), @r"
    Before

    Name: a
    Value: 1
    What it is: bold

    Name: a long name
    Value: 22
    What it is:
    something that needs
    more room than there
    is

    After
    ");
}

#[test]
fn styles_are_those_of_the_terminal() {
    let rows = whole("# head\n*it* **bold** ~~gone~~ `code` [text](url)\n\n> quoted\n\n```rs\nfn\n```", 80);

    let plain = Style::new();
    assert_eq!(style_of(&rows, "head"), plain.bold().underlined());
    assert_eq!(style_of(&rows, "it"), plain.italic());
    assert_eq!(style_of(&rows, "bold"), plain.bold());
    assert_eq!(style_of(&rows, "gone"), plain.crossed_out());
    assert_eq!(style_of(&rows, "code"), plain.fg(Color::Cyan));
    assert_eq!(style_of(&rows, "text"), plain.underlined());
    assert_eq!(style_of(&rows, " (url)"), plain.dim());
    assert_eq!(style_of(&rows, "▌ "), plain.dim());
    assert_eq!(style_of(&rows, "rs"), plain.dim());
    assert_eq!(style_of(&rows, "fn"), plain.fg(Color::Magenta));
}

#[test]
fn what_is_whole_settles_at_once_and_the_rest_stays_open() {
    let mut markdown = Markdown::new();

    markdown.push("one\n\ntwo\nstill");
    assert_eq!(shown(&markdown.take_settled(80)), "one");
    assert_eq!(shown(&markdown.open_lines(80)), "\ntwo still");

    markdown.push(" two\n- a\n- b\n```sh\nls\ncd");
    assert_eq!(shown(&markdown.take_settled(80)), "\ntwo still two\n\n• a\n• b\n\n  sh\n  ls");
    assert_eq!(shown(&markdown.open_lines(80)), "  cd");
    assert_eq!(markdown.take_settled(80), []);

    assert_eq!(shown(&markdown.finish(80)), "  cd");
    assert_eq!(markdown.finish(80), []);
    markdown.push("new");
    assert_eq!(shown(&markdown.finish(80)), "new");
}

#[test]
fn a_line_that_may_become_a_mark_is_not_shown_as_one_yet() {
    let mut markdown = Markdown::new();

    markdown.push("a paragraph\n-");

    assert_eq!(shown(&markdown.open_lines(80)), "a paragraph");
}

#[test]
fn a_break_of_html_is_one_and_other_tags_are_shown() {
    assert_eq!(shown(&whole("a<br>b Vec<T>", 80)), "a\nb Vec<T>");
    assert_eq!(shown(&whole("|a<br/>b|\n|-|", 80)), "a b\n───");
}

#[test]
fn lists_that_are_indented_too_little_or_interrupted_keep_their_shape() {
    let text = "1. one\n  - nested\n  - nested\n2. two\n```\ncode\n```\n3. three\n-\n- x\n      y\n\n  z";

    insta::assert_snapshot!(shown(&whole(text, 36)), @r"
    1. one
       • nested
       • nested
    2. two

      code

    3. three

    •
    • x y

      z
    ");
}

#[test]
fn what_drives_a_terminal_comes_through_neither_as_it_is_nor_as_an_entity() {
    let rows = whole("a\u{1b}[2J &#27;[2J &#x202e; `\u{9b}` [x](\u{7})\n```\u{1b}\n\u{1b}]0;\t\r\n", 80);

    let text = shown(&rows);
    assert!(
        !text.contains(|letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}'),
        "{text:?}"
    );
}

#[test]
fn what_is_open_stays_small_however_long_a_block_is() {
    let line = "word ".repeat(200_000);
    let paragraph = "some words in a line\n".repeat(20_000);
    let table = format!("|a|b|\n|-|-|\n{}", "|1|2|\n".repeat(20_000));
    let item = format!("- {}", "word\n  ".repeat(20_000));
    let quote = "> word\n".repeat(20_000);

    for text in [line, paragraph, table, item, quote] {
        let mut markdown = Markdown::new();
        markdown.push(&text);
        let settled = markdown.take_settled(80).len();

        assert!(markdown.open_lines(80).len() < 4 * MAX_OPEN_BYTES / 5, "{}", &text[..20]);
        assert!(settled > 100, "{}", &text[..20]);
    }
}

#[test]
fn a_table_that_is_drawn_in_parts_has_one_head() {
    let text = format!("|name|b|\n|-|-|\n{}", "|1|2|\n".repeat(5_000));

    let text = shown(&whole(&text, 80));

    assert_eq!(text.matches("name").count(), 1);
    assert_eq!(text.matches('1').count(), 5_000);
}

/// Beginnings of all that Markdown has, so that random texts are more than paragraphs.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-d]{1,6} ?",
        3 => Just("\n".to_owned()),
        2 => prop::sample::select(vec![
            "- ", "* ", "1. ", "2) ", "> ", "```", "```rs\n", "~~~\n", "# ", "## ", "---\n", "===\n", "\n\n", "    ", "  ", "\t",
            "| ", "|a|b|\n|-|-|\n|c|d|\n", "*", "**", "_", "`", "~~", "[x](y)", "[x]: y\n", "<b>", "<!--", "&amp;", "\\", "  \n",
            "- [x] ", "日本", "é\u{301}", "👩‍👩‍👧", "\u{200d}", "\r\n", "\u{1b}", "\u{2060}", "![", "\u{a0}", "***\n", "-\n",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn how_the_text_comes_makes_no_difference(
        text in text(),
        cuts in prop::collection::vec((0.0..1.0f64, 0..4u8), 0..12),
        width in 1u16..60,
    ) {
        let expected = whole(&text, width);
        let mut cuts: Vec<(usize, u8)> = cuts
            .into_iter()
            .map(|(share, act)| (text.floor_char_boundary((share * text.len() as f64) as usize), act))
            .collect();
        cuts.sort_unstable();

        let (mut markdown, mut rows, mut from) = (Markdown::new(), Vec::new(), 0);
        for (at, act) in cuts {
            markdown.push(&text[from..at]);
            from = at;
            if act & 1 != 0 {
                rows.extend(markdown.take_settled(width));
            }
            if act & 2 != 0 {
                for row in markdown.open_lines(width) {
                    prop_assert!(spans_width(&row.spans) <= usize::from(width), "{row:?}");
                }
            }
        }
        markdown.push(&text[from..]);
        rows.extend(markdown.finish(width));

        for row in &rows {
            prop_assert!(spans_width(&row.spans) <= usize::from(width), "{row:?}");
            prop_assert!(row.width() <= usize::from(width), "{row:?}");
        }
        prop_assert_eq!(rows, expected);
    }

    #[test]
    fn what_is_open_is_what_would_be_left_if_the_text_ended(text in text(), width in 1u16..60) {
        let mut markdown = Markdown::new();
        // A line that may become a mark is not shown yet, so the last one can't.
        markdown.push(&format!("{text}x"));
        markdown.take_settled(width);

        let open = markdown.open_lines(width);

        prop_assert_eq!(open, markdown.finish(width));
    }

    #[test]
    fn no_word_of_a_paragraph_is_lost(
        paragraphs in prop::collection::vec(prop::collection::vec("[a-z]{1,9}", 1..12), 1..5),
        width in 10u16..60,
    ) {
        let text = paragraphs.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("\n\n");

        let shown = shown(&whole(&text, width));

        let words: Vec<&str> = paragraphs.iter().flatten().map(String::as_str).collect();
        prop_assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), words);
    }

    #[test]
    fn lines_that_are_too_long_are_cut_at_the_same_place_however_they_come(
        cut in 1usize..20_000,
        spaces in prop::collection::vec(1usize..9_000, 0..4),
        begins in prop::sample::select(vec!["", "- ", "> ", "```\n", "# ", "    "]),
    ) {
        let mut text = begins.to_owned();
        for length in spaces {
            text.push_str(&"x".repeat(length));
            text.push(' ');
        }
        text.push_str("\nend");
        let cut = cut.min(text.len());

        let mut markdown = Markdown::new();
        markdown.push(&text[..cut]);
        let mut rows = markdown.take_settled(50);
        markdown.open_lines(50);
        markdown.push(&text[cut..]);
        rows.extend(markdown.finish(50));

        let letters = |text: &str| text.matches('x').count();
        prop_assert_eq!(letters(&shown(&rows)), letters(&text));
        prop_assert_eq!(rows, whole(&text, 50));
    }
}
