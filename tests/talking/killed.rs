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
    let asked = again.wait_to_see("Go on with it? [Y/n]");

    assert!(asked.contains("marmalade") && asked.contains("[interrupted here]"), "{asked}");
    again.keys("n\r");
    let told = again.wait_to_see("cancelled");
    assert!(!told.contains("goes on:"), "{told}");
    again.keys("/exit\r");
    assert_eq!(again.wait().code(), Some(0));
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
    let asked = again.wait_to_see("Go on with it? [Y/n]");

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
        longhaul_agent::load(&*journal, &key, id).await.unwrap()
    });
    let sent: Vec<String> = state.items.iter().map(|item| format!("{item:?}")).collect();
    let kept = sent.iter().position(|item| item.contains("Assistant") && item.contains("marmalade"));
    let note = sent.iter().position(|item| item.contains("Go on from exactly this point"));
    assert!(kept.is_some() && note > kept, "{sent:?}");
}
