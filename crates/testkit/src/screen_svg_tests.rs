use super::*;

#[test]
fn a_picture_has_its_text_as_text_and_words_that_differ_replaced() {
    let mut terminal = TerminalScreen::new((20, 4));
    terminal.show(b"a < b & c\r\n\x1b[1;31mtask k2\x1b[0m \x1b[7mon\x1b[0m");

    let picture = terminal.to_svg("Two rows", &[("k2", "id")]);

    assert!(picture.contains("<title id=\"name\">Two rows</title>"), "{picture}");
    assert!(picture.contains(">a &lt; b &amp; c</text>"), "{picture}");
    assert!(picture.contains(">task id</text>") && !picture.contains("k2"), "{picture}");
    assert!(picture.contains("{fill:#f07a84;font-weight:700}"), "{picture}");
    assert_eq!(picture.matches("<rect").count(), 3, "the page, the cursor and what is inverted: {picture}");
}

#[test]
fn columns_stand_below_each_other_whatever_the_font_is() {
    let mut terminal = TerminalScreen::new((20, 4));
    terminal.show(b"  two\r\n\x1b[32mab\x1b[34mcd");

    let picture = terminal.to_svg("Columns", &[]);

    assert!(picture.contains("x=\"34.8\" y=\"32.5\" textLength=\"25.2\""), "{picture}");
    assert!(picture.contains("x=\"34.8\" y=\"52.5\" textLength=\"16.8\""), "{picture}");
}
