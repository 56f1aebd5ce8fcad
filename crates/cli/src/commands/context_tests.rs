use longhaul_agent::session::{CompactionThresholds, ContextBreakdown, ContextBudget};
use longhaul_model::{ContextWindow, WindowSource};
use longhaul_protocol::CompactedBy;

use super::*;

fn context() -> ContextUsage {
    let parts = ContextBreakdown {
        system: 500,
        tools: 1_500,
        turns: 6_000,
        tool_output: 2_000,
        ..ContextBreakdown::default()
    };
    let report = ContextReport {
        model: "custom/m".to_owned(),
        parts,
        incoming: 0,
        reported: Some(9_000),
        window: Some(ContextWindow { tokens: 40_000, source: WindowSource::Config }),
        room: Some(ContextBudget { window: 40_000, answer: 8_000, fixed: 2_000 }),
        checks: CompactionThresholds { before_turn: Some(27_200), within_turn: Some(29_440), idle: None },
        epoch: Some(2),
        compactions: 1,
    };
    let last =
        CompactDone { epoch: 2, by: CompactedBy::Model, before: 30_000, after: 4_000, from: 1, through: 90 };
    ContextUsage { key: "a".to_owned(), report, last: Some(last) }
}

/// C1, C2
#[test]
fn people_read_each_part_with_its_share_and_where_the_figures_come_from() {
    let text = context().lines().join("\n");

    assert_eq!(
        text,
        "session       a\n\
         model         custom/m\n\
         window        40,000 tokens, from the config\n\
         context       10,000 tokens: 9,000 counted by the provider, the rest estimated\n\
         \x20 system               500  1.2 %  ▏\n\
         \x20 tools              1,500  3.7 %  █\n\
         \x20 memory                 0  0.0 %\n\
         \x20 summary                0  0.0 %\n\
         \x20 pins                   0  0.0 %\n\
         \x20 turns              6,000 15.0 %  ████\n\
         \x20 tool output        2,000  5.0 %  █\n\
         \x20 answer             8,000 20.0 %  ██████\n\
         \x20 free              22,000 55.0 %  ████████████████\n\
         compacts      before a turn at 27,200, within a turn at 29,440, when idle: off\n\
         context no.   2\n\
         compactions   1 compaction, the last by a summary\n\
         \x20             30,000 → 4,000 tokens, entries 1–90"
    );
}

/// M14
#[test]
fn a_window_that_is_taken_for_less_than_is_said_of_it_is_shown_as_both() {
    let mut context = context();
    context.report.room = Some(ContextBudget { window: 20_000, answer: 5_000, fixed: 2_000 });

    assert_eq!(
        context.window(),
        "40,000 tokens, from the config; limited to 20,000, because the server refused more"
    );
}

#[test]
fn without_a_window_there_are_no_shares_and_nothing_is_free() {
    let mut context = context();
    (context.report.window, context.report.room) = (None, None);

    let text = context.lines().join("\n");

    assert!(!text.contains('%') && !text.contains("free"), "{text}");
    assert!(text.contains("window        unknown"), "{text}");
    assert_eq!(context.as_json()["free"], Value::Null);
}

/// C1
#[test]
fn for_programs_the_parts_add_up() {
    let shown = context().as_json();

    let parts: u64 = shown["parts"].as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum();
    let number = |name: &str| shown[name].as_u64().unwrap();
    assert_eq!(parts, number("tokens"));
    assert_eq!(parts + number("waiting") + number("answer") + number("free"), number("window"));
    assert_eq!(shown["last_compaction"]["by"], "model");
}
