use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn failure(class: FailureClass) -> ModelFailure {
    ModelFailure::new(class, "it failed")
}

fn waits(
    tries: &mut RetryState,
    failure: &ModelFailure,
    chance: f64,
    most: usize,
) -> (Vec<Duration>, Option<RetriesExhausted>) {
    let mut delays = Vec::new();
    while delays.len() < most {
        match tries.failed(failure, chance) {
            RetryDecision::Wait(wait) => delays.push(wait.delay),
            RetryDecision::GiveUp(spent) => return (delays, Some(spent)),
        }
    }
    (delays, None)
}

/// M1: N retries are N+1 requests, and there is no wait after the last.
#[test]
fn four_retries_are_five_requests_and_the_last_failure_is_returned_with_its_limit() {
    let mut tries = RetryState::new(RetryPolicy::default());

    let (delays, spent) = waits(&mut tries, &failure(FailureClass::Server), 1.0, 9);

    let spent = spent.unwrap();
    assert_eq!((delays.len(), spent.requests, spent.limit), (4, 5, Some(RetryLimit::Tries)));
    assert!(spent.to_string().contains("gave up after 5 requests (retry.max_retries)"), "{spent}");
}

/// M1
#[test]
fn no_retries_at_all_is_a_choice() {
    let mut tries = RetryState::new(RetryPolicy { max_retries: 0, ..RetryPolicy::default() });

    let (delays, spent) = waits(&mut tries, &failure(FailureClass::Throttled), 1.0, 9);

    assert_eq!((delays, spent.unwrap().requests), (vec![], 1));
}

/// M1
#[test]
fn the_last_failure_names_the_classes_of_those_before_it() {
    let mut tries = RetryState::new(RetryPolicy { max_retries: 2, ..RetryPolicy::default() });
    tries.failed(&failure(FailureClass::Throttled), 0.0);
    tries.failed(&failure(FailureClass::Throttled), 0.0);

    let RetryDecision::GiveUp(spent) = tries.failed(&failure(FailureClass::Broken), 0.0) else {
        panic!("it waits")
    };

    assert!(spent.to_string().ends_with("before that: throttled: it failed"), "{spent}");
}

/// M2
#[test]
fn waits_double_up_to_their_cap_and_are_between_half_and_all_of_that() {
    let policy = RetryPolicy { max_retries: 7, budget: 1_000 * SECOND, ..RetryPolicy::default() };
    let failed = failure(FailureClass::Timeout);

    let (longest, _) = waits(&mut RetryState::new(policy), &failed, 1.0, 7);
    let (shortest, _) = waits(&mut RetryState::new(policy), &failed, 0.0, 7);

    assert_eq!(longest, [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs));
    assert_eq!(shortest, longest.iter().map(|delay| *delay / 2).collect::<Vec<_>>());
}

/// M2
#[test]
fn all_waits_together_stay_within_their_budget() {
    let policy = RetryPolicy { max_retries: 100, ..RetryPolicy::default() };

    let (delays, spent) = waits(&mut RetryState::new(policy), &failure(FailureClass::Server), 1.0, 100);

    assert!(delays.iter().sum::<Duration>() <= policy.budget);
    assert_eq!(spent.unwrap().limit, Some(RetryLimit::Waiting));
}

/// M3
#[test]
fn what_another_try_cannot_change_is_not_tried_again() {
    let never = [
        FailureClass::Quota,
        FailureClass::Key,
        FailureClass::NotFound,
        FailureClass::Invalid,
        FailureClass::Refused,
        FailureClass::TooLong,
        FailureClass::Certificate,
        FailureClass::NotAModel,
        FailureClass::Unreachable,
    ];

    for class in never {
        let (delays, spent) = waits(&mut RetryState::new(RetryPolicy::default()), &failure(class), 0.0, 9);
        assert_eq!((delays, spent.unwrap().limit), (vec![], None), "{class:?}");
    }
}

