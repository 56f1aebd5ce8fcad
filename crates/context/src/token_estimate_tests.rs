use longhaul_protocol::Role;

use super::*;

fn user_item(text: &str) -> Arc<Item> {
    Arc::new(Item::Text { role: Role::User, text: text.to_owned() })
}

/// C1
#[test]
fn an_estimate_counts_system_tools_and_items() {
    let tool = ToolSchema {
        name: "exec".into(),
        description: "Runs.".into(),
        parameters: serde_json::json!({"type": "object"}),
    };

    let (nothing, with_tool) = (estimate("", &[], &[]), estimate("abcdefgh", &[tool], &[]));
    let with_words = estimate("abcdefgh", &[], &[user_item("abcd")]);

    assert_eq!(nothing, 0);
    assert!(with_tool > 2 + TOKENS_PER_ITEM, "{with_tool}");
    assert_eq!(with_words, 2 + TOKENS_PER_ITEM + 1);
}

/// C1
#[test]
fn an_estimate_learns_from_what_the_provider_counts() {
    let mut calibration = TokenCalibration::default();
    let before = calibration.correct(1_000);
    calibration.learn(100, 150);
    calibration.learn(300, 450);

    assert_eq!((before, calibration.correct(1_000)), (1_000, 1_500));
}

/// C1
#[test]
fn the_largest_estimate_that_has_room_is_the_last_that_does() {
    let mut calibration = TokenCalibration::default();
    for (estimated, counted) in [(100, 100), (100, 137), (300, 150), (1_000, 7)] {
        for tokens in [0, 1, 10, 999, 123_456] {
            let largest = calibration.largest_within(tokens);

            assert!(calibration.correct(largest) <= tokens);
            assert!(calibration.correct(largest + 1) > tokens);
        }
        calibration.learn(estimated, counted);
    }
    assert_eq!(TokenCalibration::default().largest_within(u64::MAX), u64::MAX);
}

/// M14
#[test]
fn a_server_that_counts_too_little_after_three_samples_has_cut_the_prompt() {
    let mut calibration = TokenCalibration::default();
    calibration.learn(1_000, 1_000);
    calibration.learn(1_500, 1_500);
    let too_early = calibration.is_truncated_by_server(4_000, 1_000);
    calibration.learn(2_000, 2_000);

    assert!(!too_early);
    assert!(calibration.is_truncated_by_server(4_000, 2_700));
    assert!(!calibration.is_truncated_by_server(4_000, 2_900), "within what an estimate may be off");
    assert!(!calibration.is_truncated_by_server(1_900, 10), "too short to say");
}

/// M14
#[test]
fn a_cut_prompt_does_not_spoil_what_was_learnt() {
    let mut calibration = TokenCalibration::default();
    (0..3).for_each(|_| calibration.learn(1_000, 1_000));

    calibration.learn(8_000, 2_000);

    assert_eq!(calibration.correct(5_000), 5_000);
}

#[test]
fn only_the_newest_counts_are_remembered() {
    let mut calibration = TokenCalibration::default();
    (0..20).for_each(|_| calibration.learn(100, 100));
    (0..MAX_SAMPLES).for_each(|_| calibration.learn(100, 90));

    assert_eq!(calibration.correct(1_000), 900);
}
