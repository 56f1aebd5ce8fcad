use super::StreamedText;

/// E6.
#[test]
fn a_streamed_answer_is_shown_once() {
    let mut text = StreamedText::default();

    assert_eq!(text.push_delta("One "), "One ");
    assert_eq!(text.push_delta("two."), "two.");
    text.end_block();
    assert_eq!(text.push_delta("Three."), "\n\nThree.");

    assert_eq!((text.count_block("One two."), text.count_block("Three.")), (None, None));
    assert!(!text.end());
}

#[test]
fn missing_deltas_come_from_the_record() {
    let mut text = StreamedText::default();
    text.push_delta("One ");

    assert_eq!(text.count_block("One two.").as_deref(), Some("two."));
    assert_eq!(text.count_block("Three.").as_deref(), Some("\n\nThree."));
    assert!(!text.end());
    assert_eq!(text.count_block("Anew.").as_deref(), Some("Anew."));
}

#[test]
fn the_text_so_far_shows_only_what_is_new() {
    let mut text = StreamedText::default();
    text.push_delta("One ");

    assert_eq!(text.push_whole("One two").as_deref(), Some("two"));
    assert_eq!(text.push_whole("One two"), None);
    assert_eq!(text.push_whole("Another"), None);
}

#[test]
fn text_that_does_not_count_is_noticed() {
    let mut text = StreamedText::default();
    text.push_delta("One two");
    assert!(text.end());

    text.push_delta("One. Two");
    assert_eq!(text.count_block("One."), None);
    assert!(text.end());

    text.push_delta("One");
    assert_eq!(text.count_block("Other").as_deref(), Some("\n\nOther"));
    assert!(text.end());
    assert!(!text.end());
}
