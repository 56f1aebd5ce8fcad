//! `/compact` as somebody at a terminal uses it, and Ctrl-C while it is waited for.

use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Desk, long, summary, told};

const PROMPT: &str = "> ";

/// A summary that takes longer than anybody waits for.
fn slow() -> Value {
    json!({"summary": true, "text": "never", "wait_ms": 60_000})
}

/// S6, C4: nobody is kept from typing, and the turn goes on.
#[test]
fn while_a_turn_runs_it_is_put_off_to_the_next_step() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let desk = Desk::new(&json!([long(), call, summary(), "Both."]));
    let mut terminal = Terminal::start(desk.command(&["--plain"]));
    terminal.wait_for(PROMPT);
    terminal.keys("speak\r");
    terminal.wait_for("count-\r\n");
    terminal.wait_for(PROMPT);

    terminal.keys("go\n");
    terminal.wait_for("· exec");
    terminal.keys("/compact the end\n");
    terminal.wait_for("the context will be compacted before the next step");
    terminal.keys("/context\n");
    terminal.wait_for("compactions   0 compactions");
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    terminal.wait_for("compacting the context: requested");
    terminal.wait_for("compacted the context: ");
    terminal.wait_for("Both.");
    terminal.wait_for(PROMPT);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert_eq!(desk.records(&desk.key(), "turn_started").len(), 2);
}

/// C11
#[test]
fn an_interrupt_ends_it_and_the_conversation_goes_on_as_it_was() {
    let desk = Desk::new(&json!([long(), slow(), "Still here."]));
    let mut terminal = Terminal::start(desk.command(&["--plain"]));
    terminal.wait_for(PROMPT);
    terminal.keys("speak\r");
    terminal.wait_for("count-\r\n");
    terminal.wait_for(PROMPT);

    terminal.keys("/compact\r");
    terminal.wait_for("compacting the context: requested");
    terminal.keys("\x03");
    terminal.wait_for("could not compact the context: cancelled");
    terminal.wait_for(PROMPT);
    terminal.keys("and?\r");
    terminal.wait_for("Still here.");
    terminal.wait_for(PROMPT);
    terminal.keys("/exit\r");

    terminal.wait();
    assert_eq!(desk.records(&desk.key(), "compact_failed").len(), 1);
}

/// C11: one that a signal ends is closed as failed, and nothing of it is half done.
#[test]
fn a_process_that_is_interrupted_leaves_the_session_as_it_was() {
    let desk = told(&[slow()]);
    let mut terminal = Terminal::start(desk.command(&["compact", "-s", "a"]));
    terminal.wait_for("compacting the context: requested");

    terminal.signal(Signal::INT);
    terminal.wait_for("stopped; the session is unchanged");

    assert_eq!(terminal.wait().code(), Some(130));
    assert_eq!(desk.records("a", "compact_failed"), [json!({"reason": "suspended"})]);
    assert_eq!(desk.records("a", "epoch_started").len(), 1);
}
