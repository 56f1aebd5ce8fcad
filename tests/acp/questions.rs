//! Questions: the editor asks its user.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::Editor;

const ASK_FOR_EXEC: &str = "[[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n";

/// A desk whose agent runs a command that has to be approved.
pub(crate) fn asking_desk() -> Desk {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}}]}, "Done.",
        {"calls": [{"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}}]}, "Done again.",
    ]));
    desk.configure(ASK_FOR_EXEC);
    desk
}

pub(crate) fn runs(desk: &Desk) -> usize {
    std::fs::read_to_string(desk.path("work/ran.txt")).unwrap_or_default().lines().count()
}

/// E6, P4.
#[test]
fn a_call_runs_once_the_user_allows_it() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");

    let question = editor.wait_for_question();
    assert_eq!(runs(&desk), 0);
    let pending = editor.updates("tool_call")[0].clone();
    editor.choose(&question, "yes");

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(runs(&desk), 1);
    let asked = &question["params"]["toolCall"];
    assert_eq!((&asked["toolCallId"], &asked["kind"]), (&pending["toolCallId"], &json!("execute")));
    assert_eq!(pending["status"], "pending");
    assert!(asked["content"][0]["content"]["text"].as_str().unwrap().contains("echo ran"), "{asked}");
    let options: Vec<&Value> =
        question["params"]["options"].as_array().unwrap().iter().map(|option| &option["optionId"]).collect();
    assert_eq!(options, ["yes", "always", "project", "no"]);
}

/// P4.
#[test]
fn a_refused_call_does_not_run_and_fails() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");

    let question = editor.wait_for_question();
    editor.choose(&question, "no");

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(runs(&desk), 0);
    let last = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(last["status"], "failed", "{last}");
}

/// P4.
#[test]
fn always_is_not_asked_again_in_the_session() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();
    editor.choose(&question, "always");
    editor.result(request).unwrap();

    assert_eq!(editor.prompt(&session, "Again.").unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(runs(&desk), 2);
}

/// P4: a question can be answered from any client.
#[test]
fn an_answer_from_the_command_line_withdraws_the_request() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();

    let list = desk.run(&["status", "-s", &session, "--json"]).1;
    let status: Value = serde_json::from_str(&list).unwrap();
    let id = status["questions"][0]["id"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
    assert_eq!(desk.run(&["answer", "-s", &session, &id, "yes"]).0, 0);

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(runs(&desk), 1);
    let withdrawn = editor.seen.iter().find(|message| message["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
}

/// T11.
#[test]
fn cancelling_while_a_question_is_open_ends_the_turn() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();

    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.reply(&question, json!({"outcome": {"outcome": "cancelled"}}));

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "cancelled"}));
    assert_eq!(runs(&desk), 0);
    // The late answer of the editor does not cancel the next turn.
    assert_eq!(editor.prompt(&session, "Again.").unwrap(), json!({"stopReason": "end_turn"}));
}

/// P4.
#[test]
fn an_editor_that_cannot_ask_gets_the_question_as_text_and_answers_with_a_prompt() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();

    let error = json!({"code": -32_601, "message": "no such method"});
    editor.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
    assert!(editor.answer_text().contains("answer with your next message"), "{}", editor.answer_text());
    assert_eq!(editor.prompt(&session, "yes").unwrap(), json!({"stopReason": "end_turn"}));
    assert_eq!(runs(&desk), 1);
    assert!(editor.answer_text().ends_with("Done."), "{}", editor.answer_text());
}

