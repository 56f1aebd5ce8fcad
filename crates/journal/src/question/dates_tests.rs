use proptest::prelude::*;

use super::*;

/// Wednesday, 18 November 2026.
const TODAY: Date = jiff::civil::date(2026, 11, 18);

fn date(text: &str, tense: Tense) -> Option<String> {
    let found = TimeMention::find(text, number(TODAY), tense).date?;
    let shown = |day: Day| EPOCH.checked_add(i64::from(day).days()).unwrap().to_string();
    Some(match found.unit {
        DateUnit::Month { .. } => shown(found.from)[..7].to_owned(),
        DateUnit::Day if found.from == found.to => shown(found.from),
        DateUnit::Day => format!("{} to {}", shown(found.from), shown(found.to)),
    })
}

#[test]
fn a_question_names_a_day_or_a_month_before_today() {
    for (text, expected) in [
        ("What did we do yesterday?", Some("2026-11-17")),
        ("and the day before yesterday?", Some("2026-11-16")),
        ("What was decided last week?", Some("2026-11-09 to 2026-11-15")),
        ("three days ago", Some("2026-11-15")),
        ("a week ago", Some("2026-11-08 to 2026-11-14")),
        ("What happened on 5 March?", Some("2026-03-05")),
        ("on March 5th, 2025", Some("2025-03-05")),
        ("on the 5th of December", Some("2025-12-05")),
        ("since 2026-02-03", Some("2026-02-03")),
        ("what was planned in March", Some("2026-03")),
        ("in December", Some("2025-12")),
        ("last month", Some("2026-10")),
        ("on Monday", Some("2026-11-16")),
        ("Which port may the server use?", None),
        ("May I use the port?", None),
        ("a decimal of 5", None),
        ("31 February", None),
    ] {
        assert_eq!(date(text, Tense::Past).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_record_may_name_a_day_to_come() {
    assert_eq!(date("The deadline is 5 December.", Tense::Nearest).as_deref(), Some("2026-12-05"));
    assert_eq!(date("We left on 2 January.", Tense::Nearest).as_deref(), Some("2027-01-02"));
    assert_eq!(date("We left on 2 August.", Tense::Nearest).as_deref(), Some("2026-08-02"));
}

#[test]
fn times_without_a_date_are_known() {
    let names_time = |text: &str| TimeMention::find(text, number(TODAY), Tense::Nearest).names_time;

    assert!(
        ["It was at 14:30.", "every Friday", "in the morning", "back in 2019", "at 3 pm"]
            .iter()
            .all(|text| names_time(text))
    );
    assert!(!["port 4037", "ratio 3:1", "take the second one"].iter().any(|text| names_time(text)));
}

#[test]
fn a_day_is_told_of_on_the_days_that_follow() {
    let day = DateSpan::days(TODAY, TODAY);
    let month = DateSpan::month(jiff::civil::date(2026, 3, 1));
    let at = |date: Date| number(date);

    let days: Vec<f32> = [-4, -3, 0, 1, 10, 11, 31, 32].map(|days| day.nearness(at(TODAY) + days)).to_vec();
    let months = [(1, 31), (2, 1), (2, 28), (3, 31), (4, 30), (5, 1)]
        .map(|(month, day)| at(jiff::civil::date(2026, month, day)));

    assert_eq!(days, [0.0, 0.3, 1.0, 0.6, 0.6, 0.3, 0.3, 0.0]);
    assert_eq!(months.map(|day| month.nearness(day)), [0.0, 0.3, 0.3, 1.0, 0.3, 0.0]);
}

proptest! {
    #[test]
    fn no_text_makes_this_panic(text in any::<String>(), day in any::<i32>()) {
        TimeMention::find(&text, day, Tense::Past);
        TimeMention::find(&text, day, Tense::Nearest);
    }
}
