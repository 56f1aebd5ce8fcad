//! Questions that a letter answers, and lists to choose from.

use super::*;

/// P4: a user who is about to type a word when the question appears answers nothing by its first letter.
#[test]
fn a_letter_that_begins_a_word_is_no_answer() {
    let much_later = || Instant::now() + Duration::from_secs(60);
    let outcomes = ["pl", "p", "pp", "p\n", "yy", "y\u{8}"].map(|keys| {
        let mut seen = Seen::new((70, 14));
        let asked = question("May it?");
        let id = asked_id(&asked).to_string();
        seen.see(asked);
        let keys = keys.chars().map(|letter| match letter {
            '\n' => KeyCode::Enter,
            '\u{8}' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        });
        let pressed: Vec<_> =
            keys.map(|key| seen.view.press(KeyEvent::new(key, KeyModifiers::NONE))).collect();
        let at_once = format!("{:?}", pressed.last()).replace(&id, "ID");
        let due = format!("{:?}", seen.view.take_due_answer(much_later())).replace(&id, "ID");
        (at_once, due, seen.view.typed_text())
    });

    let nothing = || "Some(Nothing)".to_owned();
    let line = |word: &str| format!("Some(Line(Line(\"/answer ID {word}\")))");
    let none = || "None".to_owned();
    assert_eq!(outcomes[0], (nothing(), none(), "pl".to_owned()));
    assert_eq!(outcomes[1], (nothing(), "Some(Line(\"/answer ID project\"))".to_owned(), String::new()));
    assert_eq!(outcomes[2], (line("project"), none(), String::new()));
    assert_eq!(outcomes[3], (line("project"), none(), String::new()));
    assert_eq!(outcomes[4], (line("yes"), none(), String::new()));
    assert_eq!(outcomes[5], (nothing(), none(), String::new()));
}

/// P4: a letter for one question never answers the next one.
#[test]
fn a_held_letter_does_not_answer_another_question() {
    let mut seen = Seen::new((70, 14));
    let first = question("May it?");
    let id = asked_id(&first);
    seen.see(first).see(question("May it, too?"));
    seen.types("y");

    seen.see(EventKind::Answered { id, answer: None, by: None });

    assert_eq!(seen.view.take_due_answer(Instant::now() + Duration::from_secs(60)), None);
}

/// `/model`: the model in use comes first, and each has its source beside it.
#[test]
fn models_are_picked_from_a_list() {
    let mut seen = Seen::new((70, 14));
    let item = |line: &str, detail: &str| PickerItem {
        key: String::new(),
        line: line.to_owned(),
        detail: detail.to_owned(),
    };
    let choices = vec![
        item("anthropic/claude-sonnet-4-5", "in use"),
        item("openai/gpt-5", "OPENAI_API_KEY is set"),
        item("ollama/qwen3:8b", "runs on this machine"),
    ];
    let title = "Which model? /model NAME takes any other.".to_owned();
    seen.update(ScreenUpdate::Pick { title, choices, answer: oneshot::channel().0 });
    let all = seen.screen();
    seen.types("qwe");
    let found = seen.screen();

    insta::assert_snapshot!("models_in_a_list", all);
    insta::assert_snapshot!("models_in_a_list_that_is_searched", found);
}

/// What is sent along stands in the line as it was typed or dropped, and a long paste as one chip.
#[test]
fn what_is_attached_stands_in_the_input_line() {
    let mut seen = Seen::new((70, 10));
    seen.types("compare @src/main.rs with ");
    seen.view.paste("/home/me/a\\ cat.png");
    seen.types(" and ");
    seen.view.paste(&"line\n".repeat(120));

    let screen = seen.screen();

    assert!(
        screen.contains("> compare @src/main.rs with /home/me/a\\ cat.png and\n  [pasted 120 lines]"),
        "{screen}"
    );
    insta::assert_snapshot!("attachments_in_the_input_line", screen);
}

/// What memory costs is in the last row where there is room, and leaves it first.
#[test]
fn the_calls_of_memory_are_in_the_last_row() {
    let calls = MemoryCalls { calls: 2, cost: Some(0.0031) };
    let rows = [110, 70].map(|width| {
        let mut seen = Seen::new((width, 10));
        seen.update(ScreenUpdate::MemoryCalls(calls));
        seen.screen()
    });

    assert!(rows[0].contains("saved · memory: 2 model calls, $0.0031"), "{}", rows[0]);
    assert!(!rows[1].contains("memory") && rows[1].contains("saved"), "{}", rows[1]);
}

/// T3: Up in the empty field asks for it back; what is returned comes before what is typed, and in its order.
#[test]
fn an_input_that_waits_returns_to_the_input_field() {
    let mut seen = Seen::new((70, 12));
    seen.see(EventKind::TurnStarted { cause: None });
    seen.types("first\n");
    seen.types("second\n");
    let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);

    assert_eq!(seen.view.press(up), ViewRequest::Line(LineEvent::TakeBack));
    seen.types("third");
    for line in ["second", "first"] {
        seen.update(ScreenUpdate::TakenBack(line.to_owned()));
    }
    let screen = seen.screen();

    assert!(screen.contains("> first\n  second\n  third"), "{screen}");
    assert!(!screen.contains("+ "), "{screen}");
}
