//! A program that reads the events of `serve --json` slowly still gets everything that is on record.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Desk, eventually};

/// T14: in a burst of deltas that its reader does not keep up with, `serve --json` loses no event that has a seq.
#[test]
fn a_reader_that_pauses_during_a_burst_still_gets_the_end_of_the_turn() {
    let text = "many more words ".repeat(4_000);
    let desk = Desk::new(&json!([text, "Second."]));
    desk.send("tell");
    let mut command = desk.command(&["serve", "--no-http", "--json"]);
    let mut serving = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let ends = || desk.records().iter().filter(|record| record.kind == "turn_ended").count();
    eventually("the first turn has ended", || ends() == 1);
    desk.send("more");
    eventually("the second turn has ended", || ends() == 2);

    // Nothing was read so far, and the pipe has been full for long.
    let mut events: Vec<Value> = Vec::new();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let is_end = |events: &[Value]| events.iter().filter(|event| event["type"] == "turn_ended").count() == 2;
    let is_missed = |events: &[Value]| events.iter().any(|event| event["type"] == "missed");
    while !is_end(&events) && !is_missed(&events) {
        let line = lines.next().expect("serve goes on").unwrap();
        events.push(serde_json::from_str(&line).unwrap());
    }
    kill_process(Pid::from_child(&serving), Signal::TERM).unwrap();
    serving.wait().unwrap();

    assert!(!is_missed(&events), "{:?}", events.last());
    let said: String = events
        .iter()
        .filter(|event| event["type"] == "text_delta")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert!(said == text + "Second.", "{} bytes came, and the last event is {:?}", said.len(), events.last());
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
    let shown = ["input_taken", "turn_started", "step_started", "turn_ended"];
    let records = desk.sound_records();
    let expected =
        records.iter().filter(|record| shown.contains(&record.kind.as_str())).map(|record| record.seq);
    assert_eq!(expected.filter(|seq| !seqs.contains(seq)).collect::<Vec<_>>(), Vec::<u64>::new());
}
