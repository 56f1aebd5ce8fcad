use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::output::reader::OutputGap;

fn call() -> CallId {
    CallId::from_bits(7)
}

fn completed() -> CommandReport {
    CommandReport {
        exit_code: Some(0),
        duration_ms: Some(1234),
        message: Some("`timeout` was taken as 600, not \"7000\"".to_owned()),
        ..CommandReport::new(TaskStatus::Completed)
    }
}

fn printed(text: &str) -> OutputText {
    OutputText { text: text.to_owned(), gaps: Vec::new() }
}

fn shown(output_limit: OutputLimit, text: &str) -> ToolOutcome {
    completed().fit_within(output_limit, &printed(text), FullOutput::OfCall(call()))
}

/// K1, C8: an escaped character takes up to six bytes, and what is cut afterwards is no JSON any more.
#[test]
fn what_grows_when_it_is_escaped_stays_within_the_cap() {
    for piece in ["\"", "\\", "\n", "\t", "\u{1}", "\u{7f}", "é", "日", "\"a\"\n", "{\"name\": \"x\\y\"}\n"]
    {
        for bytes in [500, 1000, 4096, 32 << 10] {
            let text = piece.repeat(60_000 / piece.len());

            let finished = shown(OutputLimit { lines: 100_000, bytes }, &text);

            let length = finished.content.len();
            assert!(length <= bytes && length > bytes / 2, "{piece:?}: {length} of {bytes}");
            let fields: Value = serde_json::from_str(&finished.content).unwrap();
            assert!(fields["output"].as_str().unwrap().contains("read_file with the path"), "{fields}");
            assert_eq!(finished.whole, Some(text.into_bytes()));
        }
    }
}

/// K1, C8
#[test]
fn what_fits_only_as_it_was_printed_is_cut() {
    let text = "\"a\"\n".repeat(1000);

    let finished = shown(OutputLimit { lines: 2000, bytes: text.len() + 500 }, &text);

    assert!(finished.content.len() <= text.len() + 500);
    assert_eq!(finished.whole, Some(text.into_bytes()));
}

/// C8: lines are not counted where dropped bytes make the count unknown.
#[test]
fn where_the_keeper_dropped_something_only_bytes_are_counted() {
    let gap = "[… 5000 bytes were not kept …]\n";
    let text = format!("{}{gap}{}", "head\n".repeat(100), "tail\n".repeat(100));
    let gaps = vec![OutputGap { line: 500..500 + gap.len(), bytes: 5000 }];

    let finished = completed().fit_within(
        OutputLimit { lines: 21, bytes: 10_000 },
        &OutputText { text, gaps },
        FullOutput::OfCall(call()),
    );

    let fields: Value = serde_json::from_str(&finished.content).unwrap();
    let output = fields["output"].as_str().unwrap();
    assert!(output.starts_with("head\n") && output.ends_with("tail\n"), "{output}");
    assert!(output.contains("[… 5900 bytes are missing here"), "{output}");
}

/// C8: what was dropped and is still told in its own line is not told again.
#[test]
fn what_was_dropped_elsewhere_is_not_counted_twice() {
    let gap = "[… 5000 bytes were not kept …]\n";
    let text = format!("{gap}{}", "tail\n".repeat(100));
    let gaps = vec![OutputGap { line: 0..gap.len(), bytes: 5000 }];

    let finished = completed().fit_within(
        OutputLimit { lines: 21, bytes: 10_000 },
        &OutputText { text, gaps },
        FullOutput::OfCall(call()),
    );

    let fields: Value = serde_json::from_str(&finished.content).unwrap();
    let output = fields["output"].as_str().unwrap();
    assert!(output.starts_with(gap) && output.contains("[… 405 bytes are missing here"), "{output}");
}

/// K1, C8: fields are left out before the object is broken.
#[test]
fn under_a_cap_that_is_too_small_the_most_important_fields_stay() {
    let shown = |bytes| shown(OutputLimit { lines: 10, bytes }, &"x".repeat(1000)).content;

    assert_eq!(shown(69), r#"{"status":"completed","output":"","exit_code":0,"duration_ms":1234}"#);
    assert_eq!(shown(50), r#"{"status":"completed","output":"","exit_code":0}"#);
    assert_eq!(shown(40), r#"{"status":"completed","exit_code":0}"#);
    assert_eq!(shown(0), r#"{"status":"completed"}"#);
}

proptest! {
    /// K1, C8: whatever was printed and whatever the cap is.
    #[test]
    fn a_result_is_always_one_object_within_the_cap(
        pieces in prop::collection::vec(("[a-zé日\"\\\\\n\t\u{1}]{0,20}", 1_usize..50), 0..20),
        lines in 1_usize..200,
        bytes in 40_usize..5000,
    ) {
        let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();

        let finished = shown(OutputLimit { lines, bytes }, &text);

        prop_assert!(finished.content.len() <= bytes, "{} of {bytes}", finished.content.len());
        let fields: Value = serde_json::from_str(&finished.content).unwrap();
        let output = fields["output"].as_str().unwrap_or_default();
        prop_assert!(output.lines().count() <= lines);
        prop_assert_eq!(finished.whole.is_some(), output != text || fields["message"].is_null());
        prop_assert!(finished.whole.is_none_or(|whole| whole == text.as_bytes()));
    }
}
