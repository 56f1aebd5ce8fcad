//! The providers' own searches: what is sent for one, and what is read of it.

use std::sync::Arc;

use longhaul_protocol::{Item, Role};
use serde_json::{Value, json};

use super::scenarios_tests::{PROTOCOLS, play};
use super::*;
use crate::{Purpose, SearchSource};

fn body(protocol: Protocol, purpose: Purpose) -> Value {
    let items = vec![Arc::new(Item::Text { role: Role::User, text: "ferries".to_owned() })];
    let request = Request { items, purpose, ..Request::default() };
    let asked = EncodeInput {
        request: &request,
        model: "m",
        author: "p/m",
        quirks: &Quirks::default(),
        roles: RoleOrder::System,
        reasons: false,
        effort: None,
        effort_off: None,
    };
    serde_json::from_slice(&protocol.encode(&asked)).unwrap()
}

/// E7
#[test]
fn a_search_offers_the_providers_own_one_and_nothing_else_does() {
    for protocol in PROTOCOLS {
        let expected = match protocol {
            Protocol::OpenaiChat => Value::Null,
            Protocol::OpenaiResponses => json!([{"type": "web_search"}]),
            Protocol::Anthropic => {
                json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}])
            }
            Protocol::Gemini => json!([{"googleSearch": {}}]),
        };

        assert_eq!(body(protocol, Purpose::Search)["tools"], expected, "{protocol:?}");
        assert_eq!(body(protocol, Purpose::default())["tools"], Value::Null, "{protocol:?}");
    }
}

/// The frames of an answer to a search, as the provider documents them.
fn answer(protocol: Protocol) -> Vec<Value> {
    match protocol {
        Protocol::OpenaiChat => vec![],
        Protocol::OpenaiResponses => vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "web_search_call", "id": "ws_1", "status": "completed"}}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "At noon."}),
            json!({"type": "response.output_text.annotation.added", "output_index": 1, "annotation":
                {"type": "url_citation", "url": "https://example.org/a", "title": "Ferries", "start_index": 0, "end_index": 8}}),
            json!({"type": "response.output_text.annotation.added", "output_index": 1, "annotation": {"type": "file_citation"}}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "content": [{"type": "output_text", "text": "At noon."}]}}),
            json!({"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 9, "output_tokens": 3}}}),
        ],
        Protocol::Anthropic => vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":\"ferries\"}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s1", "content":
                [{"type": "web_search_result", "url": "https://example.org/a", "title": "Ferries", "encrypted_content": "x", "page_age": null}]}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "At noon."}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"type": "web_search_result_location"}}}),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ],
        Protocol::Gemini => vec![json!({
            "candidates": [{
                "content": {"parts": [{"text": "At noon."}]},
                "finishReason": "STOP",
                "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://example.org/a", "title": "Ferries"}}]},
            }],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
        })],
    }
}

/// E7
#[test]
fn the_pages_that_a_search_found_are_read_beside_its_text() {
    for protocol in PROTOCOLS.into_iter().filter(|protocol| *protocol != Protocol::OpenaiChat) {
        let bytes: String = answer(protocol).iter().map(|frame| format!("data: {frame}\n\n")).collect();

        let (parts, fault) = play(&mut *protocol.decoder(&Quirks::default()), [bytes.as_bytes()]);

        assert_eq!(fault, None, "{protocol:?}");
        let source = SearchSource { title: "Ferries".to_owned(), url: "https://example.org/a".to_owned() };
        let sources: Vec<&AnswerPart> =
            parts.iter().filter(|part| matches!(part, AnswerPart::Source(_))).collect();
        assert_eq!(sources, [&AnswerPart::Source(source)], "{protocol:?}");
        assert!(parts.contains(&AnswerPart::TextDelta("At noon.".to_owned())), "{protocol:?}: {parts:?}");
    }
}
