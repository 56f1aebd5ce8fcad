//! `run` and the tasks that it leaves behind.

use rustix::process::Signal;
use serde_json::json;

use crate::desk::{Desk, Running, WAITS, eventually};

/// K6
#[test]
fn run_says_which_tasks_go_on() {
    let desk = Desk::new(&json!(["Hello."]));
    let id = desk.task("a", WAITS).to_string();

    let (code, out, errors) = desk.run(&["run", "-s", "a", "hi"]);

    assert_eq!((code, out.as_str()), (0, "Hello.\n"), "{errors}");
    let short = &id[id.len() - 6..];
    assert!(errors.contains(&format!("longhaul tasks follow {short}")), "{errors}");
}

/// K6: the end of a task begins a turn, and its answer is printed, too.
#[test]
fn run_stays_for_tasks_and_prints_what_comes_of_them() {
    let desk = Desk::new(&json!(["Started.", "It is done."]));
    desk.task("a", WAITS);

    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    let first = running.line();
    desk.let_go();
    let (code, rest, errors) = running.end();

    assert_eq!((first.as_str(), rest.as_str(), code), ("Started.", "It is done.\n", 0), "{errors}");
    assert!(errors.contains("completed"), "{errors}");
    assert_eq!(desk.records("a", "notification").len(), 1);
}

#[test]
fn run_follows_a_session_to_its_rest_where_another_process_runs_it() {
    let slow = json!({"text": "word ".repeat(100), "piece_ms": 10});
    let desk = Desk::new(&json!([slow, "Started.", "It is done."]));
    desk.task("a", WAITS);
    let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json"]));
    desk.run(&["send", "-s", "a", "begin"]);
    serving.wait_for("step_started");

    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    let first = running.line();
    desk.let_go();
    let (code, rest, errors) = running.end();
    serving.signal(Signal::TERM);

    assert_eq!((first.as_str(), rest.as_str(), code), ("Started.", "It is done.\n", 0), "{errors}");
    serving.end();
}

#[test]
fn an_interrupt_ends_the_waiting_and_not_the_task() {
    let desk = Desk::new(&json!(["Started."]));
    desk.task("a", WAITS);
    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    running.line();
    eventually("the turn is over", || !desk.records("a", "turn_ended").is_empty());

    running.signal(Signal::INT);
    let (code, _, errors) = running.end();

    assert_eq!((code, errors.contains("longhaul tasks follow")), (130, true), "{errors}");
    assert_eq!(desk.json(&["tasks", "--json"])[0]["status"], json!("running"));
}
