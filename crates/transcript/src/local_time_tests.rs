use super::*;

/// 2026-01-31T23:30:00Z.
const LATE: At = At(1_769_902_200_000);
const MINUTE: i64 = 60_000;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("the rule is valid")
}

#[test]
fn a_moment_is_shown_in_the_zone_of_the_user() {
    assert_eq!(moment_in(LATE, Some(&berlin())), "2026-02-01 00:30");
}

#[test]
fn without_a_known_zone_a_moment_is_marked_as_utc() {
    assert_eq!(moment_in(LATE, None), "2026-01-31 23:30 UTC");
    assert_eq!(period_in(LATE, LATE, None), "2026-01-31 23:30 UTC to 2026-01-31 23:30 UTC");
}

#[test]
fn a_moment_of_today_has_no_date() {
    let yesterday = At(LATE.0 - 31 * MINUTE);

    assert_eq!(recent_moment_in(LATE, At(LATE.0 + 5 * MINUTE), Some(&berlin())), "00:30");
    assert_eq!(recent_moment_in(yesterday, LATE, Some(&berlin())), "2026-01-31 23:59");
}

#[test]
fn a_period_names_its_zone() {
    let end = At(LATE.0 + 5 * MINUTE);

    assert_eq!(period_in(LATE, end, Some(&berlin())), "2026-02-01 00:30 to 2026-02-01 00:35 CET");
}

#[test]
fn a_time_outside_the_calendar_is_shown_as_it_is() {
    assert_eq!(moment_in(At(i64::MAX), Some(&berlin())), At(i64::MAX).to_string());
}
