use proptest::prelude::*;

use super::*;

#[test]
fn a_duration_has_a_number_and_one_unit() {
    for (text, seconds) in
        [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1d", 86_400), ("0s", 0), (" 5m ", 300)]
    {
        assert_eq!(text.parse(), Ok(Interval::from_seconds(seconds)), "{text}");
    }
    for text in [
        "",
        "90",
        "s",
        "1.5h",
        "-1s",
        "+1s",
        "1h30m",
        "5 m",
        "1w",
        "1é",
        "99999999999999999999d",
        "400000000d",
    ] {
        assert_eq!(text.parse::<Interval>(), Err(()), "{text}");
    }
}

proptest! {
    #[test]
    fn a_duration_is_shown_as_it_can_be_read(seconds in 0..=MAX_SECONDS) {
        let interval = Interval::from_seconds(seconds);

        prop_assert_eq!(interval.to_string().parse(), Ok(interval));
    }
}
