//! The same scenarios over every protocol, from the bytes that its servers send.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::*;
use crate::{StopKind, StopReason, TokenCounts};

pub(super) const PROTOCOLS: [Protocol; 4] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

impl Protocol {
    fn folder(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// The bytes of a fixture.
pub(super) fn fixture(protocol: Protocol, name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{}/{name}", env!("CARGO_MANIFEST_DIR"), protocol.folder());
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What comes of bytes that come in these pieces.
pub(super) fn play<'a>(
    decoder: &mut dyn Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<AnswerPart>, Option<Fault>) {
    let (mut frames, mut parts) = (Frames::new(Framing::Events), VecDeque::new());
    for piece in pieces {
        frames.push(piece);
        loop {
            let decoded = match frames.next() {
                Ok(Some(frame)) => decoder.decode(frame, &mut parts),
                Ok(None) => break,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = decoded {
                return (parts.into(), Some(fault));
            }
            if matches!(parts.back(), Some(AnswerPart::End(_))) {
                return (parts.into(), None);
            }
        }
    }
    (parts.into(), None)
}

/// What comes of a fixture.
pub(super) fn play_fixture(protocol: Protocol, name: &str) -> (Vec<AnswerPart>, Option<Fault>) {
    let bytes = fixture(protocol, name);
    play(&mut *protocol.decoder(&Quirks::default()), [bytes.as_slice()])
}

/// A block of an answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Text(String),
    Thought(String),
    Call { name: String, arguments: String },
}

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn call(name: &str, arguments: &str) -> Block {
    Block::Call { name: name.to_owned(), arguments: arguments.to_owned() }
}

/// The blocks of parts, with a check that they come one after the other.
fn blocks(parts: &[AnswerPart]) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for part in parts {
        match (part, &mut open) {
            (AnswerPart::TextStart, None) => open = Some(text("")),
            (AnswerPart::ReasoningStart, None) => open = Some(Block::Thought(String::new())),
            (AnswerPart::CallStart { name, .. }, None) => open = Some(call(name, "")),
            (AnswerPart::TextDelta(delta), Some(Block::Text(text)))
            | (AnswerPart::ReasoningDelta(delta), Some(Block::Thought(text)))
            | (AnswerPart::ArgumentsDelta(delta), Some(Block::Call { arguments: text, .. })) => {
                assert!(!delta.is_empty(), "a delta without anything in it");
                text.push_str(delta);
            }
            (AnswerPart::TextStop, Some(Block::Text(_)))
            | (AnswerPart::ReasoningStop { .. }, Some(Block::Thought(_)))
            | (AnswerPart::CallStop { .. }, Some(Block::Call { .. })) => blocks.extend(open.take()),
            (AnswerPart::Usage(_) | AnswerPart::Limits(_), _) | (AnswerPart::End(_), None) => {}
            (part, open) => panic!("{part:?} comes while {open:?} is open"),
        }
    }
    blocks
}

fn stop(parts: &[AnswerPart]) -> Option<StopKind> {
    match parts.last() {
        Some(AnswerPart::End(StopReason { kind, .. })) => Some(*kind),
        _ => None,
    }
}

fn usage(parts: &[AnswerPart]) -> Option<TokenCounts> {
    parts.iter().rev().find_map(|part| match part {
        AnswerPart::Usage(tokens) => Some(*tokens),
        _ => None,
    })
}

/// M17
#[test]
fn an_answer_is_read_as_what_it_is_in_every_protocol() {
    let calls =
        [text("I look."), call("read_file", r#"{"path":"ä.txt"}"#), call("exec", r#"{"command":"ls"}"#)];
    let scenarios = [
        ("text.sse", vec![text("Grüß dich, 世界.")], StopKind::Finished),
        ("calls.sse", calls.to_vec(), StopKind::Finished),
        ("empty_arguments.sse", vec![call("task_list", "")], StopKind::Finished),
        ("refusal.sse", vec![text("I can't do that.")], StopKind::Refused),
        ("length.sse", vec![text("It goes on")], StopKind::Length),
        (
            "reasoning.sse",
            vec![Block::Thought("Let me think.".to_owned()), text("Done.")],
            StopKind::Finished,
        ),
    ];
    for protocol in PROTOCOLS {
        for (name, expected, kind) in &scenarios {
            let mut expected = expected.clone();
            if *name == "calls.sse" && protocol != Protocol::OpenaiChat {
                expected.push(text("Both are on their way."));
            }

            let (parts, fault) = play_fixture(protocol, name);

            assert_eq!(fault, None, "{protocol:?} {name}");
            let mut found = blocks(&parts);
            for block in &mut found {
                if let Block::Call { arguments, .. } = block {
                    // Gemini sends an object where the others send nothing.
                    *arguments = arguments.replace("{}", "");
                }
            }
            assert_eq!(found, expected, "{protocol:?} {name}");
            assert_eq!(stop(&parts), Some(*kind), "{protocol:?} {name}");
            let usage = usage(&parts).unwrap_or_default();
            let counted = (usage.input, usage.output, usage.cached);
            assert_eq!(counted, (Some(120), Some(30), Some(100)), "{protocol:?} {name}");
        }
    }
}

/// M8
#[test]
fn an_error_event_ends_an_answer_whatever_follows_in_every_protocol() {
    for protocol in PROTOCOLS {
        let (parts, fault) = play_fixture(protocol, "error_event.sse");

        assert_eq!(stop(&parts), None, "{protocol:?}");
        assert!(parts.contains(&AnswerPart::TextDelta("Half".into())), "{protocol:?}");
        let Some(Fault::Provider(said)) = fault else { panic!("{protocol:?}: {fault:?}") };
        assert!(!said.codes.is_empty() && !said.message.is_empty(), "{protocol:?}: {said:?}");
    }
}

/// M8 M9 M17
#[test]
fn an_answer_that_is_cut_at_any_byte_is_the_beginning_of_the_whole_one() {
    for protocol in PROTOCOLS {
        let bytes = fixture(protocol, "calls.sse");
        let (whole, _) = play_fixture(protocol, "calls.sse");
        let ends_at = (0..bytes.len()).find(|end| {
            stop(&play(&mut *protocol.decoder(&Quirks::default()), [&bytes[..*end]]).0).is_some()
        });
        let mut calls_at = Vec::new();

        for end in 0..bytes.len() {
            let (parts, fault) = play(&mut *protocol.decoder(&Quirks::default()), [&bytes[..end]]);

            assert_eq!(fault, None, "{protocol:?} cut at {end}");
            assert!(whole.starts_with(&parts), "{protocol:?} cut at {end}: {parts:?}");
            let calls = parts.iter().filter(|part| matches!(part, AnswerPart::CallStop { .. })).count();
            calls_at.resize(calls.max(calls_at.len()), end);
        }

        // The last line end of the end mark's frame, or the one before it, is the earliest place.
        assert!(ends_at.is_none_or(|end| bytes.len() - end <= 1), "{protocol:?}: it ends at {ends_at:?}");
        let completing = calls_at.iter().map(|end| last_frame(&bytes[..*end])).collect::<Vec<_>>();
        let marks = completing_marks(protocol);
        assert_eq!(completing.len(), 2, "{protocol:?}");
        for (frame, mark) in completing.iter().zip(marks) {
            assert!(frame.contains(mark), "{protocol:?}: a call is complete at {frame}, not at {mark}");
        }
    }
}

/// What stands in the frame that completes the first call, and in the one that completes the second.
fn completing_marks(protocol: Protocol) -> [&'static str; 2] {
    match protocol {
        Protocol::OpenaiChat => [r#""id":"call_b2""#, r#""finish_reason":"tool_calls""#],
        Protocol::OpenaiResponses => ["event: response.output_item.done"; 2],
        Protocol::Anthropic => ["event: content_block_stop"; 2],
        Protocol::Gemini => [r#""name":"read_file""#, r#""name":"exec""#],
    }
}

fn last_frame(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.trim_end().rsplit("\n\n").next().unwrap().rsplit("\r\n\r\n").next().unwrap().to_owned()
}

/// M17
#[test]
fn it_makes_no_difference_whether_an_answer_comes_byte_by_byte() {
    for protocol in PROTOCOLS {
        for name in ["text.sse", "calls.sse", "reasoning.sse", "error_event.sse"] {
            let bytes = fixture(protocol, name);

            let single = play(&mut *protocol.decoder(&Quirks::default()), bytes.chunks(1));

            assert_eq!(single, play_fixture(protocol, name), "{protocol:?} {name}");
        }
    }
}

/// M8
#[test]
fn a_frame_that_can_not_be_read_is_a_fault_with_its_beginning() {
    for protocol in PROTOCOLS {
        let frame = format!("data: {{\"half\": \"{}\n\n", "ü".repeat(1000));

        let (_, fault) = play(&mut *protocol.decoder(&Quirks::default()), [frame.as_bytes()]);

        let Some(Fault::Unreadable(beginning)) = fault else { panic!("{protocol:?}: {fault:?}") };
        assert!(beginning.starts_with("{\"half\": \"ü") && beginning.chars().count() == 200, "{beginning}");
    }
}

#[test]
fn what_nobody_knows_is_passed_over() {
    for protocol in PROTOCOLS {
        let bytes =
            b": a comment\n\ndata: \n\nevent: new\ndata: {\"type\":\"new\",\"novel\":{\"x\":[1]}}\n\n";

        let played = play(&mut *protocol.decoder(&Quirks::default()), [bytes.as_slice()]);

        assert_eq!(played, (vec![], None), "{protocol:?}");
    }
}

/// A call whose arguments come in many deltas, or in one large frame where a protocol has no deltas.
fn long_call(protocol: Protocol, deltas: usize) -> Vec<String> {
    const DELTA: &str = "abcdefghij";
    let many = |delta: &str| std::iter::repeat_n(format!("data: {delta}\n\n"), deltas);
    let begun =
        |begin: &str, delta: &str| std::iter::once(format!("data: {begin}\n\n")).chain(many(delta)).collect();
    match protocol {
        Protocol::OpenaiChat => begun(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abcdefghij"}}]}}]}"#,
        ),
        Protocol::OpenaiResponses => begun(
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"abcdefghij"}"#,
        ),
        Protocol::Anthropic => begun(
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"abcdefghij"}}"#,
        ),
        Protocol::Gemini => {
            let mut pieces = vec![
                r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":""#
                    .to_owned(),
            ];
            pieces.extend(std::iter::repeat_n(DELTA.to_owned(), deltas));
            pieces.push("\"}}]}}]}\n\n".to_owned());
            pieces
        }
    }
}

/// M17
#[test]
fn a_call_costs_its_length_however_many_deltas_it_has() {
    let time = |protocol: Protocol, deltas: usize| {
        let pieces = long_call(protocol, deltas);
        let mut decoder = protocol.decoder(&Quirks::default());
        let begun = Instant::now();
        let (parts, fault) = play(&mut *decoder, pieces.iter().map(String::as_bytes));
        let time = begun.elapsed();
        assert_eq!(fault, None);
        let bytes = parts.iter().map(|part| match part {
            AnswerPart::ArgumentsDelta(delta) => delta.len(),
            _ => 0,
        });
        assert!(bytes.sum::<usize>() >= deltas * 10, "{protocol:?}");
        time
    };
    for protocol in PROTOCOLS {
        // Counted together, so that both take long enough to be held up by whatever else the machine does.
        let small: Duration = (0..32).map(|_| time(protocol, 3_000)).sum();

        // In proportion it would be as long; with the square of the length, 32 times.
        let is_fast = (0..3).any(|_| time(protocol, 32 * 3_000) < 7 * small);

        assert!(is_fast, "{protocol:?}: over seven times as long as {small:?}, for as much in short calls");
    }
}
