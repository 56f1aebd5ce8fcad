use super::*;

/// 2026-11-16 23:30 UTC.
const LATE: At = At(1_794_871_800_000);

fn at_zone(variable: &str) -> (String, String) {
    let LocalDate { date, zone } = local_date(LATE, Some(variable));
    (date, zone)
}

#[test]
fn the_date_is_that_of_the_users_zone() {
    let pair = |date: &str, zone: &str| (date.to_owned(), zone.to_owned());

    assert_eq!(at_zone("UTC0"), pair("2026-11-16", "UTC"));
    assert_eq!(at_zone("CET-1"), pair("2026-11-17", "UTC+01:00"));
    assert_eq!(at_zone(":XYZ3:30"), pair("2026-11-16", "UTC-03:30"));
    if Path::new(ZONE_FOLDER).join("Asia/Kolkata").exists() {
        assert_eq!(at_zone("Asia/Kolkata"), pair("2026-11-17", "Asia/Kolkata (UTC+05:30)"));
    }
}

#[test]
fn a_zone_that_nobody_knows_is_utc() {
    for wrong in ["", "No/Where", "../../etc/passwd", "/etc/passwd"] {
        assert_eq!(at_zone(wrong).1, "UTC", "{wrong:?}");
    }
}
