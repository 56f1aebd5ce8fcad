//! T12: a conversation that was killed in the middle of an answer.

use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::json;

use super::terminal::wait_for_prompt;
use crate::Desk;

/// T12: the terminal shows the text that was kept, then asks; "n" ends the turn with one word.
#[test]
fn a_killed_answer_is_shown_again_before_it_is_asked_about() {
    let desk = Desk::new(&json!([{"text": "marmalade ".repeat(2_000), "piece_ms": 20}, "Hello."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("marmalade marmalade");
    desk.wait_for(1, "checkpoint");
    terminal.signal(Signal::KILL);
    terminal.wait();

    let mut again = Terminal::start(desk.command(&[]));
    let asked = again.wait_to_see("Resume it? [Y/n]");

    assert!(asked.contains("marmalade"), "{asked}");
    assert!(asked.rfind("marmalade") < asked.find("[interrupted here]"), "{asked}");
    again.keys("n\r");
    let told = again.wait_to_see("cancelled");
    assert!(!told.contains("goes on:"), "{told}");
    again.keys("/exit\r");
    assert_eq!(again.wait().code(), Some(0));
}

/// T12: whoever leaves without an answer has decided nothing.
#[test]
fn a_killed_turn_stays_open_when_the_question_about_it_is_left() {
    let command = "while [ ! -e go ]; do sleep 0.02; done; echo went";
    let desk =
        Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "It did."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("exec ");
    desk.wait_for(1, "tool_started");
    terminal.signal(Signal::KILL);
    terminal.wait();

    for key in ["\x03", "\x04"] {
        let mut left = Terminal::start(desk.command(&[]));
        left.wait_to_see("Resume it? [Y/n]");
        left.keys(key);
        left.wait_to_see("the turn stays open; to resume: longhaul resume cli:work-");
        assert_eq!(left.wait().code(), Some(0));
    }
    std::fs::write(desk.path("work/go"), "").unwrap();
    let mut again = Terminal::start(desk.command(&[]));
    again.wait_to_see("Resume it? [Y/n]");
    again.keys("y\r");
    again.wait_to_see("It did.");
    again.keys("/exit\r");
    again.wait();

    assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("completed")]);
}

/// T12: nothing moves behind the question, because nothing runs.
#[test]
fn a_turn_that_was_killed_before_its_answer_waits_for_no_model_behind_the_question() {
    let desk = Desk::new(&json!([{"text": "Never.", "wait_ms": 600_000}]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("waiting for the model");
    desk.wait_for(1, "attempt_started");
    terminal.signal(Signal::KILL);
    terminal.wait();

    let mut again = Terminal::start(desk.command(&[]));
    let asked = again.wait_to_see("Resume it? [Y/n]");

    assert!(!asked.contains("waiting for the model"), "{asked}");
    again.keys("\x03");
    again.wait();
}

/// M10: `continue` goes on from the text that was kept, also directly after a kill.
#[test]
fn continue_goes_on_from_a_killed_answer() {
    let desk = Desk::new(&json!([{"text": "marmalade ".repeat(2_000), "piece_ms": 20}]));
    let key = desk.key();
    let mut running = desk.command(&["run", "-s", &key, "go"]).spawn().unwrap();
    desk.wait_for(1, "checkpoint");
    running.kill().unwrap();
    running.wait().unwrap();

    let mut continuing = desk.command(&["continue", "-s", &key]).spawn().unwrap();
    desk.wait_for(2, "attempt_started");
    continuing.kill().unwrap();
    continuing.wait().unwrap();

    let state = desk.with_journal(|journal| async move {
        let id = longhaul_journal::Journal::session(&*journal, &key).await.unwrap().unwrap().id;
        longhaul_agent::session::load(&*journal, &key, id).await.unwrap()
    });
    let sent: Vec<String> = state.items.iter().map(|item| format!("{item:?}")).collect();
    let kept = sent.iter().position(|item| item.contains("Assistant") && item.contains("marmalade"));
    let note = sent.iter().position(|item| item.contains("Go on from exactly this point"));
    assert!(kept.is_some() && note > kept, "{sent:?}");
}
