//! What `longhaul run` sends to a model server, in each protocol: the last request of a small conversation, as a snapshot that
//! shows every change of the wire. The system prompt, the tools and the results of tools have tests of their own and are
//! stood in for here. (`crates/model/tests/fixtures` has the order of bytes.)

use longhaul_model::{Protocol, StopKind};
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::desk::Desk;

/// A picture of one pixel.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\
    \xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// What the model says: it thinks and looks at a text and a picture, is cut at its length, and goes on.
fn answers() -> [ScriptedAnswer; 3] {
    let looks = ScriptedAnswer::text("I look at both.")
        .thought("Two files.")
        .call("read_file", json!({"path": "a.txt"}))
        .call("read_file", json!({"path": "a.png"}));
    [looks, ScriptedAnswer::text("One is").stop(StopKind::Length), ScriptedAnswer::text(" a pixel.")]
}

/// The last request of the conversation.
fn last_request(protocol: Protocol, name: &str) -> Value {
    let replies = answers().iter().map(|said| Reply::stream(said.bytes(protocol))).collect();
    let server = ModelServer::start(Script::list(replies));
    let desk = Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/m'\nbase_url = '{}/v1'\nprotocol = '{name}'\ncontext_window = 100000\n\
         effort = 'low'\n",
        server.url()
    ));
    std::fs::write(desk.path("work/a.txt"), "one line\n").unwrap();
    std::fs::write(desk.path("work/a.png"), PIXEL).unwrap();

    let (code, out, errors) = desk.run(&["run", "What is in a.txt and a.png?"]);

    assert_eq!((code, out.as_str()), (0, "One is a pixel.\n"), "{errors}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "one for each answer, and none about the model");
    requests[2].json()
}

/// Replaces a text by a stand-in, wherever it is.
fn stand_in(value: &mut Value, name: &str) {
    assert!(!value.is_null(), "there is no {name}");
    *value = json!(format!("<{name}>"));
}

fn masked(protocol: Protocol, mut body: Value) -> Value {
    stand_in(&mut body["tools"], "tools");
    match protocol {
        Protocol::OpenaiChat => {
            stand_in(&mut body["messages"][0]["content"], "system prompt");
            let messages = body["messages"].as_array_mut().unwrap().iter_mut();
            messages
                .filter(|message| message["role"] == "tool")
                .for_each(|message| stand_in(&mut message["content"], "result"));
        }
        Protocol::OpenaiResponses => {
            stand_in(&mut body["instructions"], "system prompt");
            let items = body["input"].as_array_mut().unwrap().iter_mut();
            items
                .filter(|item| item["type"] == "function_call_output")
                .for_each(|item| stand_in(&mut item["output"], "result"));
        }
        Protocol::Anthropic => {
            stand_in(&mut body["system"][0]["text"], "system prompt");
            let messages = body["messages"].as_array_mut().unwrap().iter_mut();
            let blocks = messages.flat_map(|message| message["content"].as_array_mut().unwrap());
            for block in blocks.filter(|block| block["type"] == "tool_result") {
                let text = match &mut block["content"] {
                    Value::Array(pieces) => &mut pieces[0]["text"],
                    text => text,
                };
                stand_in(text, "result");
            }
        }
        Protocol::Gemini => {
            stand_in(&mut body["systemInstruction"]["parts"][0]["text"], "system prompt");
            let contents = body["contents"].as_array_mut().unwrap().iter_mut();
            let parts = contents.flat_map(|content| content["parts"].as_array_mut().unwrap());
            for part in parts {
                // This protocol has no ids of its own.
                if let Some(call) = part.get_mut("functionCall") {
                    stand_in(&mut call["id"], "id");
                }
                if let Some(result) = part.get_mut("functionResponse") {
                    stand_in(&mut result["id"], "id");
                    stand_in(&mut result["response"]["output"], "result");
                }
            }
        }
    }
    body
}

#[test]
fn a_conversation_is_sent_so() {
    let protocols = [
        (Protocol::OpenaiChat, "openai-chat"),
        (Protocol::OpenaiResponses, "openai-responses"),
        (Protocol::Anthropic, "anthropic"),
        (Protocol::Gemini, "gemini"),
    ];
    for (protocol, name) in protocols {
        let body = masked(protocol, last_request(protocol, name));

        insta::assert_snapshot!(name, serde_json::to_string_pretty(&body).unwrap());
    }
}
