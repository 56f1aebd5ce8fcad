use super::*;

fn texts(lines: &[StyledLine]) -> Vec<String> {
    lines.iter().map(|line| line.spans.iter().map(|span| span.content.to_string()).collect()).collect()
}

/// P4: the user sees what would change, and can tell it from the question.
#[test]
fn a_question_about_an_edit_shows_its_diff_behind_a_bar() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-old\n+? May exec run: ls\n";

    let lines = question_lines("May edit_file change a.rs?\n(the mode asks)", Some(diff), 60);

    assert_eq!(
        texts(&lines),
        [
            "? May edit_file change a.rs?",
            "  (the mode asks)",
            "  │ --- a/a.rs",
            "  │ +++ b/a.rs",
            "  │ @@ -1 +1 @@",
            "  │ -old",
            "  │ +? May exec run: ls",
        ]
    );
}

/// E8
#[test]
fn the_choices_of_the_agents_question_are_numbered_below_it() {
    let choices = ["SQLite".to_owned(), "Postgres".to_owned()];

    assert_eq!(
        question_with_choices(QuestionKind::Ask, "Which?\n", &choices),
        "Which?\n1. SQLite\n2. Postgres"
    );
    assert_eq!(question_with_choices(QuestionKind::Approval, "May it?", &choices), "May it?");
}
