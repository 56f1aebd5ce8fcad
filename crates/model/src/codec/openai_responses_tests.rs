#![allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are used, and read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::codec::scenarios_tests::{play, play_fixture};
use crate::codec::{Fault, Protocol};
use crate::{AnswerPart, StopKind, StopReason, TokenCounts};

fn played(events: &[Value]) -> (Vec<AnswerPart>, Option<Fault>) {
    let frames: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    play(&mut Responses::default(), [frames.as_bytes()])
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn function(arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {}})
}

fn call_start(id: &str, name: &str) -> AnswerPart {
    AnswerPart::CallStart { wire_id: Some(id.to_owned()), name: name.to_owned() }
}

const CALL_STOP: AnswerPart = AnswerPart::CallStop { signature: None };

/// M17
#[test]
fn an_answer_comes_part_by_part() {
    let (parts, fault) = play_fixture(Protocol::OpenaiResponses, "calls.sse");

    let expected = [
        AnswerPart::TextStart,
        AnswerPart::TextDelta("I ".into()),
        AnswerPart::TextDelta("look.".into()),
        AnswerPart::TextStop,
        call_start("call_a1", "read_file"),
        AnswerPart::ArgumentsDelta(r#"{"pa"#.into()),
        AnswerPart::ArgumentsDelta(r#"th":"ä.txt"}"#.into()),
        CALL_STOP,
        call_start("call_b2", "exec"),
        AnswerPart::ArgumentsDelta(r#"{"command":"#.into()),
        AnswerPart::ArgumentsDelta(r#""ls"}"#.into()),
        CALL_STOP,
        AnswerPart::TextStart,
        AnswerPart::TextDelta("Both are".into()),
        AnswerPart::TextDelta(" on their way.".into()),
        AnswerPart::TextStop,
        AnswerPart::Usage(TokenCounts {
            input: Some(120),
            output: Some(30),
            cached: Some(100),
            written: None,
        }),
        AnswerPart::End(StopReason::new(StopKind::Finished, "completed")),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn the_proof_of_a_thought_is_all_that_has_to_go_back() {
    let (parts, _) = play_fixture(Protocol::OpenaiResponses, "reasoning.sse");

    let proof = r#"{"id":"rs_0","summary":[{"type":"summary_text","text":"Let me think."}],"encrypted_content":"gAAAAABo=="}"#;
    assert_eq!(parts[3], AnswerPart::ReasoningStop { signature: Some(proof.to_owned()) });
}

#[test]
fn a_thought_that_is_not_shown_still_has_its_proof() {
    let item = json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"});

    let (parts, fault) = played(&[added(0, item.clone()), done(0, item)]);

    let proof = r#"{"id":"r","summary":[],"encrypted_content":"x"}"#.to_owned();
    let expected = [AnswerPart::ReasoningStart, AnswerPart::ReasoningStop { signature: Some(proof) }];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn the_parts_of_a_summary_are_told_apart() {
    let part = json!({"type": "response.reasoning_summary_part.added", "output_index": 0});
    let text = |text| delta("reasoning_summary_text", 0, text);
    let item = json!({"type": "reasoning", "id": "r", "summary": []});

    let (parts, _) = played(&[part.clone(), text("a"), part, text("b"), done(0, item)]);

    let deltas = ["a", "\n\n", "b"].map(|delta| AnswerPart::ReasoningDelta(delta.to_owned()));
    let [start, stop] = [AnswerPart::ReasoningStart, AnswerPart::ReasoningStop { signature: None }];
    assert_eq!(parts, [&[start][..], &deltas, &[stop]].concat());
}

#[test]
fn what_comes_whole_and_not_in_deltas_is_taken_from_the_end() {
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "a"}]});

    let (parts, fault) = played(&[
        done(0, message),
        added(1, function("")),
        done(1, function("{}")),
        done(2, function("[]")),
        completed(),
    ]);

    let expected = [
        AnswerPart::TextStart,
        AnswerPart::TextDelta("a".into()),
        AnswerPart::TextStop,
        call_start("c", "f"),
        AnswerPart::ArgumentsDelta("{}".into()),
        CALL_STOP,
        call_start("c", "f"),
        AnswerPart::ArgumentsDelta("[]".into()),
        CALL_STOP,
        AnswerPart::End(StopReason::new(StopKind::Finished, "completed")),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

/// M8
#[test]
fn events_that_make_no_sense_are_faults() {
    let cases = [
        vec![delta("function_call_arguments", 0, "{}")],
        vec![added(0, function("")), delta("function_call_arguments", 1, "{}")],
        vec![added(0, function("")), delta("output_text", 1, "a")],
        vec![added(0, function("")), added(1, function(""))],
        vec![added(0, function("")), completed()],
        vec![added(0, json!({"type": "function_call", "call_id": "c"}))],
    ];
    for events in cases {
        let (_, fault) = played(&events);

        assert!(matches!(fault, Some(Fault::Unreadable(_))), "{events:?}: {fault:?}");
    }
}

/// M9
#[test]
fn a_call_that_was_cut_by_the_limit_is_never_complete() {
    let details = json!({"incomplete_details": {"reason": "max_output_tokens"}});

    let (parts, fault) = played(&[
        added(0, function("")),
        delta("function_call_arguments", 0, "{}"),
        json!({"type": "response.incomplete", "response": details}),
    ]);

    let end = AnswerPart::End(StopReason::new(StopKind::Length, "max_output_tokens"));
    assert_eq!(
        (parts, fault),
        (vec![call_start("c", "f"), AnswerPart::ArgumentsDelta("{}".into()), end], None)
    );
}

#[test]
fn an_answer_that_a_filter_stopped_is_refused() {
    let details = json!({"incomplete_details": {"reason": "content_filter"}});

    let (parts, _) = played(&[json!({"type": "response.incomplete", "response": details})]);

    assert_eq!(parts, [AnswerPart::End(StopReason::new(StopKind::Refused, "content_filter"))]);
}

/// M8 M15
#[test]
fn a_failed_answer_says_why_and_what_it_cost() {
    let error = json!({"code": "rate_limit_exceeded", "message": "Please try again in 20ms."});
    let failed = json!({"error": error, "usage": {"input_tokens": 4}});
    let wrapped =
        json!({"type": "error", "error": {"type": "invalid_request_error", "code": "x", "message": "m"}});

    let (parts, fault) = played(&[json!({"type": "response.failed", "response": failed})]);
    let (_, other) = played(&[wrapped]);

    assert_eq!(parts, [AnswerPart::Usage(TokenCounts { input: Some(4), ..TokenCounts::default() })]);
    let Some(Fault::Provider(said)) = fault else { panic!("{fault:?}") };
    assert_eq!(
        (said.codes[0].as_str(), said.delay),
        ("rate_limit_exceeded", Some(std::time::Duration::from_millis(20)))
    );
    let Some(Fault::Provider(said)) = other else { panic!("{other:?}") };
    assert_eq!(said.codes, ["invalid_request_error", "x"]);
}
