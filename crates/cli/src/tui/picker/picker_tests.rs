use proptest::prelude::*;

use super::*;

fn choice(key: &str, line: &str, detail: &str) -> PickerItem {
    PickerItem { key: key.to_owned(), line: line.to_owned(), detail: detail.to_owned() }
}

fn sessions() -> Picker {
    let choices = vec![
        choice("main", "Fix the parser", "2 hours ago, ~/projects/parser"),
        choice("review", "Review of the storage layer", "yesterday, ~/projects/store"),
        choice("notes", "Ärger mit dem Drucker", "last week, ~"),
    ];
    Picker::new("Resume a session", choices)
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn press_all(picker: &mut Picker, text: &str) {
    for character in text.chars() {
        assert_eq!(picker.press(key(KeyCode::Char(character))), PickerOutcome::Nothing);
    }
}

fn shown(picker: &Picker, width: u16, height: u16) -> Vec<String> {
    picker.lines(width, height).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

#[test]
fn a_part_of_each_word_in_any_order_finds_a_row() {
    let mut picker = sessions();

    press_all(&mut picker, "store REV");

    assert_eq!(
        shown(&picker, 60, 5),
        [
            "Resume a session  1 of 3",
            "Find: store REV",
            "> Review of the storage layer  yesterday, ~/projects/store"
        ]
    );
    assert_eq!(picker.press(key(KeyCode::Enter)), PickerOutcome::Chosen(1));
}

#[test]
fn the_marked_row_stays_marked_while_the_list_gets_shorter() {
    let mut picker = sessions();

    picker.press(key(KeyCode::Down));
    press_all(&mut picker, "projects");

    assert_eq!(picker.press(key(KeyCode::Enter)), PickerOutcome::Chosen(1));
}

#[test]
fn the_list_goes_round() {
    let mut picker = sessions();

    picker.press(key(KeyCode::Up));
    assert_eq!(picker.press(key(KeyCode::Enter)), PickerOutcome::Chosen(2));

    picker.press(key(KeyCode::Down));
    assert_eq!(picker.press(key(KeyCode::Enter)), PickerOutcome::Chosen(0));
}

#[test]
fn nothing_is_chosen_where_nothing_matches() {
    let mut picker = sessions();

    press_all(&mut picker, "zzz");

    assert_eq!(shown(&picker, 40, 5)[2], "Nothing matches.");
    assert_eq!(picker.press(key(KeyCode::Enter)), PickerOutcome::Nothing);
    picker.press(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
    assert_eq!(shown(&picker, 40, 5)[0], "Resume a session  3 of 3");
    assert_eq!(picker.press(key(KeyCode::Esc)), PickerOutcome::Cancelled);
}

#[test]
fn it_works_in_a_very_small_terminal() {
    let mut picker = sessions();

    picker.press(key(KeyCode::Down));

    assert_eq!(
        shown(&picker, 20, 5),
        ["Resume a se…  3 of 3", "Find:", "  Fix the parser", "> Review of the sto…", "  Ärger mit dem Dru…"]
    );
    assert_eq!(shown(&picker, 20, 3)[2], "> Review of the sto…");
}

#[test]
fn the_marked_row_is_seen_in_a_long_list() {
    let choices = (0..1_000).map(|number| choice("", &format!("session {number}"), "")).collect();
    let mut picker = Picker::new("Resume", choices);

    for _ in 0..40 {
        picker.press(key(KeyCode::PageDown));
        picker.press(key(KeyCode::Down));
    }

    assert!(shown(&picker, 30, 8).contains(&"> session 440".to_owned()));
    picker.press(key(KeyCode::End));
    assert_eq!(shown(&picker, 30, 8)[7], "> session 999");
}

proptest! {
    #[test]
    fn whatever_is_typed_the_lines_fit(
        lines in prop::collection::vec("\\PC{0,40}", 0..12),
        typed in "\\PC{0,40}",
        moves in 0..30_usize,
        width in 0..50_u16,
        height in 0..12_u16,
    ) {
        let choices = lines.iter().map(|line| choice("key", line, line)).collect();
        let mut picker = Picker::new("A title that is rather long", choices);

        for _ in 0..moves {
            picker.press(key(KeyCode::Down));
        }
        picker.paste(&typed);
        picker.press(key(KeyCode::Backspace));

        let lines = picker.lines(width, height);
        prop_assert!(lines.len() <= usize::from(height));
        for line in lines {
            prop_assert!(line.width() <= usize::from(width), "{line:?}");
        }
    }
}
