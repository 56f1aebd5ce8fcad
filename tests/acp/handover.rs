//! The editor ends, and the turn goes on.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::editor::{Editor, eventually};
use crate::questions::runs;
use crate::resuming_processes::resuming_processes;

/// A turn with a command that waits for the file `go`.
fn waiting_desk() -> Desk {
    Desk::new(&json!([
        {"text": "I wait.", "calls": [
            {"name": "exec", "arguments": {"command": "echo ran >> ran.txt; while [ ! -e go ]; do sleep 0.01; done"}},
        ]},
        {"text": "Done after all.", "piece_ms": 20},
    ]))
}

/// An editor whose turn runs its command.
fn editor_in_a_turn(desk: &Desk) -> (Editor, String) {
    let mut editor = Editor::ready(desk);
    let session = editor.new_session(&desk.path("work"));
    editor.send_prompt(&session, "Go.");
    eventually("the command runs", || runs(desk) == 1);
    (editor, session)
}

/// The outcomes of the turns of a session.
fn outcomes(desk: &Desk, session: &str) -> Vec<String> {
    let shown = desk.run(&["sessions", "show", session, "--from", "1", "--limit", "1000", "--json"]).1;
    let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
    let records = shown["records_shown"].as_array().cloned().unwrap_or_default();
    let ends = records.into_iter().filter(|record| record["kind"] == "turn_ended");
    ends.map(|record| record["body"]["outcome"].as_str().unwrap_or_default().to_owned()).collect()
}

/// E6: the editor may die, the turn goes on.
#[test]
fn a_turn_goes_on_to_its_end_after_the_editor_has_died() {
    let desk = waiting_desk();
    let (editor, session) = editor_in_a_turn(&desk);

    assert!(editor.die().success());
    std::fs::write(desk.path("work/go"), "").unwrap();

    eventually("the turn ends", || outcomes(&desk, &session) == ["completed"]);
    assert_eq!(runs(&desk), 1);
    eventually("the process that finished it ends", || resuming_processes(&desk.path("home")).is_empty());
    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    assert!(other.answer_text().ends_with("Done after all."), "{}", other.answer_text());
}

/// E6: a prompt that was sent is kept, even if the editor dies at once.
#[test]
fn a_prompt_before_the_end_of_the_input_is_answered_all_the_same() {
    let desk = Desk::new(&json!([{"text": "Here it is.", "wait_ms": 500}]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));

    editor.send_prompt(&session, "Go.");
    assert!(editor.die().success());

    eventually("the turn ends", || outcomes(&desk, &session) == ["completed"]);
}

/// E6.
#[test]
fn an_editor_that_kills_its_agent_right_after_closing_does_not_stop_the_turn() {
    let desk = waiting_desk();
    let (mut editor, session) = editor_in_a_turn(&desk);

    editor.close();
    eventually("another process finishes the turn", || !resuming_processes(&desk.path("home")).is_empty());
    editor.signal(Signal::KILL);
    editor.wait();
    std::fs::write(desk.path("work/go"), "").unwrap();

    eventually("the turn ends", || outcomes(&desk, &session) == ["completed"]);
    assert_eq!(runs(&desk), 1);
}

/// E6: the editor comes back while the turn goes on without it.
#[test]
fn an_editor_that_comes_back_sees_the_turn_that_goes_on() {
    let desk = waiting_desk();
    let (editor, session) = editor_in_a_turn(&desk);
    assert!(editor.die().success());

    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    std::fs::write(desk.path("work/go"), "").unwrap();

    other.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 1);
    assert!(other.answer_text().ends_with("Done after all."), "{}", other.answer_text());
    assert_eq!(runs(&desk), 1);
}

/// T12: SIGTERM suspends, and `session/load` goes on.
#[test]
fn sigterm_suspends_the_turn_until_the_session_is_loaded() {
    let desk = waiting_desk();
    let (mut editor, session) = editor_in_a_turn(&desk);

    editor.signal(Signal::TERM);
    assert_eq!(editor.wait().code(), Some(143));
    std::fs::write(desk.path("work/go"), "").unwrap();
    assert_eq!(outcomes(&desk, &session), Vec::<String>::new());

    let mut other = Editor::ready(&desk);
    other.load(&session, &desk.path("work")).unwrap();
    other.wait_for(|message| message["params"]["update"]["_meta"]["longhaul"]["turn"] == 1);
    assert_eq!(outcomes(&desk, &session), ["completed"]);
    assert_eq!(runs(&desk), 1);
}

#[test]
fn an_idle_editor_that_ends_starts_no_process() {
    let desk = Desk::new(&json!(["One."]));
    let mut editor = Editor::ready(&desk);
    let session = editor.new_session(&desk.path("work"));
    editor.prompt(&session, "Go.").unwrap();

    assert!(editor.die().success());

    assert_eq!(resuming_processes(&desk.path("home")), Vec::<String>::new());
}
