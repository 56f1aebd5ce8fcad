//! Prompts: what an editor sees of a turn.

use longhaul_model::Protocol;
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::{Editor, prompt};

fn end_turn() -> Value {
    json!({"stopReason": "end_turn"})
}

/// E6.
#[test]
fn a_prompt_is_answered_in_chunks_and_then_ends() {
    let desk = Desk::new(&json!([{"reasoning": "Hm, easy.", "text": "One two three."}]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    let ended = editor.prompt(&session, "Count.").unwrap();

    assert_eq!(ended, end_turn());
    assert_eq!(editor.answer_text(), "One two three.");
    assert_eq!(editor.text("agent_thought_chunk"), "Hm, easy.");
    // The editor has shown what its user typed.
    assert_eq!(editor.updates("user_message_chunk").len(), 0);
    let ids: Vec<&Value> =
        editor.updates("agent_message_chunk").iter().map(|update| &update["messageId"]).collect();
    assert!(ids.len() > 1 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn the_agent_says_what_it_can_do() {
    let desk = Desk::new(&json!([]));
    let mut editor = Editor::start(&desk);

    let ours = editor.initialize(json!({}));

    assert_eq!(ours["protocolVersion"], 1);
    assert_eq!(ours["agentCapabilities"]["loadSession"], true);
    assert_eq!(ours["agentCapabilities"]["promptCapabilities"]["audio"], false);
    assert_eq!(ours["authMethods"], json!([]));
    assert_eq!(editor.call("authenticate", json!({"methodId": "x"})), Ok(json!({})));
}

/// E6.
#[test]
fn tool_calls_come_with_kind_place_and_diff_and_the_todo_list_is_the_plan() {
    let todo =
        json!({"items": [{"text": "Write it", "status": "done"}, {"text": "Rest", "status": "pending"}]});
    let desk = Desk::new(&json!([
        {"calls": [
            {"name": "todo", "arguments": todo},
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}},
        ]},
        {"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "edits": [{"old": "two", "new": "2"}]}}]},
        {"calls": [{"name": "exec", "arguments": {"command": "cat a.txt; exit 3"}}]},
        "Done.",
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    assert_eq!(editor.prompt(&session, "Go.").unwrap(), end_turn());

    let file = desk.path("work").canonicalize().unwrap().join("a.txt").display().to_string();
    let calls = editor.updates("tool_call");
    let kinds: Vec<&str> = calls.iter().map(|call| call["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["think", "edit", "edit", "execute"]);
    assert_eq!(calls[1]["locations"], json!([{"path": file}]));
    let ends = editor.updates("tool_call_update");
    let diff = |end: &Value| end["content"][0].clone();
    let of_call = |call: &Value| {
        let is_its =
            |end: &&&Value| end["toolCallId"] == call["toolCallId"] && end["status"] != "in_progress";
        (*ends.iter().find(is_its).unwrap()).clone()
    };
    assert_eq!(
        diff(&of_call(calls[1])),
        json!({"type": "diff", "path": file, "oldText": null, "newText": "one\ntwo\n"})
    );
    assert_eq!(
        diff(&of_call(calls[2])),
        json!({"type": "diff", "path": file, "oldText": "one\ntwo\n", "newText": "one\n2\n"})
    );
    assert_eq!(of_call(calls[2])["locations"], json!([{"path": file, "line": 1}]));
    let output = of_call(calls[3])["content"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(output.starts_with("```\none\n2\n"), "{output}");
    let plan = editor.updates("plan")[0];
    let entries = json!([
        {"content": "Write it", "priority": "medium", "status": "completed"},
        {"content": "Rest", "priority": "medium", "status": "pending"},
    ]);
    assert_eq!(plan["entries"], entries);
}

/// E6, T11.
#[test]
fn a_cancelled_turn_ends_as_cancelled() {
    let desk = Desk::new(&json!([{"text": "A slow answer. ".repeat(1_000), "piece_ms": 100}]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");
    editor.wait_for_update("agent_message_chunk");

    editor.notify("session/cancel", json!({"sessionId": session}));

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "cancelled"}));
}

#[test]
fn a_prompt_that_is_cancelled_at_once_is_cancelled_and_the_next_one_is_not() {
    let wait = json!({"command": "while [ ! -e go ]; do sleep 0.01; done"});
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": wait}]}, "Done."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    let first = editor.send_prompt(&session, "Go.");
    editor.notify("$/cancel_request", json!({"requestId": first}));

    assert_eq!(editor.result(first).unwrap(), json!({"stopReason": "cancelled"}));
    let second = editor.send_prompt(&session, "Again.");
    editor.notify("$/cancel_request", json!({"requestId": first}));
    std::fs::write(desk.path("work/go"), "").unwrap();
    assert_eq!(editor.result(second).unwrap(), end_turn());
    assert!(editor.answer_text().ends_with("Done."), "{}", editor.answer_text());
}

/// E6: editors can't take text back.
#[test]
fn text_that_does_not_count_is_marked_and_the_next_attempt_follows() {
    let broken = ScriptedAnswer::text("Half an answer that breaks off").bytes(Protocol::OpenaiChat);
    let cut_at = broken.len() / 2;
    let replies = [
        Reply::stream(broken).cut_at(cut_at),
        Reply::stream(ScriptedAnswer::text("A whole answer.").bytes(Protocol::OpenaiChat)),
    ];
    let mut replies = replies.into_iter();
    let server = ModelServer::start(Script::by(move |seen| match seen.protocol() {
        Some(_) => replies.next().unwrap(),
        None => Reply::error(404, "{}"),
    }));
    let desk = Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\ncontext_window = 100000\n",
        server.url()
    ));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    assert_eq!(editor.prompt(&session, "Go.").unwrap(), end_turn());

    let text = editor.answer_text();
    let remarks: Vec<&Value> = editor
        .updates("agent_message_chunk")
        .into_iter()
        .filter(|update| update["_meta"]["longhaul"]["remark"] == "discarded")
        .collect();
    assert!(text.starts_with("Half ") && text.ends_with("A whole answer."), "{text}");
    assert_eq!(remarks.len(), 1, "{text}");
}

#[test]
fn two_prompts_at_once_are_both_answered() {
    let desk = Desk::new(&json!([
        {"text": "Waiting.", "calls": [{"name": "exec", "arguments": {"command": "while [ ! -e go ]; do sleep 0.01; done"}}]},
        "Both.", "More.",
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let first = editor.send_prompt(&session, "One.");
    editor.wait_for_update("tool_call");
    let second = editor.send_prompt(&session, "Two.");
    std::fs::write(desk.path("work/go"), "").unwrap();

    assert_eq!(editor.result(first).unwrap(), end_turn());
    assert_eq!(editor.result(second).unwrap(), end_turn());
}

/// E6.
#[test]
fn a_failed_turn_is_the_error_of_its_prompt_and_can_be_retried() {
    let desk = Desk::new(&json!([{"error": "bad request"}]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    let error = editor.prompt(&session, "Go.").unwrap_err();

    assert_eq!(error["code"], -32_603, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("turn failed") && message.contains("/retry"), "{message}");
    // The same connection goes on.
    assert!(editor.prompt(&session, "/status").is_ok());
    assert!(editor.answer_text().contains("turns: 1"), "{}", editor.answer_text());
}

/// P4.
#[test]
fn the_mode_and_the_model_can_be_chosen() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]}, "Done.",
    ]));
    let mut editor = Editor::ready(&desk);
    let opened = editor.call("session/new", json!({"cwd": desk.path("work"), "mcpServers": []})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "auto");
    let ids: Vec<&Value> =
        opened["configOptions"].as_array().unwrap().iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["mode", "model"]);

    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).unwrap();
    let changed = json!({"sessionId": session, "configId": "mode", "value": "ask"});
    let options = editor.call("session/set_config_option", changed).unwrap();

    assert_eq!(options["configOptions"][0]["currentValue"], "ask");
    let modes: Vec<&Value> =
        editor.updates("current_mode_update").iter().map(|update| &update["currentModeId"]).collect();
    assert_eq!(modes[..2], ["plan", "ask"]);
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();
    editor.choose(&question, "yes");
    assert_eq!(editor.result(request).unwrap(), end_turn());
    let unknown = json!({"sessionId": session, "configId": "model", "value": "nonsense/x"});
    assert!(editor.call("session/set_config_option", unknown).is_err());
    let unknown = json!({"sessionId": session, "modeId": "yolo"});
    assert_eq!(editor.call("session/set_mode", unknown).unwrap_err()["code"], -32_602);
}

/// P8.
#[test]
fn images_links_and_embedded_files_reach_the_model() {
    let desk = Desk::new(&json!(["Seen."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut sent = prompt(&session, "Look at ");
    sent["prompt"].as_array_mut().unwrap().extend([
        json!({"type": "resource_link", "uri": "file:///x/main.rs", "name": "main.rs"}),
        json!({"type": "image", "data": png, "mimeType": "image/png"}),
        json!({"type": "resource", "resource": {"uri": "file:///x/notes.md", "text": "Obey me."}}),
    ]);

    assert_eq!(editor.call("session/prompt", sent).unwrap(), end_turn());

    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    let text = other.text("user_message_chunk");
    assert!(
        text.contains("Look at @/x/main.rs") && text.contains("~~~~ file /x/notes.md\nObey me."),
        "{text}"
    );
    let images: Vec<&Value> = other
        .updates("user_message_chunk")
        .into_iter()
        .filter(|update| update["content"]["type"] == "image")
        .map(|update| &update["content"]["data"])
        .collect();
    assert_eq!(images, [png]);
}

/// E6: turns that nobody asked for come as updates.
#[test]
fn a_turn_that_a_task_begins_comes_as_updates() {
    let background = json!({"command": "while [ ! -e go ]; do sleep 0.01; done", "run_in_background": true});
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": background}]}, "Started.", "The task is over.",
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    assert_eq!(editor.prompt(&session, "Go.").unwrap(), end_turn());

    std::fs::write(desk.path("work/go"), "").unwrap();

    editor.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 2);
    assert!(editor.answer_text().ends_with("The task is over."), "{}", editor.answer_text());
}

#[test]
fn the_context_is_compacted_by_a_slash_command() {
    let desk = Desk::new(&json!(["One.", {"summary": true, "text": "# Goal\nCount."}, "Two."]));
    let mut editor = Editor::start(&desk);
    editor.initialize(json!({"session": {"compaction": {}, "notices": {}}}));
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, &"Count, please. ".repeat(2_000)).unwrap();

    assert_eq!(editor.prompt(&session, "/compact").unwrap(), end_turn());

    let statuses: Vec<&Value> =
        editor.updates("compaction_update").iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["in_progress", "completed"], "{}", editor.answer_text());
    let commands = &editor.updates("available_commands_update")[0]["availableCommands"];
    assert!(commands.as_array().unwrap().iter().any(|command| command["name"] == "compact"), "{commands}");
}

/// C11, E6: what the editor is told is cancelled does not go on.
#[test]
fn a_cancelled_slash_command_ends() {
    let slow = json!({"summary": true, "text": "# Goal\nCount.", "wait_ms": 600_000});
    let desk = Desk::new(&json!(["One.", slow, "Two."]));
    let mut editor = Editor::start(&desk);
    editor.initialize(json!({"session": {"compaction": {}}}));
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, &"Count, please. ".repeat(2_000)).unwrap();
    let request = editor.send_prompt(&session, "/compact");
    editor.wait_for_update("compaction_update");

    editor.notify("session/cancel", json!({"sessionId": session}));

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "cancelled"}));
    editor.wait_for(|message| message["params"]["update"]["status"] == "failed");
    assert_eq!(editor.prompt(&session, "Go on.").unwrap(), end_turn());
    assert!(editor.answer_text().ends_with("Two."), "{}", editor.answer_text());
}

/// E5, E6: a skill is a command of the editor.
#[test]
fn a_skill_is_listed_and_started_by_its_name() {
    let desk = Desk::new(&json!(["Good day.", "Plain."]));
    let folder = desk.path("home/skills/greet");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("SKILL.md"),
        "---\nname: greet\ndescription: Greets people\n---\nSay good day.\n",
    )
    .unwrap();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    editor.prompt(&session, "/greet Ada").unwrap();
    editor.prompt(&session, "/no-such-skill Ada").unwrap();

    let commands = editor.updates("available_commands_update")[0]["availableCommands"].clone();
    let greet = commands.as_array().unwrap().iter().find(|command| command["name"] == "greet");
    assert_eq!(greet.unwrap()["description"], "Greets people");
    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    let inputs: Vec<&str> = other
        .updates("user_message_chunk")
        .iter()
        .map(|update| update["content"]["text"].as_str().unwrap())
        .collect();
    assert!(inputs[0].starts_with("Use the skill greet") && inputs[0].ends_with("Ada"), "{inputs:?}");
    assert_eq!(inputs[1], "/no-such-skill Ada");
}
