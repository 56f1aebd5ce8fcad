use super::*;

#[test]
fn a_time_is_said_as_people_say_it() {
    let now = At(1_800_000_000_000);
    let before = |seconds: i64| ago(now, At(now.0 - seconds * 1_000));

    assert_eq!(before(-5), "just now");
    assert_eq!(before(59), "just now");
    assert_eq!(before(60), "1 min ago");
    assert_eq!(before(7_200), "2 h ago");
    assert_eq!(before(86_400), "1 day ago");
    assert_eq!(before(20 * 86_400), "20 days ago");
    assert_eq!(before(60 * 86_400), "2026-11-16");
}
