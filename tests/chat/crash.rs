//! T12: a conversation that was killed in the middle of an answer.

use std::time::{Duration, Instant};

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
        let asked = left.wait_to_see("Resume it? [Y/n]");
        assert!(asked.contains("· exec  while [ ! -e go ]") && asked.contains("[was running]"), "{asked}");
        assert!(!asked.contains("{\"command\""), "{asked}");
        left.keys(key);
        left.wait_to_see("the turn stays open; to resume: longhaul resume cli:work-");
        assert_eq!(left.wait().code(), Some(0));
    }
    std::fs::write(desk.path("work/go"), "").unwrap();
    let mut again = Terminal::start(desk.command(&[]));
    again.wait_to_see("Resume it? [Y/n]");
    again.keys("y\r");
    again.wait_to_see("It did.");
    desk.wait_for(1, "turn_ended");
    again.keys("/exit\r");
    again.wait();

    assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("completed")]);
}

/// T12: a call that goes on after a kill is shown as it is after any other start: with its arguments, while it runs and when it is done.
#[test]
fn a_command_that_is_resumed_after_a_kill_is_shown_while_it_runs() {
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

    let mut again = Terminal::start(desk.command(&[]));
    again.wait_to_see("Resume it? [Y/n]");
    again.keys("y\r");
    again.wait_until("the command is shown as running", |seen| {
        let below = seen.split_once("resuming turn 1").map_or("", |(_, below)| below);
        below.contains("exec  while [ ! -e go ]")
    });
    std::fs::write(desk.path("work/go"), "").unwrap();
    let done = again.wait_to_see("It did.");
    again.keys("/exit\r");
    again.wait();

    assert!(done.contains("✓ exec  while [ ! -e go ]"), "{done}");
}

/// Ends every keeper of the desk, and with each its command.
fn kill_keepers(desk: &Desk) {
    for folder in std::fs::read_dir(desk.path("home/tasks")).unwrap() {
        let lock = std::fs::read(folder.unwrap().path().join("lock")).unwrap_or_default();
        let lock: serde_json::Value = serde_json::from_slice(&lock).unwrap_or_default();
        let Some(number) = lock["keeper"]["pid"].as_i64() else { continue };
        let called = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&called).contains("keeper-process") {
            let keeper = rustix::process::Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
            let _ = rustix::process::kill_process(keeper, Signal::KILL);
        }
    }
}

/// P3, T13: killed while a command runs outside of the sandbox, the program finds that run again. Whether the command lives or died, too, it
/// is not started a second time: that would take another yes.
#[test]
fn a_command_that_runs_outside_during_a_kill_is_not_run_again() {
    const LOG: &str = "run\nrun\noutside\n";
    let command = "echo run >> log.txt; ls / > /dev/null && { echo outside >> log.txt; \
                   while [ ! -e go ]; do sleep 0.02; done; echo went; }";
    for died_too in [false, true] {
        let desk = Desk::new(
            &json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "So be it."]),
        );
        let log = || std::fs::read_to_string(desk.path("work/log.txt")).unwrap_or_default();
        let mut terminal = Terminal::start(desk.command(&[]));
        wait_for_prompt(&mut terminal);
        terminal.keys("go\r");
        desk.wait_for(1, "question");
        terminal.wait_to_see("or type why not");
        terminal.keys("y\r");
        let deadline = Instant::now() + Duration::from_secs(60);
        while log() != LOG {
            assert!(Instant::now() < deadline, "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        terminal.signal(Signal::KILL);
        terminal.wait();
        if died_too {
            kill_keepers(&desk);
        }

        let mut again = Terminal::start(desk.command(&[]));
        again.wait_to_see("Resume it? [Y/n]");
        std::fs::write(desk.path("work/go"), "").unwrap();
        again.keys("y\r");
        again.wait_to_see("So be it.");
        again.keys("/exit\r");
        again.wait();

        assert_eq!(log(), LOG, "died too: {died_too}");
        assert_eq!(desk.recorded("answered", "answer"), [json!("yes")]);
        let told = desk.recorded("tool_finished", "content");
        assert_eq!((told.len(), told[0].as_str().unwrap().contains("\nwent\n")), (1, !died_too), "{told:?}");
    }
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
