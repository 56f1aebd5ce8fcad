//! Bad input: each line costs only its own answer.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::{Editor, prompt};

/// E6.
#[test]
fn garbage_is_answered_and_the_connection_goes_on() {
    let desk = Desk::new(&json!(["Still here."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let lines: [(&[u8], i64); 8] = [
        (b"hello", -32_700),
        (b"{\"jsonrpc\": \"2.0\", ", -32_700),
        (b"\xff\xfe\x00", -32_700),
        (b"[]", -32_600),
        (b"42", -32_600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"initialize\"}", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"initialize\"}", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"session/dance\"}", -32_601),
    ];

    for (line, code) in lines {
        editor.send_line(line);
        let answer = editor.wait_for(|message| message.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", String::from_utf8_lossy(line));
    }
    // Notifications and answers that mean nothing have no answer.
    editor.notify("session/dance", json!({}));
    editor.notify("session/cancel", json!({"sessionId": "acp:nothing"}));
    editor.notify("session/cancel", json!(3));
    editor.send(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}));

    assert_eq!(editor.prompt(&session, "Go.").unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(editor.answer_text(), "Still here.");
}

/// E6: memory stays bounded, whatever the editor sends.
#[test]
fn a_line_of_a_hundred_megabytes_is_refused_and_not_kept() {
    let desk = Desk::new(&json!(["Still here."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let before = editor.memory();

    editor.send_line(&b"x".repeat(100 << 20));

    let answer = editor.wait_for(|message| message.get("error").is_some());
    assert_eq!(answer["error"]["code"], -32_600);
    assert!(answer["error"]["message"].as_str().unwrap().contains("32 MiB"), "{answer}");
    // Half of the line would not fit in between.
    let grown = editor.peak_memory().saturating_sub(before);
    assert!(grown < 80 << 20, "{grown}");
    assert_eq!(editor.prompt(&session, "Go.").unwrap(), json!({"stopReason": "end_turn"}));
}

/// E6.
#[test]
fn wrong_parameters_name_what_is_wrong() {
    let desk = Desk::new(&json!([]));
    let mut editor = Editor::start(&desk);
    let folder = desk.path("work");
    let early = editor.call("session/new", json!({"cwd": folder, "mcpServers": []})).unwrap_err();
    assert_eq!(early["code"], -32_600, "{early}");
    assert!(editor.call("initialize", json!({"protocolVersion": "one"})).is_err());
    editor.initialize(json!({"fs": "nonsense"}));
    let session = editor.new_session(&folder);
    let cases = [
        ("session/new", json!({}), -32_602, "cwd"),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32_602, "absolute"),
        ("session/new", json!({"cwd": desk.path("missing"), "mcpServers": []}), -32_602, "missing"),
        ("session/load", json!({"cwd": folder, "mcpServers": []}), -32_602, "sessionId"),
        ("session/load", json!({"sessionId": "acp:x", "cwd": folder, "mcpServers": []}), -32_002, "acp:x"),
        ("session/prompt", prompt("acp:unknown", "Hi."), -32_002, "acp:unknown"),
        ("session/prompt", json!({"sessionId": session, "prompt": "Hi."}), -32_602, "sequence"),
        ("session/prompt", json!({"sessionId": session, "prompt": []}), -32_602, "empty"),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "smell"}]}), -32_602, "smell"),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "x", "value": "y"}),
            -32_602,
            "x",
        ),
    ];

    for (method, params, code, words) in cases {
        let error = editor.call(method, params).unwrap_err();
        assert_eq!(error["code"], code, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{method}: {error}");
    }
}

#[test]
fn what_an_editor_asks_for_in_vain_is_named() {
    let desk = Desk::new(&json!([]));
    let mut editor = Editor::ready(&desk);
    let params = json!({"cwd": desk.path("work"), "mcpServers": [], "additionalDirectories": ["/tmp"]});

    let opened = editor.call("session/new", params).unwrap();

    let warnings = opened["_meta"]["longhaul"]["warnings"].as_array().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().contains("additionalDirectories"), "{warnings:?}");
}

/// E6: a problem with the config is an error that the editor shows.
#[test]
fn a_config_that_cannot_be_read_is_the_answer_to_the_first_session() {
    let desk = Desk::new(&json!([]));
    desk.configure("[modle]\nname = \"x\"\n");
    let mut editor = Editor::ready(&desk);
    let params = json!({"cwd": desk.path("work"), "mcpServers": []});

    let error = editor.call("session/new", params.clone()).unwrap_err();
    assert_eq!(error["code"], -32_603);
    assert!(error["message"].as_str().unwrap().contains("modle"), "{error}");

    // Once it is right, the same connection works.
    desk.configure("");
    let opened: Value = editor.call("session/new", params).unwrap();
    assert!(opened["sessionId"].is_string());
}
