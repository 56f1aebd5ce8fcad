//! What a client may send, and what it gets for it.

use serde_json::{Value, json};

use crate::client::{McpClient, modern_meta, send};
use crate::desk::Desk;

/// E3: both revisions on one connection, without anything that is remembered.
#[test]
fn both_revisions_are_spoken() {
    let desk = Desk::new(&json!(["Hello."]));
    let mut client = McpClient::start(&desk);

    let info = json!({"name": "builder", "version": "1"});
    let initialize = |version| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
    let opened = client.call("initialize", initialize("2025-06-18")).unwrap();
    let newer = client.call("initialize", initialize("2031-01-01")).unwrap();
    client.notify("notifications/initialized", json!({}));
    let listed = client.call("tools/list", json!({})).unwrap();
    let found = client.modern("server/discover", json!({})).unwrap();
    let sent = client.tool("session_send", json!({"session": "a", "text": "Hi."}));

    assert_eq!(
        (&opened["protocolVersion"], &newer["protocolVersion"]),
        (&json!("2025-06-18"), &json!("2025-11-25"))
    );
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["session_answer", "session_list", "session_read", "session_send"]);
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(sent["content"][0]["text"], "Hello.");
    let taken = desk.records("a", "input_taken");
    assert_eq!(taken[0]["sender"], json!({"kind": "agent", "name": "builder"}));
}

/// E3: a session that another agent begins works in the folder in which the user started the server.
#[test]
fn a_new_session_works_in_the_folder_of_the_server() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "made.txt", "content": "here\n"}}]},
        "Written.",
    ]));
    let mut client = McpClient::start(&desk);

    client.tool("session_send", json!({"session": "a", "text": "Write it."}));

    assert_eq!(std::fs::read_to_string(desk.path("work/made.txt")).unwrap(), "here\n");
}

/// E3: garbage costs only its own answer.
#[test]
fn garbage_is_answered_and_the_connection_goes_on() {
    let desk = Desk::new(&json!([{"text": "Undisturbed.", "wait_ms": 500}]));
    let mut client = McpClient::start(&desk);
    let waiting = client.request("tools/call", send("a", "Go.", "k"));
    let mut refusal = |line: &[u8]| {
        client.send_line(line);
        let answer = client.wait_for(|message| message["id"].is_null() && message["error"].is_object());
        answer["error"]["code"].as_i64().unwrap()
    };

    assert_eq!(refusal(b"hello"), -32_700);
    assert_eq!(refusal(b"\xff\xfe\x00"), -32_700);
    assert_eq!(refusal(b"[]"), -32_600);
    assert_eq!(refusal(&b"[".repeat(200_000)), -32_700);
    assert_eq!(refusal(&[b"\"".to_vec(), b"x".repeat(33 << 20), b"\"".to_vec()].concat()), -32_600);
    let mut code = |method: &str, params: Value| client.call(method, params).unwrap_err()["code"].clone();
    assert_eq!(code("no/method", json!({})), -32_601);
    assert_eq!(code("tools/call", json!({"name": "rm"})), -32_602);
    assert_eq!(code("tools/call", json!([])), -32_602);
    assert_eq!(code("tasks/get", json!({"taskId": "x"})), -32_602);
    let mut meta = modern_meta();
    meta["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    assert_eq!(code("tools/list", json!({"_meta": meta})), -32_022);

    assert_eq!(client.result(waiting).unwrap()["content"][0]["text"], "Undisturbed.");
}

/// E3, P4: a program at standard input has no say beyond its session.
#[test]
fn an_answer_for_the_whole_project_is_left_to_the_user() {
    let desk =
        Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": "true"}}]}, "It ran."]));
    desk.configure("[[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n");
    let mut client = McpClient::start(&desk);

    let asked = client.tool("session_send", json!({"session": "a", "text": "Go."}));
    let question = &asked["structuredContent"]["questions"][0]["id"];
    let answer = |answer: &str| json!({"session": "a", "question": question, "answer": answer});
    let refused = client.tool("session_answer", answer("project"));
    let answered = client.tool("session_answer", answer("yes"));

    assert_eq!(refused["isError"], true);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("`longhaul answer`"), "{refused}");
    assert_eq!(answered["content"][0]["text"], "It ran.");
}
