use super::*;

fn spec() -> ScheduleSpec {
    ScheduleSpec::new("look", "What is new?")
}

fn reason(spec: &ScheduleSpec) -> String {
    Timing::check_new(spec, At(1_800_000_000_000)).unwrap_err().to_string()
}

#[test]
fn a_mistake_in_a_schedule_is_one_clear_line() {
    let every = |text: &str| ScheduleSpec { every: Some(text.to_owned()), ..spec() };
    let cases = [
        (spec(), "it has no time; set one of cron, every and at"),
        (
            ScheduleSpec { at: Some("2030-01-01T00:00".into()), ..every("1h") },
            "it has every and at; set one of cron, every and at",
        ),
        (every("0s"), "every \"0s\" is too short; the shortest is 1s"),
        (
            every("5"),
            "every \"5\" is not a duration; use a number with s, m, h or d, such as 90s, 30m, 2h, 1d",
        ),
        (
            ScheduleSpec { grace: "soon".into(), ..every("1h") },
            "grace \"soon\" is not a duration; use a number with s, m, h or d, such as 90s, 30m, 2h, 1d",
        ),
        (
            ScheduleSpec { cron: Some("0 7 * * *".into()), zone: Some("Europe/Berlinn".into()), ..spec() },
            "there is no time zone \"Europe/Berlinn\" on this system; use a name such as Europe/Berlin or UTC",
        ),
        (
            ScheduleSpec { at: Some("2026-12-24T18:00".into()), ..spec() },
            "at \"2026-12-24T18:00\" is in the past; it would never fire",
        ),
        (
            ScheduleSpec { at: Some("tomorrow".into()), ..spec() },
            "at \"tomorrow\" is not a time; write it as 2026-12-24T18:00 or 2026-12-24T18:00:00+01:00",
        ),
        (ScheduleSpec { prompt: "  ".into(), ..every("1h") }, "the prompt is empty"),
        (
            ScheduleSpec { prompt: "x".repeat(1 << 20), ..every("1h") },
            "the prompt has 1048576 bytes, more than 128 KiB; put the text into a file and let the prompt name it",
        ),
        (
            ScheduleSpec { name: "a/b".into(), ..every("1h") },
            "the name \"a/b\" is not valid; use up to 64 letters, digits, - _ and .",
        ),
        (ScheduleSpec { cost_per_run: -1.0, ..every("1h") }, "cost_per_run must be 0 or more"),
        (ScheduleSpec { cost_per_run: f64::NAN, ..every("1h") }, "cost_per_run must be 0 or more"),
    ];
    for (spec, expected) in cases {
        assert_eq!(reason(&spec), expected);
    }
}

#[test]
fn a_single_time_may_have_seconds_and_a_zone_of_its_own() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let utc = |text: &str| format_slot(parse_time(text, &berlin).unwrap());

    assert_eq!(utc("2026-12-24T18:00"), "2026-12-24T17:00:00Z");
    assert_eq!(utc("2026-12-24 18:00:30"), "2026-12-24T17:00:30Z");
    assert_eq!(utc("2026-12-24T18:00:00Z"), "2026-12-24T18:00:00Z");
    assert_eq!(utc("2026-12-24T18:00+05:30"), "2026-12-24T12:30:00Z");
    assert_eq!(utc("2026-12-24T18:00[America/New_York]"), "2026-12-24T23:00:00Z");
    assert_eq!(utc("2027-03-28T02:30"), "2027-03-28T01:30:00Z", "the clock skips it: as RFC 5545 has it");
    assert!(parse_time("2026-12-24", &berlin).is_err(), "a date is no time");
}

#[test]
fn the_delay_of_a_schedule_follows_from_its_id_and_is_at_most_its_jitter() {
    let jitter = Interval::from_seconds(600);

    let delays: Vec<Interval> =
        (0..200).map(|number| fixed_delay(&format!("job-{number}"), jitter)).collect();

    assert!(delays.iter().all(|delay| *delay <= jitter));
    assert!(delays.iter().collect::<std::collections::BTreeSet<_>>().len() > 100, "they are spread");
    assert_eq!(fixed_delay("job-7", jitter), delays[7]);
    assert_eq!(fixed_delay("job-7", Interval::from_seconds(0)).seconds(), 0);
}

#[test]
fn inputs_and_sessions_are_named_after_schedule_and_slot() {
    let slot = At(1_797_231_600_000);

    assert_eq!(input_key("morning", slot), "schedule/morning/2026-12-14T07:00:00Z");
    assert_eq!(run_session_key("morning", slot), "schedule:morning/2026-12-14T07:00:00Z");
}
