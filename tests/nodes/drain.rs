//! N1: a node that drains hands its sessions over between two steps.

use std::time::Duration;

use serde_json::json;

use crate::{Site, eventually};

/// N1: a drained node hands a session over between two steps: no answer is cut short, nothing runs twice, and the node is empty.
#[test]
fn a_draining_node_hands_its_sessions_over_between_two_steps() {
    let step = |number: u32| {
        let items = json!([{"text": format!("step {number}"), "status": "in_progress"}]);
        json!({"text": "a b c", "piece_ms": 300, "calls": [{"name": "todo", "arguments": {"items": items}}]})
    };
    let mut script: Vec<_> = (0..12).map(step).collect();
    script.push(json!("Done."));
    let site = Site::new(&json!(script));
    site.send_portable("a");
    let ash = site.serve("ash");
    site.wait_for_record("a", "attempt_started");
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");

    site.ok("birch", &["nodes", "drain", "ash"]);
    eventually("birch holds it", || site.holder("a").as_deref() == Some("birch"));
    eventually("ash is empty", || site.node("ash")["running"] == 0);
    let listed = site.ok("birch", &["nodes"]);
    site.wait_for_record("a", "turn_ended");
    site.ok("birch", &["nodes", "drain", "ash", "--undo"]);
    eventually("ash takes sessions", || site.node("ash")["state"] == "live");

    assert!(listed.contains("drained"), "{listed}");
    assert_eq!(site.count("a", "attempt_started"), 13, "no answer was asked for twice");
    assert_eq!(site.count("a", "turn_ended"), 1);
    site.check_records("a");
    drop((ash, birch));
}

/// N1: a rolling upgrade. A node that is ended as a service manager does leaves its turn to another one at once.
#[test]
fn a_node_that_is_stopped_leaves_its_turn_to_another_one() {
    let site = Site::new(&json!([
        {"text": "one two three", "piece_ms": 400, "calls": [{"name": "todo", "arguments": {"items": []}}]},
        {"text": "four five", "piece_ms": 300},
    ]));
    site.send_portable("a");
    let ash = site.serve("ash");
    site.wait_for_record("a", "attempt_started");
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");

    ash.end();
    let since = std::time::Instant::now();
    eventually("birch goes on", || site.holder("a").as_deref() == Some("birch"));
    let took = since.elapsed();
    site.wait_for_record("a", "turn_ended");

    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(site.count("a", "turn_ended"), 1);
    drop(birch);
}
