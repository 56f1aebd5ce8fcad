use super::*;

const INTERVAL: Duration = Duration::from_secs(30);

/// Y4
#[test]
fn the_delay_begins_with_the_interval_doubles_and_stops_growing_at_six_hours() {
    let seconds: Vec<u64> = (1..=12).map(|times| delay(INTERVAL, times).as_secs()).collect();

    assert_eq!(seconds, [30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600]);
    assert_eq!(delay(INTERVAL, u32::MAX), LONGEST);
    assert_eq!(delay(Duration::MAX, 1), LONGEST);
}

/// Y4
#[tokio::test(start_paused = true)]
async fn a_session_that_failed_is_tried_again_at_the_next_check_and_then_less_often() {
    let (mut delays, id, other) = (Delays::default(), SessionId::generate(), SessionId::generate());
    let start = Instant::now();
    delays.failed(id, "no".to_owned(), start, INTERVAL);
    assert!(delays.is_too_early(id, start + INTERVAL / 2));
    assert!(!delays.is_too_early(id, start + INTERVAL));

    delays.failed(id, "no".to_owned(), start + INTERVAL, INTERVAL);

    assert!(delays.is_too_early(id, start + INTERVAL * 2));
    assert!(!delays.is_too_early(id, start + INTERVAL * 3));
    assert!(!delays.is_too_early(other, start));
}

/// Y4
#[test]
fn a_failure_is_news_once_for_each_reason_and_again_after_it_went_well() {
    let (mut delays, id) = (Delays::default(), SessionId::generate());
    let failed =
        |delays: &mut Delays, reason: &str| delays.failed(id, reason.to_owned(), Instant::now(), INTERVAL);

    let told = ["a", "a", "b", "a"].map(|reason| failed(&mut delays, reason));
    delays.forget(id);

    assert_eq!(told, [News::New, News::Told, News::New, News::New]);
    assert!(!delays.is_too_early(id, Instant::now()));
    assert_eq!(failed(&mut delays, "a"), News::New);
}
