use super::*;

fn delay(headers: &[(&str, &str)]) -> Option<f64> {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let now: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    delay_from_headers(&headers, now).map(|delay| delay.as_secs_f64())
}

/// M5
#[test]
fn the_delay_of_the_server_is_read_from_its_headers_in_their_order() {
    assert_eq!(delay(&[("retry-after", "9"), ("retry-after-ms", "1500")]), Some(1.5));
    assert_eq!(delay(&[("retry-after", "2"), ("x-ratelimit-reset-tokens", "1m")]), Some(2.0));
    assert_eq!(delay(&[("retry-after", "Sun, 15 Nov 2026 12:00:20 GMT")]), Some(20.0));
    assert_eq!(delay(&[("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT")]), Some(0.0));
    assert_eq!(
        delay(&[("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "20ms")]),
        Some(360.0)
    );
    assert_eq!(delay(&[("retry-after", "soon")]), None);
    assert_eq!(delay(&[("retry-after", "-4")]), None);
}

/// M5
#[test]
fn only_what_is_used_up_is_waited_for() {
    let headers = [
        ("x-ratelimit-remaining-requests", "12"),
        ("x-ratelimit-reset-requests", "6m0s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "4s"),
    ];
    let anthropic = [
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:05Z"),
        ("anthropic-ratelimit-tokens-remaining", "9"),
        ("anthropic-ratelimit-tokens-reset", "2026-11-15T13:00:00Z"),
    ];
    let moment = [("x-ratelimit-reset", "1794744010000"), ("x-ratelimit-remaining", "0")];

    assert_eq!(delay(&headers), Some(4.0));
    assert_eq!(delay(&anthropic), Some(5.0));
    assert_eq!(delay(&moment), Some(10.0));
}

#[test]
fn lengths_of_time_are_read_in_the_ways_that_providers_write_them() {
    let cases = [
        ("17s", Some(17.0)),
        ("1.5s.", Some(1.5)),
        ("20ms", Some(0.02)),
        ("6m0s", Some(360.0)),
        ("1h2m3s", Some(3723.0)),
        ("20 seconds, or", Some(20.0)),
        ("17.376s.", Some(17.376)),
        ("soon", None),
        ("", None),
        ("5 apples", None),
        ("99999999999999999999999999d", None),
    ];
    for (text, seconds) in cases {
        assert_eq!(parse_duration(text), seconds.map(Duration::from_secs_f64), "{text}");
    }
}
