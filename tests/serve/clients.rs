//! What other processes put into an inbox is run by the one that serves, at once.

use std::time::{Duration, Instant};

use serde_json::json;

use rustix::process::Signal;

use longhaul_testkit::TaskProcesses;

use crate::{Desk, eventually, said};

/// Two processes: the holder is told, it does not look once a second. The figure is in `docs/performance.md`.
#[test]
fn an_input_from_another_process_is_taken_at_once() {
    let answers: Vec<String> = (0..40).map(|number| format!("Answer {number}.")).collect();
    let desk = Desk::new(&json!(answers));
    let serving = desk.serve().ready();

    let (mut delays, mut sends) = (Vec::new(), Vec::new());
    for number in 0..9 {
        // Each to a session of its own: nobody holds it, so the host is rung; then again, and its worker is.
        for key in [format!("k{}", number / 2), "a".to_owned()] {
            let began = Instant::now();
            let sent = desk.run(&["send", "-s", &key, "hello"]);
            let put_at = Instant::now();
            sends.push(put_at - began);
            assert!(sent.status.success(), "{}", said(&sent));
            let (taken_at, _) = serving.wait_for("input_taken");
            delays.push(taken_at.saturating_duration_since(put_at));
            serving.wait_for("turn_ended");
        }
    }

    delays.sort();
    sends.sort();
    let median = |times: &[Duration]| times[times.len() / 2];
    // Where sending alone takes long, so does taking.
    let bound = Duration::from_millis(300).max(3 * median(&sends));
    assert!(median(&delays) < bound, "a look a second would take longer: {delays:?}, and {sends:?} to send");
    serving.end(Signal::TERM);
}

/// T3, T10: cancel works from any process, and says so when the end is on record.
#[test]
fn cancel_from_another_process_ends_the_turn_and_its_command() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": "echo > begun.txt; sleep 300 & wait"}}]}, "Never.",
    ]));
    desk.send("go");
    let serving = desk.serve();
    eventually("the command has started", || !desk.file("begun.txt").is_empty());
    let command = TaskProcesses::of_first(&desk.home()).command;

    let cancelled = desk.run(&["cancel", "-s", "a", "--json"]);

    assert_eq!(said(&cancelled).trim(), r#"{"outcome":"cancelled","session":"a","taken":true,"turn":1}"#);
    assert!(!std::path::Path::new(&format!("/proc/{command}")).exists());
    let ended = desk.sound_records().into_iter().any(|record| record.kind == "turn_ended");
    assert!(ended, "it was told before it was on record");
    let again = desk.run(&["cancel", "-s", "a"]);
    assert_eq!(said(&again), "a has no running turn\n");
    serving.end(Signal::TERM);
    let unserved = desk.run(&["cancel", "-s", "a"]);
    assert_eq!(said(&unserved), "a has no running turn\n");
    let unfinished = desk.run(&["resume"]);
    assert!(
        said(&unfinished).contains("nothing to resume"),
        "an order that nobody needs waits: {unfinished:?}"
    );
}

/// T1: accepted without anybody to run it, and run by whoever comes.
#[test]
fn what_is_sent_while_nobody_serves_is_run_later_and_the_same_key_is_one_input() {
    let desk = Desk::new(&json!(["Hello.", "Never."]));
    let first = desk.run(&["send", "-s", "a", "--key", "k", "--json", "hello"]);
    let second = desk.run(&["send", "-s", "a", "--key", "k", "--json", "hello"]);
    let accepted = |output: &std::process::Output| {
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (object["id"].clone(), object["input_seq"].clone(), object["new"] == true)
    };
    let (one, other) = (accepted(&first), accepted(&second));
    assert_eq!((&one.0, &one.1, one.2, other.2), (&other.0, &other.1, true, false));
    assert!(said(&first).contains("no process is running the session"), "{}", said(&first));

    let serving = desk.serve();
    let (_, ended) = serving.wait_for("turn_ended");

    assert_eq!((&ended["text"], &ended["session"]), (&json!("Hello."), &json!("a")));
    serving.end(Signal::TERM);
    let taken = desk.sound_records().iter().filter(|record| record.kind == "input_taken").count();
    assert_eq!(taken, 1);
}

/// T3, with real processes.
#[test]
fn an_input_that_interrupts_comes_through_from_another_process() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": "echo x > started.txt; sleep 300 & wait"}}]}, "After all.",
    ]));
    let serving = desk.serve();
    desk.send("go");
    eventually("the command has started", || !desk.file("started.txt").is_empty());

    let sent = desk.run(&["send", "-s", "a", "--mode", "interrupt", "something else"]);

    assert!(sent.status.success(), "{}", said(&sent));
    let (_, cancelled) = serving.wait_for("turn_ended");
    let (_, completed) = serving.wait_for("turn_ended");
    assert_eq!((&cancelled["outcome"], &completed["text"]), (&json!("cancelled"), &json!("After all.")));
    serving.end(Signal::TERM);
    desk.sound_records();
}

/// J7: a session whose process died is taken over by another that serves the same home.
#[test]
fn a_second_server_goes_on_when_the_first_is_killed() {
    let command = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Done."]));
    let first = desk.serve().ready();
    let second = desk.serve().ready();
    desk.send("go");
    eventually("the command has started", || !desk.file("log.txt").is_empty());

    first.end(Signal::KILL);
    std::fs::write(desk.work().join("go.txt"), "").unwrap();
    let (_, ended) = second.wait_for("turn_ended");

    assert_eq!(ended["text"], json!("Done."));
    assert_eq!(desk.file("log.txt"), "once\n");
    second.end(Signal::TERM);
    desk.sound_records();
}

#[test]
fn a_new_session_works_where_it_was_sent_from_if_that_is_said() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "here.txt", "content": "x"}}]}, "Done.",
    ]));
    let elsewhere = tempfile::tempdir().unwrap();
    let sent = desk.run(&["send", "-s", "a", "--work-dir", elsewhere.path().to_str().unwrap(), "go"]);
    assert!(sent.status.success(), "{}", said(&sent));

    let serving = desk.serve();
    serving.wait_for("turn_ended");

    assert!(elsewhere.path().join("here.txt").exists());
    serving.end(Signal::TERM);
    desk.sound_records();
}

#[test]
fn bad_usage_is_told_with_the_next_step() {
    let desk = Desk::new(&json!([]));
    let refused = |arguments: &[&str], word: &str| {
        let output = desk.run(arguments);
        let text = said(&output);
        assert!(output.status.code() == Some(2) && text.contains(word), "{arguments:?}: {text}");
    };

    refused(&["serve", "--listen", "nowhere"], "127.0.0.1:7171");
    refused(&["--model", "nobody/x", "serve", "--no-http"], "`longhaul models`");
    refused(&["--model", "scripted/none.json", "serve", "--no-http"], "none.json");
    refused(&["--work-dir", "/nowhere", "serve", "--no-http"], "/nowhere");
    refused(&["send", "-s", "a", " "], "empty");
    refused(&["send", "-s", "a\u{1b}[2J", "hello"], "control");
    refused(&["send", "-s", " ", "hello"], "empty");
    refused(&["send", "hello"], "-s KEY");
    refused(&["cancel", "-s", "nobody"], "nobody");
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("config.toml"), "[agent]\nnaem = 1\n").unwrap();
    refused(&["serve", "--no-http"], "naem");
}