/// E6: a command is no answer to a question that the next message answers.
#[test]
fn a_slash_command_leaves_an_open_question_as_it_is() {
    let ask = json!({"name": "ask_user", "arguments": {"question": "What is it called?"}});
    let desk = Desk::new(&json!([{"calls": [ask]}, "Done."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, "Go.").unwrap();

    editor.prompt(&session, "/status").unwrap();

    assert!(editor.answer_text().contains("permission: auto"), "{}", editor.answer_text());
    assert_eq!(editor.prompt(&session, "Longhaul").unwrap(), json!({"stopReason": "end_turn"}));
    assert!(editor.answer_text().ends_with("Done."), "{}", editor.answer_text());
}

/// S2, E6: an editor that chooses a mode for each thread that it opens leaves no empty sessions behind.
#[test]
fn a_mode_that_is_chosen_before_the_first_prompt_counts_from_it_on() {
    let desk = asking_desk();
    desk.configure("");
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).unwrap();

    let list = desk.run(&["sessions", "list", "--json"]).1;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap(), json!([]));
    let request = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();
    editor.choose(&question, "yes");
    editor.result(request).unwrap();
    assert_eq!(runs(&desk), 1);
}

/// E6: modes.
#[test]
fn a_plan_is_carried_out_within_the_prompt_that_asked_for_it() {
    let desk = Desk::new(&json!([
        "The plan: write a file.",
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]},
        "Done.",
    ]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).unwrap();
    let request = editor.send_prompt(&session, "Plan it.");

    let question = editor.wait_for_question();
    assert_eq!(question["params"]["toolCall"]["kind"], "switch_mode");
    editor.choose(&question, "yes");

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
    assert!(desk.path("work/a.txt").exists());
    assert!(editor.answer_text().ends_with("Done."), "{}", editor.answer_text());
    assert_eq!(editor.updates("current_mode_update").last().unwrap()["currentModeId"], "auto");
}

#[test]
fn a_plan_that_is_left_ends_its_prompt() {
    let desk = Desk::new(&json!(["The plan: nothing.", "Fine."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).unwrap();
    let request = editor.send_prompt(&session, "Plan it.");

    let question = editor.wait_for_question();
    editor.choose(&question, "no");

    assert_eq!(editor.result(request).unwrap(), json!({"stopReason": "end_turn"}));
}

/// E6: nothing that the editor waits for stays open when it closes a session.
#[test]
fn closing_a_session_answers_its_prompt_and_ends_its_question() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let prompt = editor.send_prompt(&session, "Go.");
    let question = editor.wait_for_question();

    let close = editor.request("session/close", json!({"sessionId": session}));

    assert_eq!(editor.result(prompt).unwrap(), json!({"stopReason": "cancelled"}));
    assert_eq!(editor.result(close).unwrap(), json!({}));
    let ended = |message: &&Value| message["method"] == "$/cancel_request";
    let ended: Vec<&Value> = editor.seen.iter().filter(ended).collect();
    assert_eq!(ended[0]["params"]["requestId"], question["id"]);
    assert_eq!(runs(&desk), 0);
    let unknown = editor.prompt(&session, "Again.").unwrap_err();
    assert!(unknown["message"].as_str().unwrap().contains("there is no session"), "{unknown}");
}

/// E6: a prompt of a session that is opened again is answered, and the turn goes on.
#[test]
fn loading_an_open_session_answers_its_first_prompt() {
    let desk = asking_desk();
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    let prompt = editor.send_prompt(&session, "Go.");
    let first = editor.wait_for_question();

    let load = json!({"sessionId": session, "cwd": desk.path("work"), "mcpServers": []});
    let load = editor.request("session/load", load);

    let left = editor.result(prompt).unwrap_err();
    assert!(left["message"].as_str().unwrap().contains("the turn goes on"), "{left}");
    editor.result(load).unwrap();
    let question = editor.wait_for_question();
    // The first dialog would have no effect any more, so the editor closes it.
    let is_withdrawn = |message: &Value| {
        message["method"] == "$/cancel_request" && message["params"]["requestId"] == first["id"]
    };
    if !editor.seen.iter().any(is_withdrawn) {
        editor.wait_for(is_withdrawn);
    }
    editor.choose(&question, "yes");
    editor.wait_for_update("session_info_update");
    assert_eq!(runs(&desk), 1);
}
