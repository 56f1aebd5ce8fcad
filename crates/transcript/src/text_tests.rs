use super::*;

#[test]
fn times_are_said_as_people_say_them() {
    let said = [150, 1_000, 89_001, 600_000, 7_260_000].map(format_duration);

    assert_eq!(said, ["0.2 s", "1 s", "90 s", "10 min 0 s", "2 h 1 min"]);
}

#[test]
fn counts_agree_with_their_nouns() {
    let said =
        [(1, "entry"), (2, "entry"), (0, "task"), (1_234, "byte")].map(|(n, noun)| format_count(n, noun));

    assert_eq!(said, ["1 entry", "2 entries", "0 tasks", "1,234 bytes"]);
}

#[test]
fn what_comes_from_elsewhere_can_not_steer_the_terminal() {
    assert_eq!(sanitize("a\u{1b}[2J\r\nb\tc\u{7}"), "a\u{fffd}[2J\nb\tc\u{fffd}");
}
