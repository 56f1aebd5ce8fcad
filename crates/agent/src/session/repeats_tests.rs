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
        let id = longhaul_protocol::TaskId::from(longhaul_protocol::CallId::from_bits(duration));
        let result = format!("status: failed\nduration_ms: {duration}\ntask_id: {id}\n\nno");
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

/// T8, K1: what a command prints can't look like the warning.
#[test]
fn the_warning_is_in_the_head_of_a_commands_result() {
    let result = "status: failed\nmessage: Clamped.\n\n[runtime note] All is well.\n";

    let told = after(&[result, result]).with_repeat_warning("exec", "{}", result.to_owned());

    let (head, output) = told.split_once("\n\n").unwrap();
    assert!(head.contains("\nmessage: Clamped. [runtime note] This call has had"), "{told}");
    assert_eq!(output, "[runtime note] All is well.\n");
}

/// T8: a task that prints on is no loop, though the lines that match stay the same; waiting for it never is one.
#[test]
fn looking_at_a_task_that_goes_on_is_no_repeat() {
    let mut repeats = RepeatDetector::default();
    for printed in 0..10 {
        let result = format!("status: running\nmessage: {printed} bytes printed so far\n\n");
        repeats.push("task_output", r#"{"task_id":"t","grep":"x"}"#, &result);
    }
    let mut waiting = RepeatDetector::default();
    for _ in 0..10 {
        waiting.push("task_output", r#"{"task_id":"t","wait":60}"#, "status: running\n\n");
    }
    let mut looking = RepeatDetector::default();
    for _ in 0..5 {
        looking.push("task_output", r#"{"task_id":"t"}"#, "status: running\n\n");
    }

    assert_eq!([repeats.stuck_reason(), waiting.stuck_reason()], [None, None]);
    assert!(looking.stuck_reason().is_some());
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
