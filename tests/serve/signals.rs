//! Stopping on purpose is never worse than a crash.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{Desk, eventually};

/// S1, T12: each of them suspends: the turn and its command stay open, and the next process goes on.
#[test]
fn a_signal_suspends_and_the_next_process_goes_on() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let command = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";
        let desk =
            Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Done."]));
        desk.send("go");
        let first = desk.serve();
        eventually("the command has started", || !desk.file("log.txt").is_empty());

        let status = first.end(signal);
        let suspended = desk.sound_records();
        let second = desk.serve();
        std::fs::write(desk.work().join("go.txt"), "").unwrap();
        let (_, finished) = second.wait_for("tool_finished");
        let (_, ended) = second.wait_for("turn_ended");

        assert_eq!(status.code(), Some(code));
        assert_eq!(suspended.last().unwrap().kind, "tool_started", "nothing is ended by a suspension");
        assert!(finished["content"].as_str().unwrap().contains("the end"), "{finished}");
        assert_eq!((&ended["text"], desk.file("log.txt").as_str()), (&json!("Done."), "once\n"));
        second.end(Signal::TERM);
        desk.sound_records();
    }
}

/// S1, M10: text that was on its way is saved.
#[test]
fn a_signal_during_an_answer_saves_its_text_and_the_answer_is_asked_for_again() {
    let text = "word ".repeat(40);
    let desk = Desk::new(&json!([{"text": text, "piece_ms": 300}]));
    desk.send("go");
    let first = desk.serve();
    first.wait_for("text_delta");

    first.end(Signal::TERM);
    let saved = desk.sound_records().iter().any(|record| record.kind == "checkpoint");
    let second = desk.serve();
    let (_, ended) = second.wait_for("turn_ended");

    assert!(saved);
    assert_eq!(ended["text"], json!(text), "nothing of it is there twice");
    second.end(Signal::TERM);
    desk.sound_records();
}

/// S1: an idle one is gone at once, a second signal ends any.
#[test]
fn an_idle_server_ends_quickly_and_leaves_nothing_behind() {
    let desk = Desk::new(&json!(["Hello."]));
    desk.send("hello");
    let serving = desk.serve();
    serving.wait_for("turn_ended");

    let asked = Instant::now();
    serving.signal(Signal::TERM);
    serving.signal(Signal::TERM);
    let status = serving.wait();

    assert_eq!(status.code(), Some(143));
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    let sockets = std::fs::read_dir(desk.home().join("run")).unwrap().flatten();
    let left: Vec<_> = sockets.map(|entry| entry.file_name()).filter(|name| name != "token").collect();
    assert!(left.len() <= 1, "{left:?}");
}

/// A reader that doesn't read holds up neither a turn nor the end.
#[test]
fn a_server_whose_output_nobody_reads_works_and_ends() {
    let words = "word ".repeat(60_000);
    let desk = Desk::new(&json!([words, "Second."]));
    let mut command = desk.command(&["serve", "--no-http", "--json"]);
    let mut serving = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();

    for text in ["one", "two"] {
        desk.send(text);
    }
    eventually("everything that was sent is answered", || {
        let records = desk.records();
        let taken = records.iter().filter(|record| record.kind == "input_taken").count();
        taken == 2 && records.last().unwrap().kind == "turn_ended"
    });
    kill_process(Pid::from_child(&serving), Signal::TERM).unwrap();
    let asked = Instant::now();
    let status = serving.wait().unwrap();

    assert_eq!(status.code(), Some(143));
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
}

/// S1: a terminal that is gone, for words to people as well, is no reason not to save what was on its way.
#[test]
fn a_lost_terminal_suspends() {
    // Nobody sees when its first words have come. On a machine that has much else to do they may not have, but not always.
    eventually("the text so far is saved", || {
        let desk = Desk::new(&json!([{"text": "word ".repeat(300), "piece_ms": 100}]));
        desk.send("go");
        let mut command = desk.command(&["serve", "--no-http"]);
        let mut serving = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((serving.stdout.take(), serving.stderr.take()));
        eventually("the answer has begun", || {
            desk.home().exists() && desk.records().iter().any(|record| record.kind == "attempt_started")
        });
        std::thread::sleep(Duration::from_millis(150));

        kill_process(Pid::from_child(&serving), Signal::HUP).unwrap();
        let status = serving.wait().unwrap();

        assert_eq!(status.code(), Some(129));
        desk.sound_records().pop().unwrap().kind == "checkpoint"
    });
}
