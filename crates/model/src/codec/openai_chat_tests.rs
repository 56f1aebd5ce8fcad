#![allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are used, and read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::codec::scenarios_tests::{play, play_fixture};
use crate::codec::{Fault, Protocol, Quirks};
use crate::{AnswerPart, StopKind, StopReason, TokenCounts};

fn played(quirks: &Quirks, chunks: &[Value]) -> (Vec<AnswerPart>, Option<Fault>) {
    let frames: String = chunks
        .iter()
        .map(|chunk| match chunk {
            Value::String(text) => format!("data: {text}\n\n"),
            chunk => format!("data: {chunk}\n\n"),
        })
        .collect();
    play(&mut Chat::new(quirks), [frames.as_bytes()])
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn calls(calls: Value) -> Value {
    delta(json!({"tool_calls": calls}))
}

fn finish(word: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
}

fn start(id: Option<&str>, name: &str) -> AnswerPart {
    AnswerPart::CallStart { wire_id: id.map(str::to_owned), name: name.to_owned() }
}

fn arguments(text: &str) -> AnswerPart {
    AnswerPart::ArgumentsDelta(text.to_owned())
}

fn end(kind: StopKind, word: &str) -> AnswerPart {
    AnswerPart::End(StopReason::new(kind, word))
}

const CALL_STOP: AnswerPart = AnswerPart::CallStop { signature: None };

/// M17
#[test]
fn calls_come_with_their_ids_and_every_delta_as_it_came() {
    let (parts, fault) = play_fixture(Protocol::OpenaiChat, "calls.sse");

    let tokens = TokenCounts { input: Some(120), output: Some(30), cached: Some(100), written: None };
    let expected = [
        AnswerPart::TextStart,
        AnswerPart::TextDelta("I ".into()),
        AnswerPart::TextDelta("look.".into()),
        AnswerPart::TextStop,
        start(Some("call_a1"), "read_file"),
        arguments(r#"{"pa"#),
        arguments(r#"th":"ä.txt"}"#),
        CALL_STOP,
        start(Some("call_b2"), "exec"),
        arguments(r#"{"command":"#),
        arguments(r#""ls"}"#),
        CALL_STOP,
        AnswerPart::Usage(tokens),
        end(StopKind::Finished, "tool_calls"),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn a_thought_says_whose_it_is_with_an_empty_proof() {
    let chunks = [
        delta(json!({"reasoning": "a", "reasoning_content": "a"})),
        delta(json!({"reasoning": "b"})),
        delta(json!({"content": "c"})),
        finish("stop"),
        json!("[DONE]"),
    ];

    let (parts, _) = played(&Quirks::default(), &chunks);

    let expected = [
        AnswerPart::ReasoningStart,
        AnswerPart::ReasoningDelta("a".into()),
        AnswerPart::ReasoningDelta("b".into()),
        AnswerPart::ReasoningStop { signature: Some(String::new()) },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("c".into()),
        AnswerPart::TextStop,
        end(StopKind::Finished, "stop"),
    ];
    assert_eq!(parts, expected);
}

/// M8
#[test]
fn the_end_mark_without_a_finish_reason_is_a_fault() {
    let (parts, fault) = played(&Quirks::default(), &[delta(json!({"content": "a"})), json!("[DONE]")]);

    assert_eq!(fault, Some(Fault::Unreadable("[DONE]".to_owned())));
    assert_eq!(parts, [AnswerPart::TextStart, AnswerPart::TextDelta("a".into())]);
}

/// M8
#[test]
fn a_finish_reason_without_the_end_mark_is_no_end_except_where_a_server_sends_none() {
    let chunks = [
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}),
    ];
    let tokens = TokenCounts { input: Some(3), ..TokenCounts::default() };
    let text = [AnswerPart::TextStart, AnswerPart::TextDelta("a".into())];

    let (parts, _) = played(&Quirks::default(), &chunks);
    let (ended, _) = played(&Quirks { ends_at_finish_reason: true, ..Quirks::default() }, &chunks);

    let expected = [&text[..], &[AnswerPart::Usage(tokens), AnswerPart::TextStop]].concat();
    assert_eq!(parts, expected);
    assert_eq!(ended, [&expected[..], &[end(StopKind::Finished, "stop")]].concat());
}

#[test]
fn servers_that_write_calls_in_their_own_way_are_understood() {
    let one = [start(Some("a"), "f"), arguments("{}"), CALL_STOP];
    let two = [&one[..], &[start(Some("b"), "g"), arguments("{\"x\":1}"), CALL_STOP]].concat();
    let cases = [
        (
            "id and name again in later deltas",
            vec![
                calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}])),
                calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
            ],
            one.to_vec(),
        ),
        (
            "an empty id and name in later deltas",
            vec![
                calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": null}}])),
                calls(json!([{"index": 0, "id": "", "function": {"name": "", "arguments": "{}"}}])),
            ],
            one.to_vec(),
        ),
        (
            "whole calls in one delta",
            vec![calls(json!([
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{\"x\":1}"}},
            ]))],
            two.clone(),
        ),
        (
            "no index",
            vec![
                calls(json!([{"id": "a", "function": {"name": "f", "arguments": "{"}}])),
                calls(json!([{"function": {"arguments": "}"}}])),
                calls(json!([{"id": "b", "function": {"name": "g", "arguments": "{\"x\":1}"}}])),
            ],
            [&[start(Some("a"), "f"), arguments("{"), arguments("}"), CALL_STOP][..], &two[3..]].concat(),
        ),
        (
            "the same index for every call",
            vec![
                calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
                calls(json!([{"index": 0, "id": "b", "function": {"name": "g", "arguments": {"x": 1}}}])),
            ],
            two.clone(),
        ),
        (
            "neither index nor id",
            vec![calls(json!([{"function": {"name": "f", "arguments": {}}}, {"function": {"name": "g"}}]))],
            vec![start(None, "f"), arguments("{}"), CALL_STOP, start(None, "g"), CALL_STOP],
        ),
    ];
    for (what, mut chunks, expected) in cases {
        chunks.push(finish("tool_calls"));

        let (parts, fault) = played(&Quirks::default(), &chunks);

        assert_eq!((parts, fault), (expected, None), "{what}");
    }
}

