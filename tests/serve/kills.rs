//! Kill anywhere, for real: `serve` is killed at random moments of a turn with every effect, again and again.

use std::time::Duration;

use longhaul_protocol::{Record, SessionRecord};
use longhaul_testkit::SeededRandom;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Desk, eventually};

/// How often the suite kills; `scripts/soak` sets another number.
fn kills() -> u64 {
    std::env::var("LONGHAUL_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(30)
}

/// Fourteen steps. Each command leaves one line, so one that ran twice leaves two. Only what looks comes two to an answer: of an
/// answer that is cut short after its first call, the second is not run, and a script does not ask for it again.
fn turn() -> Value {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let exec = |command: &str| call("exec", json!({"command": command}));
    json!([
        {"text": "A plan, in some words.", "piece_ms": 4, "calls": [call("todo", json!({"items": [{"text": "build", "status": "in_progress"}]}))]},
        {"calls": [call("write_file", json!({"path": "a.txt", "content": "one\n"}))]},
        {"calls": [call("read_file", json!({"path": "a.txt"})), call("list_files", json!({}))]},
        {"calls": [call("edit_file", json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}))]},
        {"calls": [exec("echo first >> log.txt; cat a.txt")]},
        {"calls": [exec("echo second >> log.txt; sleep 0.3; echo slept")]},
        {"text": "Half of it is done by now.", "piece_ms": 4, "calls": [call("search_text", json!({"pattern": "two"}))]},
        {"calls": [call("write_file", json!({"path": "sub/b.txt", "content": "b\n"}))]},
        {"calls": [exec("echo third >> log.txt; exit 3")]},
        {"calls": [call("edit_file", json!({"path": "sub/b.txt", "edits": [{"old": "b", "new": "bb"}]}))]},
        {"calls": [exec("echo fourth >> log.txt; sleep 0.2")]},
        {"calls": [call("read_file", json!({"path": "missing"})), call("find_files", json!({"pattern": "**/*.txt"}))]},
        {"calls": [call("todo", json!({"items": [{"text": "build", "status": "done"}]}))]},
        "All done.",
    ])
}

fn ended(records: &[Record]) -> bool {
    records.iter().any(|record| record.kind == "turn_ended")
}

/// Plays whole turns until so many processes were ended by this signal.
fn play(signal: Signal, enough: u64) {
    let mut chance = SeededRandom::new();
    let mut count = 0;
    while count < enough {
        let desk = Desk::new(&turn());
        desk.send("go");
        for _ in 0..12 {
            let serving = desk.serve();
            std::thread::sleep(Duration::from_millis(chance.below(260)));
            serving.end(signal);
            count += 1;
            if ended(&desk.records()) || count >= enough {
                break;
            }
        }
        if !ended(&desk.records()) {
            let last = desk.serve();
            last.wait_for("turn_ended");
            last.end(Signal::TERM);
        }
        check(&desk);
    }
}

/// T1, T5, T12, T13, K9: the same end, whatever happened on the way.
fn check(desk: &Desk) {
    let records = desk.sound_records();
    let SessionRecord::TurnEnded(end) = SessionRecord::decode(records.last().unwrap()).unwrap() else {
        panic!("{:?}", records.last())
    };
    assert_eq!((end.text.as_str(), end.error), ("All done.", None));
    assert_eq!(desk.file("log.txt"), "first\nsecond\nthird\nfourth\n", "each command ran once");
    assert_eq!((desk.file("a.txt"), desk.file("sub/b.txt")), ("two\n".to_owned(), "bb\n".to_owned()));
    let results: Vec<(bool, String)> = records
        .iter()
        .filter_map(|record| match SessionRecord::decode(record).unwrap() {
            SessionRecord::ToolFinished(finished) => Some((finished.is_error, finished.content)),
            _ => None,
        })
        .collect();
    assert!((13..=15).contains(&results.len()), "{results:?}");
    let failed: Vec<&String> =
        results.iter().filter(|(is_error, _)| *is_error).map(|(_, content)| content).collect();
    assert!(failed.len() == 1 && failed[0].contains("missing"), "nothing is told as unknown: {failed:?}");
    assert!(results.iter().any(|(_, content)| content.contains("slept")), "the output of a command is whole");
    let inputs = records.iter().filter(|record| record.kind == "input_taken").count();
    assert_eq!(inputs, 1);
    eventually("no keeper is left", || !keepers_of(desk));
}

/// Whether a keeper of this home still runs: they end with their commands.
fn keepers_of(desk: &Desk) -> bool {
    let home = desk.home().canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    folders.into_iter().any(|folder| folder.starts_with(&home))
}

/// T12
#[test]
fn killed_at_random_moments_a_turn_comes_to_the_same_end() {
    play(Signal::KILL, kills());
}

/// T12, S1: on purpose is never worse.
#[test]
fn suspended_at_random_moments_a_turn_comes_to_the_same_end() {
    play(Signal::TERM, kills() / 2);
}
