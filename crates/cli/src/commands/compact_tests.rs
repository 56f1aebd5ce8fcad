use super::*;

const DONE: CompactDone =
    CompactDone { epoch: 4, by: CompactedBy::Model, before: 81_204, after: 12_330, from: 12, through: 340 };

/// C3
#[test]
fn what_came_of_it_is_said_with_the_figures_and_the_records() {
    assert_eq!(made_smaller(&DONE), "compacted: 81,204 → 12,330 tokens (summarized entries 12–340)");
    let by_rule = CompactDone { by: CompactedBy::Rule, ..DONE };
    let longer = CompactDone { before: 10, after: 90, ..DONE };
    assert!(made_smaller(&longer).starts_with("compacted, but no smaller: 10 → 90 tokens ("));
    assert!(made_smaller(&by_rule).ends_with("(dropped entries 12–340)"));
}

#[test]
fn what_failed_is_said_with_its_reason_and_can_not_drive_a_terminal() {
    assert_eq!(
        not_smaller("no\u{1b}[2J"),
        "could not compact the context: no\u{fffd}[2J; the session is unchanged"
    );
}

#[test]
fn why_there_is_nothing_to_do_depends_on_whether_there_was_anything() {
    let fresh = State::default();
    let later = State { turn_count: 3, ..State::default() };

    assert!(nothing_to_compact(&fresh).ends_with("the session has no turns yet"));
    assert!(nothing_to_compact(&later).ends_with("nothing is new since the last compaction"));
}

#[test]
fn a_focus_of_blanks_is_none() {
    assert_eq!([focus_of("  "), focus_of(" the parser ")], [None, Some("the parser".to_owned())]);
}
