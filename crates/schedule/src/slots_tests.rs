use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn at(text: &str) -> At {
    At(text.parse::<Timestamp>().unwrap().as_millisecond())
}

fn cron(line: &str, zone_name: &str) -> Slots {
    Slots::parse_cron(line, zone(zone_name)).unwrap()
}

fn next(slots: &Slots, after: &str, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut after = at(after);
    while found.len() < count {
        after = slots.next_after(after).unwrap();
        found.push(Timestamp::from_millisecond(after.0).unwrap().to_string());
    }
    found
}

/// W2: at a fixed time that the clock jumps over, the run is at the end of the gap; an hour that comes twice has it once.
#[test]
fn a_fixed_time_runs_once_on_both_days_of_a_daylight_change() {
    let nightly = cron("30 2 * * *", "Europe/Berlin");

    let spring = next(&nightly, "2027-03-27T12:00:00Z", 2);
    let autumn = next(&nightly, "2027-10-30T12:00:00Z", 2);

    assert_eq!(spring, ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]);
    assert_eq!(autumn, ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"]);
}

/// W2: a run beside the gap is not repeated at its end, and several runs in the gap are one.
#[test]
fn runs_in_a_gap_are_one_and_a_run_before_it_is_not_repeated() {
    let before = cron("40 1 * * *", "Europe/Andorra");
    let within = cron("14,38,50 2 * * *", "Europe/Berlin");

    assert_eq!(next(&before, "2027-03-27T12:00:00Z", 2), ["2027-03-28T00:40:00Z", "2027-03-28T23:40:00Z"]);
    assert_eq!(next(&within, "2027-03-27T12:00:00Z", 2), ["2027-03-28T01:00:00Z", "2027-03-29T00:14:00Z"]);
}

/// W2: in Havana the clock goes from 0:00 to 1:00. The hour from 1:00 on is there in full, and is no other hour.
#[test]
fn a_day_without_midnight_has_its_other_hours() {
    let at_one = cron("* 1 * * */4", "America/Havana");
    let each_eighth = cron("*/25 */8 * * *", "America/Havana");

    assert_eq!(next(&at_one, "2027-03-14T03:39:15Z", 2), ["2027-03-14T05:00:00Z", "2027-03-14T05:01:00Z"]);
    assert_eq!(next(&each_eighth, "2026-03-08T04:00:00Z", 1), ["2026-03-08T12:00:00Z"]);
}

/// W2: a line with `*` follows the hours that pass.
#[test]
fn a_run_each_half_hour_goes_on_through_a_daylight_change() {
    let half_hours = cron("*/30 * * * *", "Europe/Berlin");

    let autumn = next(&half_hours, "2027-10-31T00:15:00Z", 4);

    let expected =
        ["2027-10-31T00:30:00Z", "2027-10-31T01:00:00Z", "2027-10-31T01:30:00Z", "2027-10-31T02:00:00Z"];
    assert_eq!(autumn, expected);
}

#[test]
fn an_interval_counts_from_the_second_in_which_the_schedule_was_made() {
    let slots = Slots::Every { interval: Interval::from_seconds(90), anchor: at("2027-01-01T00:00:00.700Z") };

    assert_eq!(next(&slots, "2027-01-01T00:00:00.700Z", 2), ["2027-01-01T00:01:30Z", "2027-01-01T00:03:00Z"]);
    assert_eq!(next(&slots, "2026-01-01T00:00:00Z", 1), ["2027-01-01T00:01:30Z"], "none before it was made");
    assert_eq!(next(&slots, "2027-01-01T00:01:30Z", 1), ["2027-01-01T00:03:00Z"]);
}

#[test]
fn a_cron_line_has_five_fields_and_fires_at_some_time() {
    let reason = |line: &str| Slots::parse_cron(line, TimeZone::UTC).unwrap_err().to_string();

    assert_eq!(
        reason("0 7 * *"),
        "cron \"0 7 * *\" has 4 fields; it needs five: minute hour day month weekday"
    );
    assert_eq!(
        reason("0 0 7 * * 1"),
        "cron \"0 0 7 * * 1\" has 6 fields; it needs five: minute hour day month weekday"
    );
    assert_eq!(reason("0 0 30 2 *"), "cron \"0 0 30 2 *\" never fires");
    assert!(
        reason("@dayly").starts_with("there is no nickname \"@dayly\"; there are @hourly, @daily"),
        "{}",
        reason("@dayly")
    );
    assert!(Slots::parse_cron("@daily", TimeZone::UTC).is_ok());
    assert!(Slots::parse_cron("0 0 29 2 *", TimeZone::UTC).is_ok());
}

