//! MCP servers in editors: those that the editor brings, and what a prompt takes from them.

use longhaul_testkit::write_mcp_server;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::Editor;

fn desk(answers: &Value) -> Desk {
    let desk = Desk::new(answers);
    write_mcp_server(&desk.path("work"));
    desk
}

/// The server of the tests, as an editor names it.
fn notes() -> Value {
    let env = json!([{"name": "COLOUR", "value": "blue"}]);
    json!({"name": "My Notes", "command": "python3", "args": ["server.py"], "env": env})
}

fn started(desk: &Desk) -> usize {
    let log = std::fs::read_to_string(desk.path("work/calls.log")).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("started")).count()
}

/// E1, E6: it runs for the session, with the editor's variables, and is not started again when the session is loaded once more.
#[test]
fn a_server_that_the_editor_brings_is_used_and_starts_once() {
    let desk = desk(&json!([
        {"calls": [{"name": "My-Notes__variables", "arguments": {}}]},
        "Done.",
        "Again.",
    ]));
    let mut editor = Editor::ready(&desk);
    let folder = desk.path("work");
    let opened = editor.call("session/new", json!({"cwd": folder, "mcpServers": [notes()]})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();

    editor.prompt(&session, "Which variables?").unwrap();
    let shown = editor.updates("tool_call_update").last().unwrap().to_string();
    editor
        .call("session/load", json!({"sessionId": session, "cwd": folder, "mcpServers": [notes()]}))
        .unwrap();
    editor.prompt(&session, "And now?").unwrap();

    assert_eq!(opened["_meta"], Value::Null);
    assert!(shown.contains("COLOUR") && !shown.contains("CARGO_MANIFEST_DIR"), "{shown}");
    assert_eq!(started(&desk), 1);
}

/// E6: a server that can't be used is said, and the session opens.
#[test]
fn a_server_that_can_not_be_used_is_a_warning() {
    let desk = desk(&json!([]));
    let mut editor = Editor::ready(&desk);
    let servers = json!([{"type": "sse", "name": "old", "url": "http://127.0.0.1:1/sse", "headers": []}]);

    let opened =
        editor.call("session/new", json!({"cwd": desk.path("work"), "mcpServers": servers})).unwrap();

    let warnings = &opened["_meta"]["longhaul"]["warnings"];
    assert!(warnings[0].as_str().unwrap().contains("\"old\" is not used: sse"), "{opened}");
}

/// E1, P8: a prompt of a server is a command of the editor, and a resource is data.
#[test]
fn prompts_are_listed_as_commands_and_resources_are_attached() {
    let desk = desk(&json!(["Hello.", "A plan.", "At noon."]));
    let mut editor = Editor::ready(&desk);
    let folder = desk.path("work");
    let opened = editor.call("session/new", json!({"cwd": folder, "mcpServers": [notes()]})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();

    editor.prompt(&session, "Hi.").unwrap();
    let listed = editor.wait_for(|message| {
        let commands = message["params"]["update"]["availableCommands"].as_array();
        commands.is_some_and(|commands| commands.iter().any(|command| command["name"] == "My-Notes:plan"))
    });
    editor.prompt(&session, "/My-Notes:plan Graz").unwrap();
    editor.prompt(&session, "When? @My-Notes:note://today").unwrap();
    let refused = editor.prompt(&session, "@My-Notes:note://gone").unwrap_err();

    let commands = listed["params"]["update"]["availableCommands"].as_array().unwrap().clone();
    let plan = commands.iter().find(|command| command["name"] == "My-Notes:plan").unwrap();
    assert_eq!(plan["input"]["hint"], "CITY [DAY]");
    let inputs = desk.records(&session, "input_taken");
    let said: Vec<&str> = inputs.iter().map(|input| input["text"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[1].starts_with("Carry out the prompt plan of the MCP server My-Notes"), "{said:?}");
    assert!(said[1].contains("~~~~ prompt plan of the MCP server My-Notes\nPlan a day in Graz."), "{said:?}");
    assert!(said[2].starts_with("When? @My-Notes:note://today\n\n~~~~ resource"), "{said:?}");
    assert!(refused["message"].as_str().unwrap().contains("there is no such note"), "{refused}");
}
