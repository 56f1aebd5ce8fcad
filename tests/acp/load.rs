//! `session/load`: the whole past, open questions again, and a killed turn goes on.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::{Editor, eventually};
use crate::questions::{asking_desk, runs};

/// What an editor shows of a session, without what is only about now.
fn shown(editor: &Editor) -> Vec<Value> {
    let kinds = ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];
    let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
    let mut shown: Vec<Value> = Vec::new();
    for update in updates.filter(|update| kinds.iter().any(|kind| update["sessionUpdate"] == *kind)) {
        match shown.last_mut() {
            // Deltas of one message.
            Some(last) if last["messageId"].is_string() && last["messageId"] == update["messageId"] => {
                let text = format!("{}{}", last["text"].as_str().unwrap(), update["content"]["text"].as_str().unwrap());
                last["text"] = json!(text);
            }
            _ if update["messageId"].is_string() => shown.push(json!({
                "messageId": update["messageId"], "kind": update["sessionUpdate"], "text": update["content"]["text"],
            })),
            _ => shown.push(update.clone()),
        }
    }
    shown
}

/// E6.
#[test]
fn loading_shows_the_past_as_it_was_shown_when_it_happened() {
    let desk = Desk::new(&json!([
        {"reasoning": "Let me see.", "text": "I write.", "calls": [
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}},
        ]},
        {"calls": [{"name": "exec", "arguments": {"command": "cat a.txt"}}]},
        "Done.",
        {"text": "Second answer."},
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, "First.").unwrap();
    editor.prompt(&session, "Second.").unwrap();

    let mut other = Editor::ready(&desk);
    let opened = other.load(&session, &desk.path("work")).unwrap();

    assert_eq!(opened["modes"]["currentModeId"], "auto");
    assert_eq!(shown(&other), shown(&editor));
    let inputs: Vec<&Value> =
        other.updates("user_message_chunk").iter().map(|update| &update["content"]["text"]).collect();
    assert_eq!(inputs, ["First.", "Second."]);
    // Resuming shows nothing, because the editor has it.
    let mut third = Editor::ready(&desk);
    let params = json!({"sessionId": session, "cwd": desk.path("work"), "mcpServers": []});
    third.call("session/resume", params).unwrap();
    assert_eq!(shown(&third), Vec::<Value>::new());
}

/// E6, T12.
#[test]
fn a_turn_whose_agent_was_killed_goes_on_when_the_session_is_loaded() {
    let desk = Desk::new(&json!([
        {"text": "I wait.", "calls": [
            {"name": "exec", "arguments": {"command": "echo ran >> ran.txt; while [ ! -e go ]; do sleep 0.01; done"}},
        ]},
        "It goes on.",
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.send_prompt(&session, "Go.");
    eventually("the command runs", || runs(&desk) == 1);
    editor.signal(Signal::KILL);
    editor.wait();

    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    assert!(other.text("user_message_chunk").contains("Go."));
    assert_eq!(other.updates("tool_call").len(), 1);
    std::fs::write(desk.path("work/go"), "").unwrap();

    other.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 1);
    assert!(other.answer_text().ends_with("It goes on."), "{}", other.answer_text());
    assert_eq!(runs(&desk), 1);
}

/// E6, P4.
#[test]
fn an_open_question_is_asked_again() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.send_prompt(&session, "Go.");
    editor.wait_for_question();
    editor.signal(Signal::KILL);
    editor.wait();

    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    let question = other.wait_for_question();
    other.choose(&question, "yes");

    other.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 1);
    assert_eq!(runs(&desk), 1);
    assert!(other.answer_text().ends_with("Done."), "{}", other.answer_text());
}

/// E6: one session, several clients.
#[test]
fn what_another_client_says_is_shown_as_it_happens() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, "First.").unwrap();

    assert_eq!(desk.run(&["send", "-s", &session, "From the command line."]).0, 0);

    editor.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 2);
    assert_eq!(editor.text("user_message_chunk"), "From the command line.");
    assert!(editor.answer_text().ends_with("Two."), "{}", editor.answer_text());
}

/// The first request of a connection names a folder that does not exist: the error speaks of that folder, and of no flag.
#[test]
fn a_list_for_a_missing_folder_says_so() {
    let desk = Desk::new(&json!([]));
    let mut editor = Editor::ready(&desk);

    let refused = editor.call("session/list", json!({"cwd": desk.path("nowhere")})).unwrap_err();

    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("nowhere can't be a work folder: ") && !message.contains("--work-dir"),
        "{message}"
    );
    assert_eq!(refused["code"], -32_602);
}

#[test]
fn an_empty_session_leaves_nothing_behind_and_a_used_one_is_listed() {
    let desk = Desk::new(&json!(["One."]));
    let mut editor = Editor::ready(&desk);
    let unused = editor.new_session(&desk.path("work"));
    let used = editor.new_session(&desk.path("work"));
    editor.prompt(&used, "Hello there.").unwrap();

    let listed = editor.call("session/list", json!({"cwd": desk.path("work")})).unwrap();
    let elsewhere = editor.call("session/list", json!({"cwd": desk.path("home")})).unwrap();

    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!((&sessions[0]["sessionId"], &sessions[0]["title"]), (&json!(used), &json!("Hello there.")));
    assert_eq!(elsewhere["sessions"], json!([]));
    let mut other = Editor::ready(&desk);
    assert_eq!(other.load(&unused, &desk.path("work")).unwrap_err()["code"], -32_002);
    // A session keeps its id in the editor when it is renamed.
    assert_eq!(desk.run(&["sessions", "rename", &used, "work:hello"]).0, 0);
    other.load(&used, &desk.path("work")).unwrap();
    assert!(other.answer_text().contains("One."));
}
