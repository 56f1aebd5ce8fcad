use super::*;

const INTERVAL: Duration = Duration::from_secs(30);
const MAX_DELAY: Duration = Duration::from_secs(6 * 60 * 60);

/// Y4
#[test]
fn the_delay_begins_with_the_interval_doubles_and_stops_growing_at_six_hours() {
    let delay = |first, failures| backoff_delay(first, failures, MAX_DELAY);
    let seconds: Vec<u64> = (1..=12).map(|failures| delay(INTERVAL, failures).as_secs()).collect();

    assert_eq!(seconds, [30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600]);
    assert_eq!(delay(INTERVAL, u32::MAX), MAX_DELAY);
    assert_eq!(delay(Duration::MAX, 1), MAX_DELAY);
}

/// A worker that fails waits 2, 4, 8, … seconds, at most ten minutes.
#[test]
fn the_delay_of_a_worker_doubles_from_two_seconds_to_ten_minutes() {
    let seconds: Vec<u64> = (1..=10)
        .map(|failures| backoff_delay(FIRST_WORKER_DELAY, failures, MAX_WORKER_DELAY).as_secs())
        .collect();

    assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600]);
}

/// Y4
#[tokio::test(start_paused = true)]
async fn a_session_that_failed_is_tried_again_at_the_next_check_and_then_less_often() {
    let (mut backoff, id, other) = (Backoff::new(MAX_DELAY), SessionId::generate(), SessionId::generate());
    let start = Instant::now();
    backoff.record_failure(id, "no".to_owned(), start, INTERVAL);
    assert!(backoff.is_backing_off(&id, start + INTERVAL / 2));
    assert!(!backoff.is_backing_off(&id, start + INTERVAL));

    backoff.record_failure(id, "no".to_owned(), start + INTERVAL, INTERVAL);

    assert!(backoff.is_backing_off(&id, start + INTERVAL * 2));
    assert!(!backoff.is_backing_off(&id, start + INTERVAL * 3));
    assert!(!backoff.is_backing_off(&other, start));
}

/// Y4
#[test]
fn a_failure_is_news_once_for_each_reason_and_again_after_it_went_well() {
    let (mut backoff, id) = (Backoff::new(MAX_DELAY), SessionId::generate());
    let is_new = |backoff: &mut Backoff<SessionId>, reason: &str| {
        backoff.record_failure(id, reason.to_owned(), Instant::now(), INTERVAL).is_new_reason
    };

    let news = ["a", "a", "b", "a"].map(|reason| is_new(&mut backoff, reason));
    backoff.clear(&id);

    assert_eq!(news, [true, false, true, true]);
    assert!(!backoff.is_backing_off(&id, Instant::now()));
    assert!(is_new(&mut backoff, "a"));
}

#[test]
fn a_retry_delay_doubles_up_to_its_maximum() {
    let mut delay = RetryDelay::new(Duration::from_secs(1), Duration::from_secs(5));

    assert_eq!([(); 5].map(|()| delay.next().as_secs()), [1, 2, 4, 5, 5]);
}
