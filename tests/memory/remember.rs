//! `longhaul remember`, `run --wait` and what `status` says of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Desk, SAID, extracted};

fn extracts(desk: &Desk, key: &str) -> Vec<Value> {
    let shown = desk.json(&["sessions", "show", key, "--stream", "extract", "--json"]);
    shown["records_shown"].as_array().unwrap().clone()
}

/// Y13
#[test]
fn words_are_remembered_without_a_model() {
    let desk = Desk::new(&json!(["Hello."]));
    assert_eq!(desk.run(&["run", "-s", "a", "hello"]).0, 0);

    let (code, out, errors) =
        desk.run(&["--model", "nobody/at-all", "remember", "-s", "a", "The user likes tea."]);

    assert_eq!(code, 0, "{errors}");
    assert_eq!(out, "remembered in core (change 1; to undo: longhaul memory undo 1)\n");
    assert!(desk.run(&["memory", "show", "core"]).1.contains("The user likes tea."));
    assert_eq!(desk.json(&["memory", "log", "--json"])[0]["by"], "note");
    let changed = desk.json(&["remember", "-s", "a", "--json", "And coffee."]);
    assert_eq!((&changed["seq"], &changed["pages"]), (&2.into(), &json!(["core"])));
    let (code, _, errors) = desk.run(&["remember", "-s", "a", " "]);
    assert!(code == 2 && errors.contains("nothing to remember"), "{errors}");
    assert_eq!(desk.run(&["remember", "-s", "nobody", "x"]).0, 2);
}

/// Y2, Y6, J3
#[test]
fn a_session_is_gone_through_when_somebody_asks() {
    let desk = Desk::new(&json!(["Hello.", extracted("The user likes tea.", SAID)]));
    assert_eq!(desk.run(&["run", "-s", "a", "I like tea"]).0, 0);
    assert_eq!(extracts(&desk, "a").len(), 0, "a run alone never extracts");

    let first = desk.json(&["remember", "-s", "a", "--json"]);
    let (code, again, errors) = desk.run(&["remember", "-s", "a"]);

    assert_eq!((&first["session"], &first["parts"]), (&"a".into(), &1.into()), "{first}");
    assert_eq!((&first["items"], &first["refused"]), (&1.into(), &json!([])));
    assert_eq!(desk.json(&["memory", "--json"])["waiting"], 1);
    assert_eq!(code, 0, "{errors}");
    assert!(again.starts_with("nothing new to remember"), "{again}");
    assert_eq!(extracts(&desk, "a").len(), 1);
    assert_eq!(desk.records("a", "turn_started").len(), 1, "no turn, and nothing else, was begun for it");
    assert_eq!(desk.json(&["sessions", "show", "a", "--json"])["records"], first["through"]);
    let status = desk.json(&["status", "-s", "a", "--json"]);
    assert_eq!(status["memory"]["extracted_through"], first["through"]);
    assert_eq!((&status["memory"]["calls"], &status["memory"]["page_calls"]), (&1.into(), &0.into()));
    let through = format!("memory        {} of ", first["through"]);
    let (_, shown, _) = desk.run(&["status", "-s", "a"]);
    assert!(shown.contains(&through) && shown.contains("; 1 model call\n"), "{shown}");
}

/// Y1: 0 turns it off: no call, no error, also when asked for.
#[test]
fn a_memory_that_is_off_is_no_error() {
    let desk = Desk::new(&json!(["Hello.", extracted("The user likes tea.", SAID)]));
    desk.configure("[memory]\nextract_at_tokens = 0\n");
    let (code, _, errors) = desk.run(&["run", "--wait", "-s", "a", "I like tea"]);
    assert!(code == 0 && !errors.contains("warning"), "{errors}");

    let (code, out, errors) = desk.run(&["remember", "-s", "a"]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("memory.extract_at_tokens is 0"), "{out}");
    assert_eq!(desk.json(&["remember", "-s", "a", "--json"])["off"], true);
    assert_eq!(extracts(&desk, "a").len(), 0);
    assert!(desk.run(&["status", "-s", "a"]).1.contains("off (memory.extract_at_tokens is 0)"));
}

/// Y2: `run` does not wait for memory; `run --wait` does one extraction of its session before it leaves.
#[test]
fn whoever_stays_until_all_is_done_leaves_a_session_that_was_gone_through() {
    let desk = Desk::new(&json!(["Hello.", extracted("The user likes tea.", SAID)]));

    let (code, out, errors) = desk.run(&["run", "--wait", "--json", "-s", "a", "I like tea"]);

    assert_eq!(code, 0, "{errors}");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let extracted = extracts(&desk, "a");
    assert_eq!(extracted.len(), 1, "{errors}");
    let done: Vec<&Value> = events.iter().filter(|event| event["type"] == "extract_done").collect();
    assert_eq!(done.len(), 1, "{out}");
    assert_eq!(done[0]["through"], extracted[0]["body"]["through"]);
    assert_eq!(extracted[0]["body"]["items"][0]["speaker"], "user");
}

/// Y2: what was asked for is done, whatever becomes of memory.
#[test]
fn a_session_that_can_not_be_gone_through_is_a_warning() {
    let failing = json!({"extract": true, "error": "bad request: no such thing"});
    let desk = Desk::new(&json!(["Hello.", failing, failing, failing]));
    desk.configure("[retry]\nbase_ms = 1\ncap_ms = 1\n");

    let (code, out, errors) = desk.run(&["run", "--wait", "-s", "a", "I like tea"]);

    assert_eq!((code, out.as_str()), (0, "Hello.\n"), "{errors}");
    assert!(errors.contains("warning: could not update memory"), "{errors}");
    assert_eq!(extracts(&desk, "a").len(), 0);
}

/// Y2, J3: memory is nothing that only the process could write that runs the session.
#[test]
fn a_session_that_another_process_runs_is_gone_through_all_the_same() {
    let desk = Desk::new(&json!(["Hello.", "Again.", extracted("The user likes tea.", SAID)]));
    let serving = Serving::start(&desk);
    assert_eq!(desk.run(&["send", "-s", "a", "I like tea"]).0, 0);
    serving.has(&desk, "a");

    let first = desk.json(&["remember", "-s", "a", "--json"]);
    let (code, out, errors) = desk.run(&["run", "--wait", "-s", "a", "and coffee"]);

    serving.has(&desk, "a");
    assert_eq!((&first["parts"], &first["items"]), (&1.into(), &1.into()), "{first}");
    assert_eq!((code, out.as_str()), (0, "Again.\n"), "{errors}");
    let extracts = extracts(&desk, "a");
    assert_eq!(extracts.len(), 2, "{errors}");
    let (before, after) = (&extracts[0]["body"]["through"], &extracts[1]["body"]["from"]);
    assert_eq!(before.as_u64().unwrap() + 1, after.as_u64().unwrap(), "nothing twice, and nothing left out");
}

/// A process that serves the home for as long as this is there.
struct Serving(Child);

impl Serving {
    fn start(desk: &Desk) -> Self {
        let mut serving = Self(desk.command(&["serve", "--no-http"]).stderr(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(serving.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("serving"), "{said}");
        serving
    }

    /// Waits until a session is run there and has come to rest.
    fn has(&self, desk: &Desk, key: &str) {
        let begun = Instant::now();
        loop {
            let (code, out, errors) = desk.run(&["status", "-s", key, "--json"]);
            let status: Value = serde_json::from_str(&out).unwrap_or_default();
            if code == 0 && status["run_by"]["pid"] == self.0.id() && status["last_outcome"] == "completed" {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{out}{errors}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
