//! Random keys and pastes.

use proptest::prelude::*;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::super::chips::clean;
use super::*;

#[derive(Debug, Clone)]
enum Step {
    Key(KeyEvent),
    Paste(String),
    Show(u16, u16),
}

fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => any::<char>(),
        4 => prop::sample::select("ab c/@\"\\.漢👍\u{301}\u{200d}🇩\u{600}\u{10_0000}\u{10_0001}".chars().collect::<Vec<_>>()),
    ]
}

fn pasted() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(character(), 0..40).prop_map(String::from_iter);
    (text, prop_oneof![Just("\n"), Just("\r\n"), Just("\t"), Just("")], 1..60_usize)
        .prop_map(|(text, end, times)| format!("{text}{end}").repeat(times))
}

fn pressed() -> impl Strategy<Value = KeyEvent> {
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Esc,
        KeyCode::PageUp,
    ]);
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SHIFT,
    ]);
    let letters =
        prop::sample::select("abcdefhijkmnpuwy".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let code = prop_oneof![4 => named, 3 => character().prop_map(KeyCode::Char), 2 => letters];
    (code, modifiers).prop_map(|(code, modifiers)| KeyEvent::new(code, modifiers))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => pressed().prop_map(Step::Key),
        2 => pasted().prop_map(Step::Paste),
        3 => (0..40_u16, 0..8_u16).prop_map(|(width, rows)| Step::Show(width, rows)),
    ]
}

/// The columns that a line takes when it is drawn, character by character.
fn drawn(line: &Line<'_>) -> usize {
    let columns = |span: &Span<'_>| span.content.graphemes(true).map(UnicodeWidthStr::width).sum::<usize>();
    line.spans.iter().map(columns).sum()
}

proptest! {
    #[test]
    fn whatever_is_pressed_it_fits_and_the_cursor_is_in_it(steps in prop::collection::vec(step(), 1..80)) {
        let mut typing = typing();

        for step in steps {
            match step {
                Step::Key(key) => drop(typing.press(key)),
                Step::Paste(text) => typing.paste(&text),
                Step::Show(width, rows) => {
                    let shown = typing.render("> ", width, rows);

                    prop_assert!(shown.lines.len() <= usize::from(rows));
                    prop_assert!(shown.completions.len() <= 6);
                    for line in shown.lines.iter().chain(&shown.completions) {
                        prop_assert!(drawn(line) <= usize::from(width), "{width}: {line:?}");
                    }
                    let is_inside = shown.cursor.0 < width && usize::from(shown.cursor.1) < shown.lines.len();
                    prop_assert!(is_inside || width == 0 || rows == 0, "{:?} {width}", shown.cursor);
                }
            }
        }
        prop_assert_eq!(typing.text.size_is_right(), Ok(()));
    }

    #[test]
    fn what_is_entered_is_all_that_was_typed_and_pasted(
        pieces in prop::collection::vec(prop_oneof![pasted().prop_map(Ok), character().prop_map(Err)], 1..30),
    ) {
        let mut typing = typing();
        let mut expected = String::new();

        for piece in pieces {
            match piece {
                Ok(text) => {
                    typing.paste(&text);
                    expected.push_str(&clean(&text));
                }
                Err(character) if !character.is_control() => {
                    typing.press(key(KeyCode::Char(character)));
                    expected.push(character);
                }
                Err(_) => {}
            }
        }
        // Enter would take an entry of an open list.
        typing.type_all(".").keys(&[key(KeyCode::Esc)]);

        let entered = typing.press(key(KeyCode::Enter));
        let KeyOutcome::Entered(entered) = entered else { panic!("{entered:?}") };
        // A line break keeps a pasted mark from running a command.
        let entered = if expected.starts_with('!') { entered.trim_start_matches('\n') } else { &entered };
        prop_assert_eq!(entered, format!("{expected}."));
    }
}

impl InputText {
    /// Whether what was counted is what is there.
    fn size_is_right(&self) -> Result<(), (usize, usize)> {
        let (counted, there) = (self.counted(), self.expanded().len());
        if counted == there { Ok(()) } else { Err((counted, there)) }
    }
}
