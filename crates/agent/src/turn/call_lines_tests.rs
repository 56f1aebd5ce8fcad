use super::*;

fn choices(originals: &[&str]) -> ShownChoices {
    ShownChoices::new(originals.iter().map(|choice| (*choice).to_owned()).collect())
}

/// E1: the server gets its own word, whatever it looks like to the user.
#[test]
fn a_choice_that_is_shown_otherwise_is_the_servers_word() {
    let (long, other) = ("x".repeat(300), format!("{}y", "x".repeat(299)));
    let choices = choices(&["one\nline", &long, &other, "plain"]);
    let (offered, _) = choices.offered();

    assert_eq!(offered.len(), 4);
    assert!(offered.iter().all(|shown| !shown.contains('\n') && shown.chars().count() < 220), "{offered:?}");
    let originals: Vec<&str> = offered.iter().map(|shown| choices.original(shown)).collect();
    assert_eq!(originals, ["one\nline", &long, &other, "plain"]);
    assert_eq!(choices.original("something else"), "something else");
}

/// E1
#[test]
fn more_choices_than_keys_are_listed_in_the_text() {
    let names: Vec<String> = (1..=12).map(|number| format!("size {number}")).collect();
    let choices = ShownChoices::new(names);

    let (offered, text) = choices.offered();

    assert!(offered.is_empty() && text.contains("\n- size 12"), "{text}");
    assert_eq!(choices.original("size 12"), "size 12");
}
