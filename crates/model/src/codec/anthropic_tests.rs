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
    let frames: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"])).collect();
    play(&mut Messages::default(), [frames.as_bytes()])
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn ending(reason: &str) -> [Value; 2] {
    [json!({"type": "message_delta", "delta": {"stop_reason": reason}}), json!({"type": "message_stop"})]
}

fn call_start(id: &str, name: &str) -> AnswerPart {
    AnswerPart::CallStart { wire_id: Some(id.to_owned()), name: name.to_owned() }
}

/// M17
#[test]
fn an_answer_comes_part_by_part() {
    let (parts, fault) = play_fixture(Protocol::Anthropic, "calls.sse");

    let begun = TokenCounts { input: Some(120), output: None, cached: Some(100), written: Some(8) };
    let expected = [
        AnswerPart::Usage(begun),
        AnswerPart::TextStart,
        AnswerPart::TextDelta("I ".into()),
        AnswerPart::TextDelta("look.".into()),
        AnswerPart::TextStop,
        call_start("toolu_01A", "read_file"),
        AnswerPart::ArgumentsDelta(r#"{"pa"#.into()),
        AnswerPart::ArgumentsDelta(r#"th":"ä.txt"}"#.into()),
        AnswerPart::CallStop { signature: None },
        call_start("toolu_01B", "exec"),
        AnswerPart::ArgumentsDelta(r#"{"command":"#.into()),
        AnswerPart::ArgumentsDelta(r#""ls"}"#.into()),
        AnswerPart::CallStop { signature: None },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("Both are".into()),
        AnswerPart::TextDelta(" on their way.".into()),
        AnswerPart::TextStop,
        AnswerPart::Usage(TokenCounts { output: Some(30), ..begun }),
        AnswerPart::End(StopReason::new(StopKind::Finished, "tool_use")),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn a_thought_carries_its_proof_and_a_hidden_one_what_hides_it() {
    let (shown, _) = play_fixture(Protocol::Anthropic, "reasoning.sse");
    let (hidden, _) = play_fixture(Protocol::Anthropic, "redacted.sse");

    assert_eq!(shown[4], AnswerPart::ReasoningStop { signature: Some("EqQBCkYIBxgCKkD=".into()) });
    assert_eq!(hidden[1], AnswerPart::ReasoningStart);
    assert_eq!(hidden[2], AnswerPart::ReasoningStop { signature: Some("redacted:EmwKAhgBEgy3va=".into()) });
}

#[test]
fn arguments_that_come_with_the_start_alone_are_kept_as_they_are() {
    let begun = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"b":1, "a":2}}}"#;
    let frames = format!("data: {begun}\n\ndata: {}\n\n", stop(0));

    let (parts, fault) = play(&mut Messages::default(), [frames.as_bytes()]);

    let arguments = AnswerPart::ArgumentsDelta(r#"{"b":1, "a":2}"#.into());
    let expected = [call_start("t", "f"), arguments, AnswerPart::CallStop { signature: None }];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn blocks_and_deltas_of_unknown_kinds_are_passed_over() {
    let (parts, fault) = played(&[
        begin(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(0),
        begin(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "citations_delta", "citation": {}})),
        stop(1),
    ]);

    assert_eq!((parts, fault), (vec![], None));
}

/// M8
#[test]
fn events_that_make_no_sense_are_faults() {
    let text = begin(0, json!({"type": "text", "text": ""}));
    let cases = [
        vec![delta(0, json!({"type": "text_delta", "text": "a"}))],
        vec![text.clone(), delta(1, json!({"type": "text_delta", "text": "a"}))],
        vec![text.clone(), delta(0, json!({"type": "input_json_delta", "partial_json": "{}"}))],
        vec![text.clone(), begin(1, json!({"type": "text", "text": ""}))],
        vec![stop(0)],
        vec![begin(0, json!({"type": "tool_use", "id": "t", "input": {}}))],
        vec![json!({"type": "message_stop"})],
        [&[text][..], &ending("end_turn")].concat(),
    ];
    for events in cases {
        let (_, fault) = played(&events);

        assert!(matches!(fault, Some(Fault::Unreadable(_))), "{events:?}: {fault:?}");
    }
}

#[test]
fn stop_reasons_mean_what_they_say() {
    let cases = [
        ("end_turn", StopKind::Finished),
        ("tool_use", StopKind::Finished),
        ("stop_sequence", StopKind::Finished),
        ("pause_turn", StopKind::Finished),
        ("max_tokens", StopKind::Length),
        ("model_context_window_exceeded", StopKind::Length),
        ("refusal", StopKind::Refused),
    ];
    for (word, kind) in cases {
        let (parts, _) = played(&ending(word));

        assert_eq!(parts, [AnswerPart::End(StopReason::new(kind, word))]);
    }
}

#[test]
fn input_that_is_counted_again_at_the_end_replaces_what_was_said_before() {
    let (parts, _) = played(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 3}}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"input_tokens": 7, "output_tokens": 2}}),
    ]);

    let tokens = TokenCounts { input: Some(10), output: Some(2), cached: Some(3), written: None };
    assert_eq!(parts.last(), Some(&AnswerPart::Usage(tokens)));
}
