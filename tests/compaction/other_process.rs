//! Making a context smaller that another process has.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Desk, long, summary};

/// How long a test waits before it gives up.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Runs until the test lets go.
const WAITS: &str = "while [ ! -e go.txt ]; do sleep 0.02; done; echo on";

/// A process that serves the home, and the events that it prints.
struct Serving(Child, Receiver<Value>);

impl Serving {
    fn new(desk: &Desk) -> Self {
        let mut command = desk.command(&["serve", "--no-http", "--json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (send, events) = channel();
        std::thread::spawn(move || {
            let events = lines.map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap());
            events.into_iter().try_for_each(|event| send.send(event))
        });
        Self(process, events)
    }

    fn wait_for(&self, kind: &str) -> Value {
        loop {
            let event = self.1.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|error| panic!("{kind}: {error}"));
            if event["type"] == kind {
                return event;
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(desk: &Desk, text: &str) {
    let (code, _, errors) = desk.run(&["send", "-s", "a", text]);
    assert_eq!(code, 0, "{errors}");
}

/// T3, C3: an order works from any process.
#[test]
fn the_process_that_has_the_session_makes_it_smaller_and_the_other_says_so() {
    let desk = Desk::new(&json!([long(), summary()]));
    let serving = Serving::new(&desk);
    send(&desk, "speak");
    serving.wait_for("turn_ended");

    let (code, out, errors) = desk.run(&["compact", "-s", "a", "words"]);
    let done = serving.wait_for("compact_done");
    let again = desk.run(&["compact", "-s", "a"]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("compacted: ") && out.contains(" tokens ("), "{out}");
    assert_eq!(done["epoch"], 2);
    assert!(again.1.starts_with("nothing to compact: nothing is new"), "{again:?}");
    assert_eq!(desk.records("a", "compact_start")[0]["focus"], "words");
}

/// C4: between two steps of a turn, which goes on, and of which whoever asked sees nothing.
#[test]
fn in_the_middle_of_a_turn_it_happens_before_the_next_step() {
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": WAITS}}]});
    let desk = Desk::new(&json!([long(), call, summary(), "Two."]));
    let serving = Serving::new(&desk);
    send(&desk, "speak");
    serving.wait_for("turn_ended");
    send(&desk, "go on");
    serving.wait_for("tool_started");

    let client = desk.command(&["compact", "-s", "a"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let client = client.unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while desk.records("a", "order_taken").is_empty() {
        assert!(Instant::now() < deadline, "the order is not taken");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    let (code, out, errors) = crate::desk::told(&client.wait_with_output().unwrap());
    let ended = serving.wait_for("turn_ended");

    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("compacted: ") && !out.contains("Two."), "{out}");
    assert!(!errors.contains("exec"), "{errors}");
    assert_eq!((&ended["outcome"], &ended["text"]), (&json!("completed"), &json!("Two.")));
}
