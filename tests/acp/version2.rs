//! Editors that speak version 2: a prompt is answered when it is on record, and the state of the session is told by itself.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::Editor;

const ASK_FOR_EXEC: &str = "[[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n";

fn start(desk: &Desk) -> Editor {
    let mut editor = Editor::start(desk);
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
    let ours = editor.call("initialize", params).unwrap();
    assert_eq!(
        (ours["protocolVersion"].clone(), ours["info"]["name"].clone()),
        (json!(2), json!("longhaul"))
    );
    editor
}

fn new_session(editor: &mut Editor, desk: &Desk) -> String {
    let opened = editor.call("session/new", json!({"cwd": desk.path("work")})).unwrap();
    assert_eq!(opened["modes"], Value::Null);
    assert_eq!(opened["configOptions"][0]["configId"], "mode");
    assert_eq!(opened["availableCommands"][0]["type"], "command");
    opened["sessionId"].as_str().unwrap().to_owned()
}

/// The states of the session so far.
fn states(editor: &Editor) -> Vec<&str> {
    editor.updates("state_update").into_iter().map(|update| update["state"].as_str().unwrap()).collect()
}

fn wait_for_state(editor: &mut Editor, state: &str) -> Value {
    let is_its = |message: &Value| message["params"]["update"]["state"] == state;
    let message = editor.wait_for(is_its);
    editor.seen.push(message.clone());
    message["params"]["update"].clone()
}

/// E6.
#[test]
fn a_prompt_is_answered_with_its_message_and_the_state_tells_the_rest() {
    let desk = Desk::new(&json!([{"text": "One two three."}]));
    let mut editor = start(&desk);
    let session = new_session(&mut editor, &desk);

    let accepted = editor.prompt(&session, "Count.").unwrap();
    let idle = wait_for_state(&mut editor, "idle");

    assert_eq!(idle["stopReason"], "end_turn");
    assert_eq!(states(&editor), ["running", "idle"]);
    let echoed = editor.updates("user_message_chunk");
    assert_eq!(
        (&echoed[0]["messageId"], &echoed[0]["content"]["text"]),
        (&accepted["messageId"], &json!("Count."))
    );
    assert_eq!(editor.answer_text(), "One two three.");
}

/// E6: a call with a question, a diff, and the whole past again.
#[test]
fn calls_questions_and_the_past_have_the_forms_of_version_2() {
    let desk = Desk::new(&json!([
        {"calls": [
            {"name": "todo", "arguments": {"items": [{"text": "Rest", "status": "pending"}]}},
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}},
            {"name": "exec", "arguments": {"command": "echo ran"}},
        ]},
        "Done.",
    ]));
    let config = std::fs::read_to_string(desk.path("home/config.toml")).unwrap_or_default();
    desk.configure(&format!("{config}{ASK_FOR_EXEC}"));
    let mut editor = start(&desk);
    let session = new_session(&mut editor, &desk);

    editor.prompt(&session, "Go.").unwrap();
    let asked = editor.wait_for_question();
    editor.choose(&asked, "yes");
    wait_for_state(&mut editor, "idle");
    let file = desk.path("work").canonicalize().unwrap().join("a.txt").display().to_string();
    let shown = Value::from_iter(editor.updates("tool_call_update").into_iter().cloned());
    let plan = editor.updates("plan_update")[0]["plan"].clone();
    let seen_states = states(&editor).join(" ");
    let first_calls = editor.updates("tool_call").len();
    editor.seen.clear();
    let resume = json!({"sessionId": session, "cwd": desk.path("work"), "replayFrom": {"type": "start"}});
    let resumed = editor.call("session/resume", resume).unwrap();

    assert_eq!(asked["params"]["subject"]["type"], "tool_call", "{asked}");
    assert!(!asked["params"]["title"].as_str().unwrap().is_empty(), "{asked}");
    assert_eq!(first_calls, 0);
    assert!(shown.to_string().contains(&json!({"operation": "add", "path": file}).to_string()), "{shown}");
    assert_eq!(plan["type"], "items");
    assert_eq!(seen_states, "running requires_action running idle");
    assert_eq!(resumed["configOptions"][0]["configId"], "mode");
    assert_eq!(editor.text("user_message_chunk"), "Go.");
    assert_eq!(editor.answer_text(), "Done.");
}

/// E6.
#[test]
fn a_failed_turn_and_a_command_end_idle_and_methods_of_version_1_are_gone() {
    let desk = Desk::new(&json!([]));
    let mut editor = start(&desk);
    let session = new_session(&mut editor, &desk);

    editor.prompt(&session, "Fail.").unwrap();
    let failed = wait_for_state(&mut editor, "idle");
    let command = editor.prompt(&session, "/status").unwrap();
    let after_command = wait_for_state(&mut editor, "idle");
    let gone =
        editor.call("session/load", json!({"sessionId": session, "cwd": desk.path("work")})).unwrap_err();

    assert_eq!(failed["stopReason"], "error");
    assert!(failed["error"]["message"].as_str().unwrap().contains("/retry"), "{failed}");
    assert!(command["messageId"].is_string(), "{command}");
    assert_eq!(after_command["stopReason"], "end_turn");
    assert!(editor.answer_text().contains("model:"), "{}", editor.answer_text());
    assert_eq!(gone["code"], -32_601);
}

/// E6.
#[test]
fn a_cancelled_turn_ends_idle_as_cancelled() {
    let desk = Desk::new(&json!([{"text": "Slowly. ".repeat(500), "piece_ms": 50}]));
    let mut editor = start(&desk);
    let session = new_session(&mut editor, &desk);

    editor.prompt(&session, "Slow.").unwrap();
    let chunk = editor.wait_for_update("agent_message_chunk");
    editor.notify("session/cancel", json!({"sessionId": session}));
    let idle = wait_for_state(&mut editor, "idle");

    assert!(chunk["messageId"].is_string());
    assert_eq!(idle["stopReason"], "cancelled");
}

/// C11, E6.
#[test]
fn a_cancelled_slash_command_ends_idle_as_cancelled() {
    let slow = json!({"summary": true, "text": "# Goal\nCount.", "wait_ms": 600_000});
    let desk = Desk::new(&json!(["One.", slow]));
    let mut editor = start(&desk);
    let session = new_session(&mut editor, &desk);
    editor.prompt(&session, &"Count, please. ".repeat(2_000)).unwrap();
    wait_for_state(&mut editor, "idle");
    editor.prompt(&session, "/compact").unwrap();
    editor.wait_for_update("compaction_update");

    editor.notify("session/cancel", json!({"sessionId": session}));

    let idle = wait_for_state(&mut editor, "idle");
    assert_eq!(idle["stopReason"], "cancelled");
}
