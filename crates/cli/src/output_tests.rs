use super::*;

/// P7, P8: text that a person does not see can still tell the model what to do.
#[test]
fn what_the_user_is_about_to_trust_shows_what_would_be_hidden() {
    // A zero-width space, a selector that spells a byte, a letter of the tags block, an override of the direction, an escape.
    let hidden = "a\u{200b}b\u{e0149}c\u{e0041}d\u{202e}e\u{1b}[8m\tf \u{1f468}\u{fe0f}";

    let shown = show_hidden(hidden);

    assert_eq!(shown, "a\\u{200b}b\\u{e0149}c\\u{e0041}d\\u{202e}e\\u{1b}[8m\tf \u{1f468}\u{fe0f}");
}
