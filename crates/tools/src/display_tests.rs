use super::*;

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!(truncate_str("aéb", 2), "a");
    assert_eq!(truncate_str("aéb", 9), "aéb");
}
