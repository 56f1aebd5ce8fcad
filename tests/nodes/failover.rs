//! N1: a node that dies, hangs or is cut off is replaced, and can't write when it comes back.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::{Site, can_pretend_machines, eventually};

/// The longest time from the death of a node to the next record.
const MAX_FAILOVER: Duration = Duration::from_secs(15);

/// An answer that takes a while, and another one after a step.
fn slow_script() -> serde_json::Value {
    json!([
        {"text": "one two three four five six", "piece_ms": 200, "calls": [{"name": "todo", "arguments": {"items": []}}]},
        {"text": "seven eight nine", "piece_ms": 300},
    ])
}

/// Kills the node that runs the session `a` in the middle of its turn, and returns how long it took until another one went on.
fn failover(site: &Site, nodes: Vec<crate::Node>, key: &str) -> Duration {
    site.wait_for_record(key, "attempt_started");
    let mut holder = None;
    eventually("a node holds the session", || {
        holder = site.holder(key);
        holder.is_some()
    });
    let holder = holder.unwrap();
    let (running, others): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.id == holder);
    let before = site.records(key).len();
    let killed = running.into_iter().next().unwrap().kill();
    eventually("another node goes on", || site.records(key).len() > before);
    let took = killed.elapsed();
    site.wait_for_record(key, "turn_ended");
    assert_eq!(site.count(key, "turn_ended"), 1);
    site.check_records(key);
    drop(others);
    took
}

/// N1: where another node of the same machine sees that the process is gone, it goes on within about a second.
#[test]
fn a_killed_node_is_replaced_at_once_on_the_same_machine() {
    let site = Site::new(&slow_script());
    site.send_portable("a");

    let nodes = vec![site.serve("ash"), site.serve("birch")];
    let took = failover(&site, nodes, "a");

    println!("failover on one machine: {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// N1: a node that dies is replaced within 15 s, although the others can't see its processes.
#[test]
fn a_dead_machine_is_replaced_within_fifteen_seconds() {
    if !can_pretend_machines() {
        return;
    }
    let site = Site::new(&slow_script());
    site.send_portable("a");

    let nodes = vec![site.serve_elsewhere("ash"), site.serve_elsewhere("birch")];
    let took = failover(&site, nodes, "a");

    println!("failover to another machine: {took:?}");
    assert!(took < MAX_FAILOVER, "{took:?}");
}

/// N1: a node that hangs is replaced. When it comes back, it writes nothing and has no effect: the turn ends once, and the command of the
/// turn ran once for each time that it is on record.
#[test]
fn a_node_that_hangs_is_replaced_and_does_nothing_when_it_returns() {
    if !can_pretend_machines() {
        return;
    }
    let site = Site::new(&json!([
        {"text": "I note it.", "wait_ms": 1500, "calls": [{"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}}]},
        {"text": "Done.", "wait_ms": 500},
    ]));
    site.send_portable("a");
    let (ash, birch) = (site.serve_elsewhere("ash"), site.serve_elsewhere("birch"));
    site.wait_for_record("a", "attempt_started");
    let mut holder = None;
    eventually("a node holds the session", || {
        holder = site.holder("a");
        holder.is_some()
    });
    let hung = if holder.as_deref() == Some("ash") { &ash } else { &birch };

    hung.signal(Signal::STOP);
    site.wait_for_record("a", "turn_ended");
    hung.signal(Signal::CONT);
    let ended = site.records("a").len();
    std::thread::sleep(Duration::from_secs(4));

    assert_eq!(site.records("a").len(), ended, "the node that came back wrote nothing");
    assert_eq!(site.count("a", "turn_ended"), 1);
    assert_eq!(std::fs::read_to_string(site.path("work/ran.txt")).unwrap(), "ran\n");
    site.check_records("a");
}

/// N4: the server is restarted in the middle of a turn. Nothing that was acknowledged is lost, and the turn goes on.
#[test]
fn nodes_survive_a_restart_of_the_server() {
    let site = Site::new(&slow_script());
    site.send_portable("a");
    let nodes = [site.serve("ash"), site.serve("birch")];
    site.wait_for_record("a", "attempt_started");

    for _ in 0..5 {
        site.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()");
        std::thread::sleep(Duration::from_millis(200));
    }
    site.wait_for_record("a", "turn_ended");

    assert_eq!(site.count("a", "turn_ended"), 1);
    site.check_records("a");
    drop(nodes);
}
