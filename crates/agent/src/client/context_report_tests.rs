use longhaul_protocol::{JoinMode, Usage};

use super::*;
use crate::session::fixtures::*;

const MODEL: &str = "scripted/model";
const OVERHEAD: PromptOverhead = PromptOverhead { system: 1_000, tools: 2_000 };

fn settings(window: Option<u64>) -> Settings {
    let mut settings = Settings::default();
    settings.model.context_window = window;
    settings
}

fn report(state: &State, facts: &Capabilities, window: Option<u64>) -> ContextReport {
    ContextReport::new(state, MODEL, facts, OVERHEAD, &settings(window))
}

/// C1
#[test]
fn the_parts_with_the_answer_and_what_is_free_make_up_the_window() {
    let state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        answered(1),
        finishes(1, "look", &"found ".repeat(400)),
        step(2),
    ]);

    let report = report(&state, &Capabilities::default(), Some(40_000));

    let room = report.room.unwrap();
    assert_eq!((room.window, room.answer), (40_000, 8_192));
    assert!(report.parts.tool_output > report.parts.turns && report.parts.tools > report.parts.system);
    assert_eq!(report.tokens() + report.incoming + room.answer + report.free().unwrap(), 40_000);
    assert_eq!(report.window.map(|window| window.source), Some(WindowSource::Config));
    assert_eq!((report.reported, report.epoch, report.compactions), (None, Some(1), 0));
}

/// C1
#[test]
fn what_the_provider_counted_is_the_total_and_is_named() {
    let usage = SessionRecord::Usage(Usage {
        cause: None,
        model: None,
        attempt: longhaul_protocol::AttemptId::from_bits(1),
        purpose: None,
        input: Some(5_000),
        output: Some(500),
        cached: None,
        cache_written: None,
        cost: None,
        estimated: None,
        window: None,
        parts: None,
        limits: std::collections::BTreeMap::new(),
    });
    let state = after(&[input(JoinMode::Join), turn(), step(1), attempt(), text(), answered(1), usage]);
    let model = state.provider_count.as_ref().unwrap().model.clone();

    let report = ContextReport::new(&state, &model, &Capabilities::default(), OVERHEAD, &settings(None));

    assert_eq!((report.tokens(), report.reported), (5_500, Some(5_500)));
    assert_eq!((report.window, report.room, report.free()), (None, None, None));
}

/// C2: what is turned off is off, and an input that waits counts.
#[test]
fn the_checks_are_those_that_decide_and_what_waits_is_counted_apart() {
    let state = after(&[input(JoinMode::Join)]);
    let mut settings = settings(Some(40_000));
    settings.context.compact_idle_at = 0.0;

    let report = ContextReport::new(&state, MODEL, &Capabilities::default(), OVERHEAD, &settings);

    let usable = report.room.unwrap().usable();
    assert_eq!(report.checks.before_turn, Some(usable * 85 / 100));
    assert_eq!(report.checks.idle, None);
    assert!(report.incoming > 0 && report.parts.turns == 0, "{report:?}");
}

#[test]
fn a_model_without_tools_has_none_in_its_context() {
    let without = Capabilities { tools: false, ..Capabilities::default() };

    assert_eq!(report(&after(&[]), &without, Some(40_000)).parts.tools, 0);
}
