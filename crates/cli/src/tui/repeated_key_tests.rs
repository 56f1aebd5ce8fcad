use super::*;

#[test]
fn only_the_same_key_within_two_seconds_is_a_second_press() {
    let start = Instant::now();
    let later = |millis| start + Duration::from_millis(millis);
    let mut first = FirstPress::default();

    assert!(!first.press(RepeatedKey::Interrupt, start));
    assert_eq!(first.hint(later(1_999)), Some("Ctrl-C again to leave"));
    assert_eq!(first.hint(later(2_000)), None);
    assert!(!first.press(RepeatedKey::Interrupt, later(2_000)), "too late, and so the first one again");
    assert!(!first.press(RepeatedKey::Escape, later(2_100)), "another key");
    assert!(first.press(RepeatedKey::Escape, later(2_200)));
    assert!(!first.is_pending(later(2_200)));
}
