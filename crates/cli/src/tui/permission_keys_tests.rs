use longhaul_protocol::{QuestionId, QuestionKind};

use super::*;

fn question(kind: QuestionKind, choices: &[&str]) -> OpenQuestion {
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    OpenQuestion { id: QuestionId::from_bits(1), kind, text: "May it?".to_owned(), choices, diff: None }
}

fn answered(question: &OpenQuestion, code: KeyCode, modifiers: KeyModifiers) -> Option<String> {
    let answer = answer_key(question, KeyEvent::new(code, modifiers))?;
    Some(answer.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// P4
#[test]
fn one_key_answers_with_a_choice_of_the_question_and_with_nothing_else() {
    let full = question(QuestionKind::Approval, &["yes", "always", "project", "no"]);
    let old = question(QuestionKind::Approval, &[]);
    let plan = question(QuestionKind::Plan, &["yes", "no"]);
    let key = |question: &OpenQuestion, letter| answered(question, KeyCode::Char(letter), KeyModifiers::NONE);

    let words = ['y', 'a', 'p', 'n', 'Y', 'x'].map(|letter| key(&full, letter));
    assert_eq!(
        words,
        [Some("yes"), Some("always"), Some("project"), Some("no"), Some("yes"), None]
            .map(|word| word.map(str::to_owned))
    );
    assert_eq!((key(&old, 'y').is_some(), key(&old, 'a')), (true, None));
    assert_eq!((key(&plan, 'p'), key(&plan, 'y').is_some()), (None, true));
    assert_eq!(answered(&full, KeyCode::Char('y'), KeyModifiers::CONTROL), None);
    assert_eq!(answered(&full, KeyCode::Esc, KeyModifiers::NONE), None, "Esc ends the turn");
    assert_eq!(answered(&plan, KeyCode::Esc, KeyModifiers::NONE).as_deref(), Some("no"));
}

/// E8
#[test]
fn a_number_answers_a_question_of_the_agent_and_letters_begin_an_answer() {
    let asked = question(QuestionKind::Ask, &["yes", "SQLite"]);
    let open = question(QuestionKind::Ask, &[]);
    let key = |question: &OpenQuestion, letter| answered(question, KeyCode::Char(letter), KeyModifiers::NONE);

    assert_eq!(
        ['1', '2', '3', '0', 'y', 'n'].map(|letter| key(&asked, letter)),
        [Some("yes"), Some("SQLite"), None, None, None, None].map(|word| word.map(str::to_owned))
    );
    assert_eq!(['1', 'y', 'n'].map(|letter| key(&open, letter)), [None, None, None]);
    let text = |question| answer_lines(question, 1, 80).iter().map(ToString::to_string).collect::<String>();
    assert_eq!(text(&asked), "  1–2 choose  or type your answer");
    assert_eq!(text(&open), "  type your answer");
}
