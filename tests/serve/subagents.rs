//! Trees of subagents under `serve`, which is killed at random moments, again and again.

use std::time::Duration;

use longhaul_protocol::{Outcome, Record, SessionId, SessionRecord, StreamName};
use longhaul_testkit::SeededRandom;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Desk, eventually};

/// How often the suite kills; `scripts/soak` sets another number.
fn kills() -> u64 {
    std::env::var("LONGHAUL_TREE_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(12)
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A desk whose agent starts three subagents that it waits for, and one in the background. Each has a script of its own.
fn tree_desk(child: &Value) -> Desk {
    let desk = Desk::new(&json!([]));
    let file = desk.0.path().join("child.json");
    std::fs::write(&file, child.to_string()).unwrap();
    let model = format!("scripted/{}", file.display());
    let agent = |background: bool| {
        call("agent", &json!({"prompt": "Work.", "model": model, "background": background}))
    };
    let script = json!([
        {"calls": [agent(true)]},
        {"calls": [agent(false), agent(false), agent(false)]},
        "All have answered.",
        "The last one, too.",
    ]);
    std::fs::write(desk.0.path().join("script.json"), script.to_string()).unwrap();
    desk
}

fn facts(records: &[Record]) -> Vec<SessionRecord> {
    records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect()
}

fn children(records: &[Record]) -> Vec<SessionId> {
    let started = facts(records).into_iter().filter_map(|fact| match fact {
        SessionRecord::ToolStarted(started) => Some(started.child?.session),
        _ => None,
    });
    started.collect()
}

fn outcomes(records: &[Record]) -> Vec<Outcome> {
    let ended = facts(records).into_iter().filter_map(|fact| match fact {
        SessionRecord::TurnEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    ended.collect()
}

/// Whether the tree has come to rest: no turn is open, and the model knows of every end.
fn rests(desk: &Desk) -> bool {
    let records = desk.records();
    let count = |kind: &str| records.iter().filter(|record| record.kind == kind).count();
    count("turn_ended") > 0 && count("turn_started") == count("turn_ended") && count("notification") == 1
}

/// A1, A2: each subagent runs once, each result arrives once, whenever the server dies.
#[test]
fn each_subagent_of_a_killed_server_runs_once_and_its_result_arrives_once() {
    let mut chance = SeededRandom::new();
    let mut count = 0;
    while count < kills() {
        let work = json!([{"calls": [call("exec", &json!({"command": "echo worked >> log.txt; sleep 0.1"}))]}, "The result."]);
        let desk = tree_desk(&work);
        desk.send("go");
        for _ in 0..6 {
            let serving = desk.serve();
            std::thread::sleep(Duration::from_millis(chance.below(700)));
            serving.end(Signal::KILL);
            count += 1;
            if rests(&desk) {
                break;
            }
        }
        let last = desk.serve();
        eventually("the tree rests", || rests(&desk));
        last.end(Signal::TERM);

        let records = desk.sound_records();
        assert_eq!(desk.file("log.txt"), "worked\n".repeat(4));
        for child in children(&records) {
            let of_child = desk.records_in(|_| StreamName::session(child));
            assert_eq!(outcomes(&of_child), [Outcome::Completed]);
        }
        let facts = facts(&records);
        let has = |fact: &&SessionRecord| match fact {
            SessionRecord::ToolFinished(done) => done.content.contains("The result."),
            SessionRecord::Notification(told) => told.text.contains("The result."),
            _ => false,
        };
        assert_eq!(children(&records).len(), 4);
        assert_eq!(facts.iter().filter(has).count(), 4, "each result once");
    }
}

/// A2: nothing runs after a cancel, also if the server dies before it has told its subagents.
#[test]
fn nothing_of_a_tree_runs_after_a_cancel_and_a_kill() {
    let mut chance = SeededRandom::new();
    for _ in 0..kills().div_ceil(4) {
        let beat = "echo begun >> begun.txt; while :; do date +%N > beat.txt; sleep 0.02; done";
        let child = json!([
            {"calls": [call("exec", &json!({"command": beat, "timeout": 600}))]},
            {"calls": [call("exec", &json!({"command": "echo later >> later.txt"}))]},
            "never",
        ]);
        let desk = Desk::new(&json!([]));
        let file = desk.0.path().join("child.json");
        std::fs::write(&file, child.to_string()).unwrap();
        let model = format!("scripted/{}", file.display());
        let agent = call("agent", &json!({"prompt": "Beat.", "model": model}));
        let script = json!([{"calls": [agent.clone(), agent]}, "never"]);
        std::fs::write(desk.0.path().join("script.json"), script.to_string()).unwrap();
        desk.send("go");
        let serving = desk.serve();
        eventually("both run", || desk.file("begun.txt").lines().count() == 2);

        let cancelling = desk.command(&["cancel", "-s", "a"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(chance.below(300)));
        serving.end(Signal::KILL);
        let _ = { cancelling }.wait();
        let last = desk.serve();
        let is_over = || desk.records().iter().any(|record| record.kind == "turn_ended");
        eventually("the turn is over", is_over);

        let before = desk.file("beat.txt");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(desk.file("beat.txt"), before, "a command still runs");
        assert_eq!((desk.file("later.txt"), desk.file("begun.txt").lines().count()), (String::new(), 2));
        last.end(Signal::TERM);
        let records = desk.sound_records();
        assert_eq!(outcomes(&records), [Outcome::Cancelled]);
        for child in children(&records) {
            assert_eq!(outcomes(&desk.records_in(|_| StreamName::session(child))), [Outcome::Cancelled]);
        }
    }
}
