use serde_json::json;

use super::*;

const ALL: [Protocol; 4] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

fn everything() -> ScriptedAnswer {
    let said =
        ScriptedAnswer::text("Good morning, everybody.").thought("They greet me.").usage(100, 20).cached(60);
    said.call("read_file", json!({"path": "notes/today.md"})).call("task_list", json!({}))
}

/// The data of every frame; of one that is no JSON, its text.
fn data(said: &ScriptedAnswer, protocol: Protocol) -> Vec<Value> {
    let text = String::from_utf8(said.bytes(protocol)).unwrap().replace("\r\n", "\n");
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into())).collect()
}

/// All strings at this place, joined.
fn joined(data: &[Value], pointer: &str) -> String {
    data.iter().filter_map(|value| value.pointer(pointer)?.as_str()).collect()
}

fn kinds(data: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = data.iter().map(|value| value["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn the_frames_of_an_answer_are_its_bytes() {
    for protocol in ALL {
        let frames = everything().frames(protocol);

        assert_eq!(frames.concat(), everything().bytes(protocol));
        assert!(frames.iter().all(|frame| frame.ends_with(b"\n\n") || frame.ends_with(b"\r\n\r\n")));
    }
}

#[test]
fn chat_begins_with_the_role_and_ends_with_reason_usage_and_done() {
    let data = data(&everything(), Protocol::OpenaiChat);

    assert_eq!(data[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(joined(&data, "/choices/0/delta/reasoning_content"), "They greet me.");
    assert_eq!(joined(&data, "/choices/0/delta/content"), "Good morning, everybody.");
    let arguments = joined(&data, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"path":"notes/today.md"}{}"#);
    let [.., reason, usage, done] = data.as_slice() else { panic!("{data:?}") };
    assert_eq!(reason["choices"][0]["finish_reason"], "tool_calls");
    let counts = json!({
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
    });
    assert_eq!((&usage["choices"], &usage["usage"]), (&json!([]), &counts));
    assert_eq!(done, "[DONE]");
}

#[test]
fn anthropic_opens_and_closes_every_block() {
    let data = data(
        &ScriptedAnswer::text("Good morning.").thought("Hm, what?").usage(100, 20).cached(60),
        Protocol::Anthropic,
    );

    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected =
        [&["message_start", "ping"][..], &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(kinds(&data), expected);
    assert_eq!(joined(&data, "/delta/thinking"), "Hm, what?");
    assert_eq!(joined(&data, "/delta/text"), "Good morning.");
    let usage = &data[0]["message"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(40), &json!(60)));
    assert_eq!(data[data.len() - 2]["usage"], json!({"output_tokens": 20}));
}

#[test]
fn anthropic_names_its_events_and_splits_arguments() {
    let said = everything();
    let text = String::from_utf8(said.bytes(Protocol::Anthropic)).unwrap();
    let data = data(&said, Protocol::Anthropic);

    assert!(text.starts_with("event: message_start\ndata: {"), "{text}");
    assert_eq!(joined(&data, "/delta/partial_json"), r#"{"path":"notes/today.md"}{}"#);
    assert_eq!(joined(&data, "/content_block/id"), "toolu_1toolu_2");
}

#[test]
fn responses_announce_and_finish_every_item() {
    let data = data(&everything(), Protocol::OpenaiResponses);

    let call = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ];
    let expected = [
        &["response.created", "response.in_progress", "response.output_item.added"][..],
        &["response.reasoning_summary_part.added", "response.reasoning_summary_text.delta"],
        &["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"],
        &["response.output_item.done", "response.output_item.added", "response.content_part.added"],
        &["response.output_text.delta", "response.output_text.done", "response.content_part.done"],
        &["response.output_item.done"],
        &call,
        &call,
        &["response.completed"],
    ];
    assert_eq!(kinds(&data), expected.concat());
    let last = &data[data.len() - 1]["response"];
    assert_eq!((&last["status"], &last["usage"]["input_tokens"]), (&json!("completed"), &json!(100)));
    assert_eq!(last["output"][2]["arguments"], r#"{"path":"notes/today.md"}"#);
    assert!(data.iter().enumerate().all(|(number, event)| event["sequence_number"] == number));
}

#[test]
fn gemini_sends_calls_whole_and_its_reason_in_the_last_frame() {
    let data = data(&everything(), Protocol::Gemini);

    let part = "/candidates/0/content/parts/0";
    assert_eq!(joined(&data, &format!("{part}/text")), "They greet me.Good morning, everybody.");
    let calls: Vec<_> =
        data.iter().filter_map(|frame| frame.pointer(&format!("{part}/functionCall"))).collect();
    let expected = [
        json!({"name": "read_file", "args": {"path": "notes/today.md"}}),
        json!({"name": "task_list", "args": {}}),
    ];
    assert_eq!(calls, expected.iter().collect::<Vec<_>>());
    let reasons: Vec<_> = data.iter().map(|frame| frame["candidates"][0]["finishReason"].as_str()).collect();
    assert_eq!(reasons.iter().position(Option::is_some), Some(data.len() - 1));
    assert_eq!(data[data.len() - 1]["usageMetadata"]["candidatesTokenCount"], 20);
}

#[test]
fn texts_and_arguments_come_in_several_pieces() {
    assert_eq!(deltas(""), Vec::<String>::new());
    assert_eq!(deltas("ab"), ["a", "b"]);
    assert_eq!(deltas("grüße"), ["grü", "ße"]);
    assert_eq!(deltas(&"x".repeat(30)).len(), 3);
}

#[test]
fn a_call_without_arguments_has_not_even_braces() {
    let said = ScriptedAnswer::nothing().call("task_list", Value::Null);

    let chat = data(&said, Protocol::OpenaiChat);
    let gemini = data(&said, Protocol::Gemini);

    assert_eq!(joined(&chat, "/choices/0/delta/tool_calls/0/function/arguments"), "");
    assert_eq!(
        gemini[0]["candidates"][0]["content"]["parts"][0],
        json!({"functionCall": {"name": "task_list"}})
    );
}

#[test]
fn a_stop_has_each_protocols_own_word() {
    let words = |stop: StopKind| {
        let said = ScriptedAnswer::text("Hm").stop(stop);
        ALL.map(|protocol| {
            let data = data(&said, protocol);
            let places = [
                "/choices/0/finish_reason",
                "/response/incomplete_details/reason",
                "/delta/stop_reason",
                "/candidates/0/finishReason",
            ];
            places.map(|place| joined(&data, place)).concat()
        })
    };

    assert_eq!(words(StopKind::Finished), ["stop", "", "end_turn", "STOP"]);
    assert_eq!(words(StopKind::Length), ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS"]);
    assert_eq!(words(StopKind::Refused), ["content_filter", "content_filter", "refusal", "SAFETY"]);
}
