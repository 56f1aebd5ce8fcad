use super::*;

/// C1
#[test]
fn what_is_usable_is_the_window_without_the_room_for_the_answer() {
    let room = ContextBudget { window: 1_000, answer: 250, fixed: 100 };

    assert_eq!((room.usable(), ContextBudget { answer: 2_000, ..room }.usable()), (750, 0));
}

/// C13
#[test]
fn what_has_a_size_of_its_own_is_at_most_a_tenth_of_what_is_usable() {
    let room = ContextBudget { window: 100_000, answer: 20_000, fixed: 1_000 };

    assert_eq!((room.at_most(2_500), room.at_most(20_000)), (2_500, 8_000));
}

/// C2
#[test]
fn tokens_replace_a_share_and_nothing_is_off() {
    let cases = [
        (compaction_threshold(0.85, None, 1_000), Some(850)),
        (compaction_threshold(0.85, Some(300), 1_000), Some(300)),
        (compaction_threshold(0.0, Some(300), 1_000), Some(300)),
        (compaction_threshold(0.85, Some(0), 1_000), None),
        (compaction_threshold(0.0, None, 1_000), None),
    ];

    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}
