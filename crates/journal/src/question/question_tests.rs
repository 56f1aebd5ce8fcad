use proptest::prelude::*;

use super::*;

fn ask(question: &str) -> Question {
    Question::parse(question, At(1_795_000_000_000))
}

#[test]
fn words_that_every_question_has_are_left_out() {
    assert_eq!(ask("Which harbour did the pilots decide on?").stems, ["harbour", "pilot", "decid"]);
    assert_eq!(ask("Warum war das mit der Fähre?").stems, ["fahr"]);
}

#[test]
fn where_there_are_no_others_they_count() {
    assert_eq!(ask("Who are you?").stems, ["who", "are", "you"]);
    assert_eq!(ask("?! …").stems, [""; 0]);
}

#[test]
fn a_word_counts_once_in_whatever_form() {
    assert_eq!(ask("port ports Port").stems, ["port"]);
}

#[test]
fn scripts_without_spaces_are_looked_for_two_by_two() {
    assert_eq!(ask("数据库").stems, ["数据", "据库"]);
    assert_eq!(ask("港はどこですか").stems, ["港は"]);
    assert_eq!(ask("库").stems, ["库"]);
}

#[test]
fn a_question_may_ask_when() {
    assert!(
        ["When did it fail?", "Since when?", "On which day was it?", "Wann war das?"]
            .iter()
            .all(|text| ask(text).asks_when)
    );
    assert!(!["What happens when it fails?", "Which port?"].iter().any(|text| ask(text).asks_when));
}

#[test]
fn a_question_names_a_person() {
    let question = ask("What did Mira want for the harbour?");

    assert!(question.names("mira"));
    assert!(!question.names("jonas") && !question.names(""));
}

#[test]
fn what_only_asks_tells_nothing() {
    assert!(only_asks("Which port? And why v1.2?"));
    assert!(!only_asks("Take 4037. Is that all right?"));
    assert!(!only_asks("Take 4037"));
}

proptest! {
    #[test]
    fn no_question_makes_these_panic(question in any::<String>()) {
        let parsed = ask(&question);
        prop_assert!(parsed.stems.len() <= MAX_STEMS);
        prop_assert!(parsed.stems.iter().all(|stem| !stem.is_empty()));
        only_asks(&question);
    }
}
