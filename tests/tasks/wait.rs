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

/// K6: Ctrl-C in a turn that the end of a task began ends that turn and the waiting, whatever else still runs.
#[test]
fn an_interrupt_in_a_turn_that_a_task_began_leaves_the_other_tasks_alone() {
    let slow = json!({"text": "word ".repeat(2_000), "piece_ms": 20});
    let desk = Desk::new(&json!(["Started.", slow]));
    desk.task("a", WAITS);
    desk.task("a", "while [ ! -e end.txt ]; do sleep 0.02; done");
    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    running.line();
    desk.let_go();
    eventually("the end of the task began a turn", || desk.records("a", "attempt_started").len() == 2);

    running.signal(Signal::INT);
    let (code, _, errors) = running.end();

    assert_eq!((code, errors.matches("longhaul tasks follow").count()), (130, 1), "{errors}");
    assert!(errors.contains("turn cancelled"), "{errors}");
    let outcomes: Vec<_> =
        desk.records("a", "turn_ended").iter().map(|ended| ended["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("completed"), json!("cancelled")]);
    let cancels = desk.records("a", "order_taken");
    assert_eq!(cancels.len(), 1, "one order for one turn: {cancels:?}");
}

/// K6: which ends begin a turn is for whoever runs the session to say.
#[test]
fn run_does_not_wait_for_a_turn_that_another_process_never_begins() {
    let slow = json!({"text": "word ".repeat(100), "piece_ms": 10});
    let desk = Desk::new(&json!([slow, "Started.", "never said"]));
    std::fs::write(desk.path("other.toml"), "[exec]\nwake = \"never\"\n").unwrap();
    desk.task("a", WAITS);
    let other = desk.path("other.toml").display().to_string();
    let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json", "--config", &other]));
    desk.run(&["send", "-s", "a", "begin"]);
    serving.wait_for("step_started");

    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    let first = running.line();
    desk.let_go();
    let (code, rest, errors) = running.end();
    serving.signal(Signal::TERM);

    assert_eq!((first.as_str(), rest.as_str(), code), ("Started.", "", 0), "{errors}");
    serving.end();
}

/// K6: the turn that the end of a task begins may run in either process.
#[test]
fn run_comes_to_its_end_beside_a_process_that_serves_the_same_home() {
    let desk = Desk::new(&json!(["Started.", "It is done."]));
    desk.task("a", WAITS);
    let mut running = Running::start(desk.command(&["run", "--wait", "-s", "a", "hi"]));
    let first = running.line();
    let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json"]));
    desk.run(&["send", "-s", "other", "begin"]);
    serving.wait_for("turn_ended");

    desk.let_go();
    let (code, rest, errors) = running.end();
    serving.signal(Signal::TERM);
    serving.end();

    assert_eq!((first.as_str(), rest.as_str(), code), ("Started.", "It is done.\n", 0), "{errors}");
    assert_eq!(desk.records("a", "notification").len(), 1);
}
