use super::*;

fn after(results: &[&str]) -> RepeatDetector {
    let mut repeats = RepeatDetector::default();
    for result in results {
        repeats.push("exec", "{}", result);
    }
    repeats
}

/// T8
#[test]
fn the_third_time_is_told_and_the_fifth_is_the_end() {
    let told =
        |results: &[&str]| after(results).with_repeat_warning("exec", "{}", "same".to_owned()) != "same";

    assert_eq!([told(&["same"]), told(&["same"; 2]), told(&["same", "other", "same"])], [false, true, false]);
    assert_eq!([after(&["same"; 4]).stuck_reason(), after(&["same"; 4]).stuck_reason()], [None, None]);
    assert!(after(&["same"; 5]).stuck_reason().is_some());
}

/// T8
#[test]
fn two_calls_in_turn_are_the_end_after_eight() {
    assert_eq!(after(&["a", "b", "a", "b", "a", "b", "a"]).stuck_reason(), None);
    assert!(after(&["x", "a", "b", "a", "b", "a", "b", "a", "b"]).stuck_reason().is_some());
    assert_eq!(after(&["a", "b", "a", "b", "c", "b", "a", "b"]).stuck_reason(), None);
}

/// T8: durations and task ids don't make a difference, nor do our own warnings.
#[test]
fn what_passes_does_not_count_as_a_difference() {
    let mut repeats = RepeatDetector::default();
    for duration in 1..=5 {
        let result = format!(
            r#"{{"status":"failed","output":"no","duration_ms":{duration},"task_id":"t{duration}"}}"#
        );
        let told = repeats.with_repeat_warning("exec", "{}", result);
        repeats.push("exec", "{}", &told);
    }
    let mut plain = RepeatDetector::default();
    for _ in 0..5 {
        let told = plain.with_repeat_warning("read_file", "{}", "same".to_owned());
        plain.push("read_file", "{}", &told);
    }

    assert!(repeats.stuck_reason().is_some() && plain.stuck_reason().is_some());
}

#[test]
fn a_result_that_is_one_object_stays_one_with_its_warning() {
    let result = r#"{"status":"failed","message":"Clamped."}"#;

    let told = after(&[result, result]).with_repeat_warning("exec", "{}", result.to_owned());

    let fields: Value = serde_json::from_str(&told).unwrap();
    assert!(fields["message"].as_str().unwrap().starts_with("Clamped. This call has had"), "{told}");
}

/// What a file holds is not ours to change, whatever it looks like.
#[test]
fn a_file_that_looks_like_a_result_stays_as_it_is() {
    let file = r#"{"z":1,"message":"mine","a":2}"#;
    let mut repeats = RepeatDetector::default();
    for _ in 0..2 {
        repeats.push("read_file", "{}", file);
    }

    let told = repeats.with_repeat_warning("read_file", "{}", file.to_owned());

    assert!(told.starts_with(file) && told.contains("[runtime note]"), "{told}");
}