/// M9
#[test]
fn text_beside_a_call_waits_until_the_call_is_complete() {
    let chunks = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}])),
        delta(json!({"content": "x"})),
        calls(json!([{"index": 0, "function": {"arguments": "}"}}])),
        delta(json!({"content": "y"})),
        finish("tool_calls"),
        json!("[DONE]"),
    ];

    let (parts, fault) = played(&Quirks::default(), &chunks);

    let expected = [
        start(Some("a"), "f"),
        arguments("{"),
        arguments("}"),
        CALL_STOP,
        AnswerPart::TextStart,
        AnswerPart::TextDelta("x".into()),
        AnswerPart::TextDelta("y".into()),
        AnswerPart::TextStop,
        end(StopKind::Finished, "tool_calls"),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

/// M8
#[test]
fn calls_that_make_no_sense_are_faults() {
    let first = calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]));
    let second = calls(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}]));
    let cases = [
        vec![calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}]))],
        vec![calls(json!([{"index": 0, "function": {"arguments": "{}"}}]))],
        vec![first.clone(), second, calls(json!([{"index": 0, "function": {"arguments": "{}"}}]))],
        vec![finish("stop"), first],
    ];
    for chunks in cases {
        let (_, fault) = played(&Quirks::default(), &chunks);

        assert!(matches!(fault, Some(Fault::Unreadable(_))), "{chunks:?}: {fault:?}");
    }
}

#[test]
fn finish_reasons_mean_the_same_in_whatever_word() {
    let cases = [
        ("stop", Some(StopKind::Finished)),
        ("tool_calls", Some(StopKind::Finished)),
        ("function_call", Some(StopKind::Finished)),
        ("eos", Some(StopKind::Finished)),
        ("length", Some(StopKind::Length)),
        ("max_tokens", Some(StopKind::Length)),
        ("content_filter", Some(StopKind::Refused)),
        ("SAFETY", Some(StopKind::Refused)),
        ("error", None),
    ];
    for (word, kind) in cases {
        let (parts, fault) = played(&Quirks::default(), &[finish(word), json!("[DONE]")]);

        assert_eq!(parts.last().cloned(), kind.map(|kind| end(kind, word)), "{word}");
        assert_eq!(matches!(fault, Some(Fault::Provider(_))), kind.is_none(), "{word}: {fault:?}");
    }
}

#[test]
fn usage_is_read_in_every_dialect_and_given_once() {
    let usage =
        json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4, "total_tokens": 11});
    let chunk = json!({"choices": [], "usage": usage});

    let (parts, _) = played(&Quirks::default(), &[chunk.clone(), chunk, json!({"choices": [], "usage": {}})]);

    let tokens = TokenCounts { input: Some(9), output: Some(2), cached: Some(4), written: None };
    assert_eq!(parts, [AnswerPart::Usage(tokens)]);
}

/// M8
#[test]
fn an_error_is_one_wherever_it_stands() {
    let cases = [
        json!({"error": {"message": "m", "code": 502}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
        json!({"error": "m"}),
        json!({"object": "error", "message": "m", "code": 502}),
    ];
    for chunk in cases {
        let (_, fault) = played(&Quirks::default(), std::slice::from_ref(&chunk));

        let Some(Fault::Provider(said)) = fault else { panic!("{chunk}: {fault:?}") };
        assert_eq!(said.message, "m", "{chunk}");
    }
}