#[test]
fn a_wrong_field_of_a_cron_line_is_named_with_what_it_takes() {
    let cases = [
        ("61 * * * *", "minute \"61\" is none; use 0 to 59"),
        ("0 25 * * *", "hour \"25\" is none; use 0 to 23"),
        ("0 7 0 * *", "day \"0\" is none; use 1 to 31"),
        ("0 7 * FOO *", "month \"FOO\" is none; use 1 to 12 or JAN to DEC"),
        ("0 7 * * 8", "weekday \"8\" is none; use 0 to 7 or SUN to SAT"),
        ("0 7 * * 1-FRY", "weekday \"1-FRY\" is none; use 0 to 7 or SUN to SAT"),
    ];
    for (line, expected) in cases {
        let reason = Slots::parse_cron(line, TimeZone::UTC).unwrap_err().to_string();

        assert_eq!(reason, format!("cron {line:?} is not valid: {expected}, with `*`, `,`, `-` and `/`"));
    }
}

/// In 2011, Apia left out the 30th of December.
#[test]
fn the_last_slot_is_one_that_the_search_forward_gives_also_where_a_day_is_missing() {
    let slots = cron("0 12 30 12 *", "Pacific/Apia");
    let (after, until) = (at("2010-06-01T00:00:00Z"), at("2012-06-01T00:00:00Z"));

    let last = slots.last_until(after, until).unwrap();

    let mut expected = after;
    while let Some(slot) = slots.next_after(expected).filter(|slot| *slot <= until) {
        expected = slot;
    }
    assert_eq!(last, expected);
}

fn any_slots() -> impl Strategy<Value = Slots> {
    let lines = prop::sample::select(vec![
        "* * * * *",
        "*/7 * * * *",
        "0 * * * *",
        "30 2 * * *",
        "15 1-3 * * *",
        "0 7 * * 1-5",
        "0 0 1 * *",
        "0 0 29 2 *",
        "59 23 31 12 *",
        "*/5 2 * 3,10 0",
        "0 0 13 * 5",
        "* * * 1-6 *",
    ]);
    let zones = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
    ]);
    let by_cron = (lines, zones).prop_map(|(line, zone)| cron(line, zone));
    let by_interval = (1_u64..200_000, 0_i64..2_000_000_000_000).prop_map(|(seconds, anchor)| Slots::Every {
        interval: Interval::from_seconds(seconds),
        anchor: At(anchor),
    });
    let once = (1_600_000_000_i64..2_000_000_000).prop_map(|second| Slots::Once { at: At(second * 1_000) });
    prop_oneof![3 => by_cron, 1 => by_interval, 1 => once]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_slot_is_after_its_start_and_none_is_left_out(
        slots in any_slots(),
        start in 1_700_000_000_000_i64..1_900_000_000_000,
        within in 0_i64..20_000_000,
    ) {
        let Some(first) = slots.next_after(At(start)) else { return Ok(()) };
        prop_assert!(first.0 > start && first.0 % 1_000 == 0);

        let between = At(start + within % (first.0 - start));

        prop_assert_eq!(slots.next_after(between), Some(first), "the same slot from a later start");
    }

    #[test]
    fn the_last_slot_of_a_span_has_no_slot_after_it(
        slots in any_slots(),
        start in 1_700_000_000_000_i64..1_900_000_000_000,
        span in prop_oneof![0_i64..100_000, 0_i64..100_000_000, 0_i64..100_000_000_000],
    ) {
        let (after, until) = (At(start), At(start + span));

        let last = slots.last_until(after, until);

        match last {
            Some(last) => {
                prop_assert!(after < last && last <= until);
                prop_assert_eq!(slots.next_after(At(last.0 - 1)), Some(last), "it is a slot");
                prop_assert!(slots.next_after(last).is_none_or(|next| next > until));
            }
            None => prop_assert!(slots.next_after(after).is_none_or(|next| next > until)),
        }
    }
}
