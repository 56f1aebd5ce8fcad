#![allow(
    clippy::needless_pass_by_value,
    reason = "values are made where they are used, and read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::codec::scenarios_tests::{play, play_fixture};
use crate::codec::{Fault, Protocol};
use crate::{AnswerPart, StopKind, StopReason, TokenCounts};

fn played(frames: &[Value]) -> (Vec<AnswerPart>, Option<Fault>) {
    let frames: String = frames.iter().map(|frame| format!("data: {frame}\r\n\r\n")).collect();
    play(&mut Generated::default(), [frames.as_bytes()])
}

fn pieces(pieces: Value) -> Value {
    json!({"candidates": [{"content": {"parts": pieces}}]})
}

fn finish(word: &str) -> Value {
    json!({"candidates": [{"finishReason": word}]})
}

fn call_start(id: Option<&str>, name: &str) -> AnswerPart {
    AnswerPart::CallStart { wire_id: id.map(str::to_owned), name: name.to_owned() }
}

/// M17
#[test]
fn an_answer_comes_part_by_part() {
    let (parts, fault) = play_fixture(Protocol::Gemini, "calls.sse");

    let tokens =
        |output| TokenCounts { input: Some(120), output: Some(output), cached: Some(100), written: None };
    let expected = [
        AnswerPart::TextStart,
        AnswerPart::TextDelta("I ".into()),
        AnswerPart::Usage(tokens(5)),
        AnswerPart::TextDelta("look.".into()),
        AnswerPart::TextStop,
        call_start(None, "read_file"),
        AnswerPart::ArgumentsDelta(r#"{"path":"ä.txt"}"#.into()),
        AnswerPart::CallStop { signature: Some("CiQBjz1rX0E=".into()) },
        call_start(None, "exec"),
        AnswerPart::ArgumentsDelta(r#"{"command":"ls"}"#.into()),
        AnswerPart::CallStop { signature: None },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("Both are".into()),
        AnswerPart::TextDelta(" on their way.".into()),
        AnswerPart::Usage(tokens(30)),
        AnswerPart::TextStop,
        AnswerPart::End(StopReason::new(StopKind::Finished, "STOP")),
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn several_calls_may_come_in_one_frame_with_their_ids() {
    let calls = json!([
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}, "thoughtSignature": "s"},
        {"functionCall": {"id": "b", "name": "g"}},
    ]);

    let (parts, fault) = played(&[pieces(calls)]);

    let expected = [
        call_start(Some("a"), "f"),
        AnswerPart::ArgumentsDelta(r#"{"x":1}"#.into()),
        AnswerPart::CallStop { signature: Some("s".into()) },
        call_start(Some("b"), "g"),
        AnswerPart::CallStop { signature: None },
    ];
    assert_eq!((parts, fault), (expected.to_vec(), None));
}

#[test]
fn a_thought_ends_where_something_else_begins() {
    let (parts, _) = played(&[
        pieces(
            json!([{"text": "a", "thought": true}, {"text": "", "thought": true, "thoughtSignature": "s"}]),
        ),
        pieces(json!([{"text": "b"}, {"executableCode": {"code": "x"}}])),
        finish("STOP"),
    ]);

    let expected = [
        AnswerPart::ReasoningStart,
        AnswerPart::ReasoningDelta("a".into()),
        AnswerPart::ReasoningStop { signature: Some("s".into()) },
        AnswerPart::TextStart,
        AnswerPart::TextDelta("b".into()),
        AnswerPart::TextStop,
        AnswerPart::End(StopReason::new(StopKind::Finished, "STOP")),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn a_prompt_that_is_blocked_is_refused() {
    let (parts, fault) = play_fixture(Protocol::Gemini, "blocked.sse");

    let usage = AnswerPart::Usage(TokenCounts { input: Some(120), ..TokenCounts::default() });
    let end = AnswerPart::End(StopReason::new(StopKind::Refused, "PROHIBITED_CONTENT"));
    assert_eq!((parts, fault), (vec![usage, end], None));
}

#[test]
fn finish_reasons_mean_what_they_say() {
    let cases = [
        ("STOP", Some(StopKind::Finished)),
        ("MAX_TOKENS", Some(StopKind::Length)),
        ("SAFETY", Some(StopKind::Refused)),
        ("RECITATION", Some(StopKind::Refused)),
        ("SPII", Some(StopKind::Refused)),
        ("MALFORMED_FUNCTION_CALL", None),
        ("OTHER", None),
    ];
    for (word, kind) in cases {
        let (parts, fault) = played(&[finish(word)]);

        assert_eq!(
            parts.last().cloned(),
            kind.map(|kind| AnswerPart::End(StopReason::new(kind, word))),
            "{word}"
        );
        let code = match fault {
            Some(Fault::Provider(said)) => said.codes.first().cloned(),
            fault => fault.map(|fault| format!("{fault:?}")),
        };
        assert_eq!(code, kind.is_none().then(|| word.to_owned()));
    }
}

/// M8
#[test]
fn a_call_without_a_name_is_a_fault() {
    let (_, fault) = played(&[pieces(json!([{"functionCall": {"args": {}}}]))]);

    assert!(matches!(fault, Some(Fault::Unreadable(_))), "{fault:?}");
}