/// M3
#[test]
fn a_500_with_the_same_body_stops_at_the_third_and_a_503_never_for_that() {
    let with = |status, fingerprint| ModelFailure {
        status: Some(status),
        fingerprint,
        ..failure(FailureClass::Server)
    };
    let policy = RetryPolicy { max_retries: 9, budget: 1_000 * SECOND, ..RetryPolicy::default() };

    let (same, spent) = waits(&mut RetryState::new(policy), &with(500, 7), 0.0, 9);
    let (unavailable, _) = waits(&mut RetryState::new(policy), &with(503, 7), 0.0, 9);
    let mut changing = RetryState::new(policy);
    let (others, _) = (0..9)
        .map(|body| changing.failed(&with(500, body), 0.0))
        .partition::<Vec<_>, _>(|next| matches!(next, RetryDecision::Wait(_)));

    assert_eq!((same.len(), spent.unwrap().limit), (2, Some(RetryLimit::SameWords)));
    assert_eq!((unavailable.len(), others.len()), (9, 9));
}

/// M4
#[test]
fn being_offline_is_waited_for_apart_from_the_tries() {
    let mut tries = RetryState::new(RetryPolicy::default());

    let (delays, spent) = waits(&mut tries, &failure(FailureClass::Offline), 0.0, 100);

    assert_eq!(delays[..6], [2, 4, 8, 16, 32, 60].map(Duration::from_secs));
    assert_eq!(delays.iter().sum::<Duration>(), 600 * SECOND);
    assert_eq!(spent.unwrap().limit, Some(RetryLimit::Offline));
}

/// M4
#[test]
fn a_terminal_waits_for_the_network_without_end_and_without_spending_its_tries() {
    let policy = RetryPolicy { offline: OfflinePolicy::WaitForever, ..RetryPolicy::default() };
    let mut tries = RetryState::new(policy);

    let (offline, _) = waits(&mut tries, &failure(FailureClass::Offline), 0.0, 1_000);
    let (online, _) = waits(&mut tries, &failure(FailureClass::Server), 0.0, 9);

    assert_eq!((offline.len(), online.len()), (1_000, 4));
}

/// M4
#[test]
fn offline_counts_as_a_try_where_it_is_not_waited_for() {
    let policy = RetryPolicy { offline: OfflinePolicy::CountsAsTry, ..RetryPolicy::default() };

    let (delays, _) = waits(&mut RetryState::new(policy), &failure(FailureClass::Offline), 1.0, 9);

    assert_eq!(delays, [1, 2, 4, 8].map(Duration::from_secs));
}

/// M5
#[test]
fn the_delay_of_the_server_wins_up_to_a_minute() {
    let after = |seconds| ModelFailure { delay: Some(seconds * SECOND), ..failure(FailureClass::Throttled) };
    let mut tries = RetryState::new(RetryPolicy::default());

    let (short, _) = waits(&mut tries, &after(7), 0.3, 1);
    let (long, spent) = waits(&mut tries, &after(61), 0.3, 1);

    assert_eq!((short, long), (vec![7 * SECOND], vec![]));
    let spent = spent.unwrap();
    assert_eq!(spent.limit, Some(RetryLimit::ServerDelay(61 * SECOND)));
    assert!(spent.to_string().contains("asks to wait 61 s"), "{spent}");
}

/// M5
#[test]
fn a_longer_delay_is_waited_for_only_where_somebody_can_end_it() {
    let policy = RetryPolicy { long_delays: LongDelayPolicy::Wait, ..RetryPolicy::default() };
    let hour = ModelFailure { delay: Some(3_600 * SECOND), ..failure(FailureClass::Throttled) };
    let days = ModelFailure { delay: Some(90_000 * SECOND), ..failure(FailureClass::Throttled) };

    let (waited, _) = waits(&mut RetryState::new(policy), &hour, 0.0, 1);
    let (given_up, _) = waits(&mut RetryState::new(policy), &days, 0.0, 1);

    assert_eq!((waited, given_up), (vec![3_600 * SECOND], vec![]));
}

/// M1: summary and memory calls.
#[test]
fn calls_in_the_background_are_tried_three_times_and_do_not_wait_for_a_network() {
    let policy = RetryPolicy::default().for_background();

    let (delays, _) = waits(&mut RetryState::new(policy), &failure(FailureClass::Offline), 1.0, 9);

    assert_eq!(delays.len(), 2);
}
