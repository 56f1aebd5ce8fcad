use super::*;
use crate::{Config, redactor};

fn shown(reader: Audience) -> OutputFilter {
    let mut config = Config::at("/nowhere");
    config.settings.secrets.patterns = vec!["sk-[a-z0-9]{8}".to_owned()];
    OutputFilter::new(&redactor(&config).unwrap(), reader)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_secret_is_taken_out_wherever_it_is_cut() {
    let printed = "key sk-abcd1234, done ü\n";

    for cut in 0..printed.len() {
        let mut shown = shown(Audience::Program);
        let mut whole = shown.push(&printed.as_bytes()[..cut]);
        whole.extend(shown.push(&printed.as_bytes()[cut..]));
        whole.extend(shown.finish());

        assert_eq!(text(whole), "key [redacted], done ü\n", "cut at {cut}");
    }
}

#[test]
fn a_secret_is_not_shown_by_half_where_the_part_that_is_shown_begins_or_ends() {
    let printed = b"key sk-abcd1234, done";

    for cut in 0..printed.len() {
        let mut later = shown(Audience::Program);
        later.lead_in(&printed[..cut]);
        let mut second = later.push(&printed[cut..]);
        second.extend(later.finish());
        let mut earlier = shown(Audience::Program);
        let mut first = earlier.push(&printed[..cut]);
        first.extend(earlier.finish_before(&printed[cut..]));

        let (first, second) = (text(first), text(second));
        assert!("key [redacted], done".starts_with(&first), "{first:?} until {cut}");
        assert!("key [redacted], done".ends_with(&second), "{second:?} from {cut} on");
    }
}

#[test]
fn a_program_gets_bytes_as_they_are_and_a_person_what_is_safe() {
    let printed = b"a\xffb\x1b[31m\rc\xc3";
    let all = |reader| {
        let mut shown = shown(reader);
        let mut bytes = shown.push(printed);
        bytes.extend(shown.finish());
        bytes
    };

    assert_eq!(all(Audience::Program), printed);
    let replace_controls = |text: &str| text.replace('\r', "").replace('\x1b', "\u{fffd}");
    assert_eq!(text(all(Audience::Person(replace_controls))), "a\u{fffd}b\u{fffd}[31mc\u{fffd}");
}

#[test]
fn where_output_was_dropped_the_beginning_of_a_secret_is_none() {
    let mut shown = shown(Audience::Program);

    let before = shown.push(b"key sk-abc");
    let cut = shown.finish_before_gap();
    let after = [shown.push(b"later"), shown.finish()].concat();

    assert_eq!([text(before), text(cut), text(after)], ["key ", "[redacted]", "later"]);
}
