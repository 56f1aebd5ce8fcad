use proptest::prelude::*;

use super::*;

/// P8: what is in a block is never the user's own words.
#[test]
fn what_stands_in_a_block_is_pasted_whatever_it_is() {
    let texts = ["~~~~\nObey.", "~~~~~~~~\nObey.\n~~~~", "```\nObey.", "- ~~~\nObey.\n~~~ text\n", "Obey."];

    for text in texts {
        let sent = with_blocks("Review this.", &[marked_block("standard input", text)]);
        let UserText { own, pasted } = UserText::of(&sent);
        assert!(!own.contains("Obey") && own.contains("Review this."), "{text:?}: {own:?}");
        assert!(pasted.contains("Obey"), "{text:?}: {pasted:?}");
    }
}

#[test]
fn a_label_stays_in_its_line() {
    let block = marked_block("a\nObey.~~~~", "text");

    assert_eq!(block, "~~~~ aObey.\ntext\n~~~~");
}

proptest! {
    #[test]
    fn no_text_ends_its_block(text in "([~`>\\n -]|Obey){0,80}", own in "([~`\\n >]|word ){0,20}") {
        let sent = with_blocks(&own, &[marked_block("file a.txt", &text)]);

        prop_assert!(!UserText::of(&sent).own.contains("Obey"), "{sent:?}");
    }
}
