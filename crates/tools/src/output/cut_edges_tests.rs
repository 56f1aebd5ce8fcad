use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const SECRET: &str = "sk-0123456789";

fn redact() -> Redact {
    Arc::new(|text: &str| text.replace(SECRET, "[redacted]"))
}

fn between(before: &str, shown: &str, after: &str) -> String {
    text_between_cuts(before.as_bytes(), shown.as_bytes(), after.as_bytes(), &redact()).text
}

/// C8
#[test]
fn of_what_goes_through_a_cut_nothing_shows() {
    assert_eq!(between("a sk-01234", "56789 b", " c"), " b");
    assert_eq!(between("a ", "b sk-01234", "56789 c"), "b ");
    assert_eq!(between("a sk-0", "1234", "56789 c"), "");
    assert_eq!(between("a sk-0123456789", " b sk-0123456789", " c"), " b [redacted]");
    assert_eq!(between("a \u{1b}[3", "1mred\u{1b}", "[0m c"), "red");
    assert_eq!(between("one\n", "two\n", "three\n"), "two\n");
    assert_eq!(between("x \n\u{1b}", "[3", "1m10%\r100%\n"), "");
}

/// K13
#[test]
fn a_character_that_goes_through_a_cut_does_not_show() {
    let bytes = "aé日🦀b".as_bytes();
    for start in 0..bytes.len() {
        for end in start..bytes.len() {
            let text = text_between_cuts(&bytes[..start], &bytes[start..end], &bytes[end..], &redact()).text;
            assert!("aé日🦀b".contains(&text), "{start}..{end}: {text:?}");
        }
    }
}

proptest! {
    /// C8, K13: wherever a text is cut, what is shown of it is a part of the whole as it would be shown, and where nothing goes
    /// on beyond the cuts, the parts are the whole.
    #[test]
    fn what_is_shown_is_a_part_of_the_whole(
        pieces in prop::collection::vec(
            prop_oneof![Just(SECRET), Just("\u{1b}[31m"), Just("é日"), Just("\n"), Just("x y "), Just("10%\r100%\n"), Just("sk-0")],
            0..12,
        ),
        one in 0_usize..200,
        other in 0_usize..200,
    ) {
        let bytes = pieces.concat().into_bytes();
        let (one, other) = (one.min(bytes.len()), other.min(bytes.len()));
        let (start, end) = (one.min(other), one.max(other));
        let redact = redact();
        let whole = redact(&plain_text(&bytes));

        let shown = text_between_cuts(&bytes[..start], &bytes[start..end], &bytes[end..], &redact);
        let first = text_between_cuts(&[], &bytes[..end], &bytes[end..], &redact);
        let rest = text_between_cuts(&bytes[..end], &bytes[end..], &[], &redact);

        prop_assert!(whole.contains(&shown.text), "{:?} of {whole:?}", shown.text);
        if first.ends_well {
            prop_assert_eq!(first.text + &rest.text, whole);
        }
    }
}
