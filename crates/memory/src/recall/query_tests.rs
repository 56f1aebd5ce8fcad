use proptest::prelude::*;

use super::*;

fn for_journal(question: &str) -> String {
    RecallQuery::of(question).for_journal()
}

#[test]
fn words_that_every_question_has_are_left_out() {
    assert_eq!(for_journal("Which harbour did the pilots decide on?"), "harbour pilots decide");
    assert_eq!(for_journal("Wann war das mit der Fähre?"), "wann fähre");
}

#[test]
fn where_there_are_no_others_they_count() {
    assert_eq!(for_journal("Who are you?"), "who are you");
    assert_eq!(RecallQuery::of("?! …").terms, []);
}

#[test]
fn a_word_counts_once_in_whatever_form() {
    assert_eq!(for_journal("port ports Port"), "port");
}

#[test]
fn a_name_of_several_words_counts_as_a_whole_too() {
    assert_eq!(for_journal("osprey-41"), "osprey-41 osprey 41");
}

#[test]
fn scripts_without_spaces_are_looked_for_two_by_two() {
    assert_eq!(for_journal("数据库"), "数据 据库");
    assert_eq!(for_journal("港はどこですか"), "港は");
}

proptest! {
    #[test]
    fn no_question_makes_these_panic(question in any::<String>()) {
        let query = RecallQuery::of(&question);
        prop_assert!(query.terms.len() <= MAX_TERMS);
        prop_assert!(query.terms.iter().all(|term| !term.stems.is_empty()));
    }
}
