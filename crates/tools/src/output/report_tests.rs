use proptest::prelude::*;

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
        ..report_status(TaskStatus::Completed)
    }
}

fn printed(text: &str) -> OutputText {
    OutputText { text: text.to_owned(), gaps: Vec::new() }
}

fn shown(output_limit: OutputLimit, text: &str) -> ToolOutcome {
    fit_report(completed(), output_limit, &printed(text), FullOutput::OfCall(call()))
}

fn output_of(finished: &ToolOutcome) -> String {
    CommandReport::parse(&finished.content).unwrap().1
}

/// K1, C8: nothing is escaped, so what was printed takes its own room and no more.
#[test]
fn what_was_printed_stays_as_it_is_within_the_cap() {
    for piece in ["\"", "\\", "\n", "\t", "\u{7f}", "é", "日", "\"a\"\n", "{\"name\": \"x\\y\"}\n"] {
        for bytes in [500, 1000, 4096, 32 << 10] {
            let text = piece.repeat(60_000 / piece.len());

            let finished = shown(OutputLimit { lines: 100_000, bytes }, &text);

            let length = finished.content.len();
            assert!(length <= bytes && length > bytes / 2, "{piece:?}: {length} of {bytes}");
            let output = output_of(&finished);
            assert!(output.starts_with(piece) && output.contains("read_file with the path"), "{output}");
            assert_eq!(finished.whole, Some(text.into_bytes()));
        }
    }
}

/// C8: the head counts, too, so the result as a whole is within the limit.
#[test]
fn the_lines_of_the_head_count() {
    let text = "a\n".repeat(100);

    let finished = shown(OutputLimit { lines: 100, bytes: 10_000 }, &text);

    assert!(finished.content.lines().count() <= 100, "{}", finished.content);
    assert_eq!(finished.whole, Some(text.into_bytes()));
}

/// C8: lines are not counted where dropped bytes make the count unknown.
#[test]
fn where_the_keeper_dropped_something_only_bytes_are_counted() {
    let gap = "[… 5000 bytes were not kept …]\n";
    let text = format!("{}{gap}{}", "head\n".repeat(100), "tail\n".repeat(100));
    let gaps = vec![OutputGap { line: 500..500 + gap.len(), bytes: 5000 }];

    let finished = fit_report(
        completed(),
        OutputLimit { lines: 26, bytes: 10_000 },
        &OutputText { text, gaps },
        FullOutput::OfCall(call()),
    );

    let output = output_of(&finished);
    assert!(output.starts_with("head\n") && output.ends_with("tail\n"), "{output}");
    assert!(output.contains("[… 5900 bytes are missing here"), "{output}");
}

/// C8: what was dropped and is still told in its own line is not told again.
#[test]
fn what_was_dropped_elsewhere_is_not_counted_twice() {
    let gap = "[… 5000 bytes were not kept …]\n";
    let text = format!("{gap}{}", "tail\n".repeat(100));
    let gaps = vec![OutputGap { line: 0..gap.len(), bytes: 5000 }];

    let finished = fit_report(
        completed(),
        OutputLimit { lines: 26, bytes: 10_000 },
        &OutputText { text, gaps },
        FullOutput::OfCall(call()),
    );

    let output = output_of(&finished);
    assert!(output.starts_with(gap) && output.contains("[… 405 bytes are missing here"), "{output}");
}

/// K1, C8: fields are left out before the head is broken.
#[test]
fn under_a_cap_that_is_too_small_the_most_important_fields_stay() {
    let shown = |bytes| shown(OutputLimit { lines: 10, bytes }, &"x".repeat(1000)).content;

    assert_eq!(shown(32), "status: completed\nexit_code: 0\n\n");
    assert_eq!(shown(19), "status: completed\n\n");
    assert_eq!(shown(0), "status: completed\n\n");
}

proptest! {
    /// K1, C8: whatever was printed and whatever the cap is.
    #[test]
    fn a_result_always_has_its_head_and_is_within_the_cap(
        pieces in prop::collection::vec(("[a-zé日\"\\\\\n\t:]{0,20}", 1_usize..50), 0..20),
        lines in 10_usize..200,
        bytes in 40_usize..5000,
    ) {
        let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();

        let finished = shown(OutputLimit { lines, bytes }, &text);

        prop_assert!(finished.content.len() <= bytes, "{} of {bytes}", finished.content.len());
        prop_assert!(finished.content.lines().count() <= lines);
        let (report, output) = CommandReport::parse(&finished.content).unwrap();
        prop_assert_eq!(&report, &finished.report);
        prop_assert_eq!(finished.whole.is_some(), output != text || report.message != completed().message);
        prop_assert!(finished.whole.is_none_or(|whole| whole == text.as_bytes()));
    }
}
