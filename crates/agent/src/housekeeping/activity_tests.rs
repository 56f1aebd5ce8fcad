use longhaul_protocol::{Input, InputId, InputTaken, JoinMode, Outcome, TurnEnded, Warning};

use super::*;

const INTERVAL: Duration = Duration::from_secs(30);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn input_taken() -> SessionRecord {
    SessionRecord::InputTaken(InputTaken::of(Input::new(InputId::generate(), "hello", JoinMode::Join), 1))
}

fn turn_ended() -> SessionRecord {
    SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: None,
    })
}

fn warning() -> SessionRecord {
    SessionRecord::Warning(Warning::new("code".to_owned(), "text".to_owned()))
}

/// Y3
#[test]
fn a_session_is_idle_after_strictly_more_than_twice_the_interval() {
    assert!(!is_idle(Duration::ZERO, INTERVAL));
    assert!(!is_idle(seconds(60), INTERVAL));
    assert!(is_idle(seconds(60) + Duration::from_nanos(1), INTERVAL));
    assert!(!is_idle(Duration::MAX, Duration::MAX));
}

/// Y3
#[tokio::test(start_paused = true)]
async fn what_was_seen_here_counts_by_the_steady_clock_whatever_the_one_on_the_wall_says() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    let before = ClockReading::now();
    activity.record_activity(id);

    tokio::time::advance(seconds(61)).await;

    for wall in [At(0), before.wall, At(before.wall.0 + 100 * DAY_MS)] {
        let clock = ClockReading { wall, ..ClockReading::now() };
        assert_eq!(activity.idle_time(id, At(before.wall.0 - 5), clock), seconds(61));
    }
}

/// Y3
#[tokio::test(start_paused = true)]
async fn a_session_that_was_not_seen_counts_by_its_last_record() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    let clock = ClockReading::now();

    let quiet = activity.idle_time(id, At(clock.wall.0 - 61_000), clock);

    assert_eq!(quiet, seconds(61));
}

/// Y3: another process may have gone on with a session that was seen here.
#[tokio::test(start_paused = true)]
async fn a_record_that_came_from_elsewhere_counts_also_where_the_session_was_seen_before() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    activity.record_activity(id);
    tokio::time::advance(seconds(600)).await;
    let clock = ClockReading { wall: At(now().0 + 600_000), ..ClockReading::now() };

    let quiet = activity.idle_time(id, At(clock.wall.0 - 10_000), clock);

    assert_eq!(quiet, seconds(10));
}

/// Y3: activity is an input's arrival, a slash command and a turn's end, and nothing else that is recorded here.
#[tokio::test(start_paused = true)]
async fn of_what_is_recorded_here_inputs_and_ends_of_turns_are_activity() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    let state = State::default();
    for fact in [input_taken(), turn_ended()] {
        tokio::time::advance(seconds(100)).await;
        activity.record_append(id, now(), &fact, &state);
        assert_eq!(activity.idle_time(id, now(), ClockReading::now()), Duration::ZERO, "{fact:?}");
    }
    tokio::time::advance(seconds(100)).await;
    let at = At(now().0 + 100_000);

    activity.record_append(id, at, &warning(), &state);

    let clock = ClockReading { wall: at, ..ClockReading::now() };
    assert_eq!(activity.idle_time(id, at, clock), seconds(100));
}

/// Y3
#[tokio::test(start_paused = true)]
async fn activity_never_moves_back() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    let early = ClockReading::now();
    tokio::time::advance(seconds(50)).await;
    activity.record_activity(id);

    lock(&activity.0).record_at(id, early);
    tokio::time::advance(seconds(5)).await;

    assert_eq!(activity.idle_time(id, At(0), ClockReading::now()), seconds(5));
    // Nor by a clock that was put forward.
    let forward = ClockReading { wall: At(now().0 + DAY_MS), ..ClockReading::now() };
    assert_eq!(activity.idle_time(id, At(now().0 + 60_000), forward), seconds(5));
}

/// A clock that was wrong once does not keep a session from being idle for as long as it was wrong.
#[tokio::test(start_paused = true)]
async fn a_record_of_the_future_counts_from_when_it_was_first_seen() {
    let (activity, id) = (ActivityTracker::default(), SessionId::generate());
    let future = At(now().0 + 365 * DAY_MS);
    assert_eq!(activity.idle_time(id, future, ClockReading::now()), Duration::ZERO);

    tokio::time::advance(seconds(61)).await;

    assert_eq!(activity.idle_time(id, future, ClockReading::now()), seconds(61));
}

#[tokio::test(start_paused = true)]
async fn sessions_that_were_not_active_for_a_day_are_not_kept() {
    let activity = ActivityTracker::default();
    (0..1_000).for_each(|_| activity.record_activity(SessionId::generate()));
    tokio::time::advance(COMPACT_WITHIN + seconds(1)).await;

    (0..2_000).for_each(|_| activity.record_activity(SessionId::generate()));

    assert!(lock(&activity.0).sessions.len() <= 2_000);
}

/// A record may come while the sessions are listed, and then has a later time: nobody here has opened its session for that.
#[tokio::test]
async fn a_record_from_a_time_that_has_not_come_makes_no_session_ours() {
    let (activity, id, clock) = (ActivityTracker::default(), SessionId::generate(), ClockReading::now());

    activity.idle_time(id, At(clock.wall.0 + 1), clock);

    assert!(!activity.was_used_here(id));
    activity.record_activity(id);
    assert!(activity.was_used_here(id));
}
