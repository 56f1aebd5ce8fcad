//! The pieces of a text depend on the text alone.

use super::piece_length;

fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while let Some(length) = piece_length(text) {
        pieces.push(&text[..length]);
        text = &text[length..];
    }
    pieces.push(text);
    pieces
}

/// H2.
#[test]
fn a_text_is_cut_into_words_wherever_it_arrives_in_parts() {
    assert_eq!(pieces("One  two\nthree"), ["One  ", "two\n", "three"]);
    assert_eq!(pieces(&"x".repeat(100)).iter().map(|piece| piece.len()).collect::<Vec<_>>(), [48, 48, 4]);
    let text = "Ein längerer Satz, mit Umlauten: äöü und 漢字 ohne Leerzeichen. ".repeat(5);
    let whole = pieces(&text);
    for (end, _) in text.char_indices().skip(1) {
        let part = pieces(&text[..end]);
        // The last piece may go on.
        let sure = part.len() - 1;
        assert_eq!(part[..sure], whole[..sure], "{end}");
    }
}
