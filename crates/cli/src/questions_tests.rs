use super::*;

#[test]
fn yes_and_no_are_understood_as_people_type_them() {
    assert_eq!(["y", " YES\n", "n", "No"].map(yes_or_no), [Some("yes"), Some("yes"), Some("no"), Some("no")]);
    assert_eq!(["", "yes, but later", "nope"].map(yes_or_no), [None, None, None]);
}

/// P4: an answer that is not on disk has settled nothing.
#[test]
fn only_what_is_saved_or_settled_by_others_is_asked_no_more() {
    let (key, question, known) = ("a".to_owned(), "01".to_owned(), "already answered (yes)".to_owned());

    assert!(is_settled(&Ok(())));
    assert!(is_settled(&Err(Error::NoSuchQuestion { key, question, known })));
    assert!(!is_settled(&Err(Error::Suspended)));
}

/// P4: a slip of the finger is no answer; a text is, and so is a number where the choices are numbers.
#[test]
fn the_number_of_no_choice_is_not_taken_for_an_answer() {
    let ask = |choices: &[&str]| OpenQuestion {
        id: QuestionId::generate(),
        kind: QuestionKind::Ask,
        text: "Which?".to_owned(),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        diff: None,
    };
    let (three, ports, none) = (ask(&["red", "green", "blue"]), ask(&["80", "443"]), ask(&[]));

    let refused = "there is no choice 4; answer 1 to 3, or in your own words";
    assert_eq!(three.unknown_choice(" 4"), Some(refused.to_owned()));
    assert!(three.unknown_choice("0").is_some());
    assert_eq!(["3", "4 of them", "violet"].map(|typed| three.unknown_choice(typed)), [None, None, None]);
    assert_eq!((ports.unknown_choice("8080"), none.unknown_choice("4")), (None, None));
}

/// P4: what somebody approves must not end in something that they did not see.
#[test]
fn a_question_is_shown_whole_and_can_not_drive_a_terminal() {
    let command = format!("{}\u{1b}[2J; rm -r work", "echo quiet; ".repeat(500));
    let text = format!("May exec run this?\n{command}\n");

    let shown = question_text(&text);

    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.ends_with("\u{fffd}[2J; rm -r work") && shown.contains("\n  echo quiet"), "{shown}");
    assert_eq!(shown.matches("echo quiet; ").count(), 500);
}
