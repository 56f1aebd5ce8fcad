use super::*;

/// H1: who asks the same after minutes asks anew, and a failure is repeated for a minute only.
#[test]
fn a_request_without_a_count_repeats_a_turn_for_a_short_time_only() {
    let is_repeated = |outcome: Outcome, seconds: i64| {
        is_recent(AnswerEnd { seq: 1, at: At(1_000), outcome }, At(1_000 + seconds * 1_000))
    };

    for outcome in [Outcome::Completed, Outcome::Limit, Outcome::Cancelled] {
        assert_eq!([0, 599, 600].map(|seconds| is_repeated(outcome, seconds)), [true, true, false]);
    }
    assert_eq!([0, 59, 60].map(|seconds| is_repeated(Outcome::Failed, seconds)), [true, true, false]);
}
