use proptest::prelude::*;

use super::*;

/// K13
#[test]
fn colours_and_control_codes_are_taken_out() {
    let table: [(&[u8], &str); 18] = [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b[38;5;196mred\x1b[m \x1b[?25lhidden", "red hidden"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]0;without end\nnext line", "\nnext line"),
        (b"\x1b(Bascii\x1b=\x1b>", "ascii"),
        (b"\x1bPq#0;2;0;0;0\x1b\\after", "after"),
        (b"bell\x07 null\x00 delete\x7f", "bell null delete"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        (b"10 %\r\x1b[K100 %\r", "100 %"),
        (b"o\x08ov\x08ve\x08er", "over"),
        (b"first\n\x08second", "first\nsecond"),
        ("caf\u{e9} \u{9b}31mred".as_bytes(), "caf\u{e9} red"),
        (b"caf\xe9 \xff", "caf\u{fffd} \u{fffd}"),
        (b"cut \x1b[3", "cut "),
        (b"cut \x1b", "cut "),
    ];

    for (bytes, expected) in table {
        assert_eq!(plain_text(bytes), expected, "{}", String::from_utf8_lossy(bytes).escape_debug());
    }
}

/// K13
#[test]
fn codes_that_turn_text_around_are_taken_out_and_letters_of_any_direction_stay() {
    let codes =
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";

    let text: String = codes.chars().map(|code| format!("a{code}b ")).collect();

    assert_eq!(plain_text(text.as_bytes()), "ab ".repeat(12));
    assert_eq!(plain_text("\u{5e9}\u{5dc} \u{202e}txt.exe".as_bytes()), "\u{5e9}\u{5dc} txt.exe");
    assert_eq!(plain_text("\u{1f468}\u{200d}\u{1f469}".as_bytes()), "\u{1f468}\u{200d}\u{1f469}");
}

/// K13: a progress bar of any length is one line.
#[test]
fn only_the_last_state_of_a_progress_bar_is_left() {
    let bar: String = (0..=1000).map(|done| format!("\r\x1b[2K{done}/1000")).collect();

    assert_eq!(plain_text(format!("start\n{bar}\nend\n").as_bytes()), "start\n1000/1000\nend\n");
}

/// Bytes of which many are the beginnings of something.
fn printed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        prop::sample::select(vec![
            "\x1b", "\x1b[", "\x1b]", "\r", "\n", "\x08", "31", "m", "\u{9b}", "é", "\\", "\x07"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// K13
    #[test]
    fn no_control_code_is_left_of_anything(bytes in printed()) {
        let text = plain_text(&bytes);

        prop_assert!(!text.contains(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t')));
    }

    /// K13
    #[test]
    fn plain_text_is_plain_already(bytes in printed()) {
        let text = plain_text(&bytes);

        prop_assert_eq!(plain_text(text.as_bytes()), text);
    }
}
