//! The pieces of a text depend on the text alone.

use longhaul_protocol::{AttemptId, Item, Role};

use super::{OpenAnswer, TurnStep, piece_length};

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

/// H2: the stream of the process that runs the session tells all blocks without a break between them.
#[test]
fn a_client_that_joins_in_the_second_block_gets_the_pieces_of_both() {
    let text = |text: &str| Item::Text { role: Role::Assistant, text: text.to_owned() };
    let mut answer = OpenAnswer::new(AttemptId::from_bits(1));
    answer.push_block(&text("One two."));

    let joined = answer.catch_up("One two.Three fo");
    let later = answer.push_delta("ur five");

    let pieces = ["One ", "two.\n\n", "Three "].map(|piece| TurnStep::Text(piece.to_owned()));
    assert_eq!(joined, pieces);
    assert_eq!(later, [TurnStep::Text("four ".to_owned())]);
}
