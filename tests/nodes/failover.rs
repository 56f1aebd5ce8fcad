//! N1: a node that dies, hangs or is cut off is replaced, and can't write when it comes back. `scripts/soak` kills 50 times.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::{Node, Site, can_pretend_machines, eventually};

/// The longest time from the death of a node to the next record.
const MAX_FAILOVER: Duration = Duration::from_secs(15);

/// An answer that takes a while, and another one after a step.
fn slow_script() -> serde_json::Value {
    json!([
        {"text": "one two three four five six", "piece_ms": 200, "calls": [{"name": "todo", "arguments": {"items": []}}]},
        {"text": "seven eight nine", "piece_ms": 300},
    ])
}

/// Kills the node that runs a session in the middle of its turn, and returns how long it took until another one went on. The killed node is
/// started again.
fn fail_over(site: &Site, nodes: &mut [Node; 2], key: &str, serve: fn(&Site, &str) -> Node) -> Duration {
    site.send_portable(key);
    site.wait_for_record(key, "attempt_started");
    let mut holder = None;
    eventually("a node holds the session", || {
        holder = site.holder(key);
        holder.is_some()
    });
    let holder = holder.unwrap();
    let running = nodes.iter_mut().find(|node| node.id == holder).unwrap();
    let before = site.records(key).len();

    let killed = running.kill();
    eventually("another node goes on", || site.records(key).len() > before);
    let took = killed.elapsed();
    *running = serve(site, &holder);
    site.wait_for_record(key, "turn_ended");

    assert_eq!(site.count(key, "turn_ended"), 1);
    site.check_records(key);
    took
}

/// Fails over as often as `LONGHAUL_FAILOVERS` says, and returns the longest time.
fn fail_over_repeatedly(name: &str, rounds: u32, serve: fn(&Site, &str) -> Node) -> Duration {
    let site = Site::new(&slow_script());
    let rounds = std::env::var("LONGHAUL_FAILOVERS").map_or(rounds, |rounds| rounds.parse().unwrap());
    let mut nodes = [serve(&site, "ash"), serve(&site, "birch")];
    let mut times: Vec<Duration> =
        (0..rounds).map(|round| fail_over(&site, &mut nodes, &format!("a{round}"), serve)).collect();
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{name}: {} failovers, p50 {:?}, p99 {:?}, max {:?}", times.len(), at(50), at(99), at(100));
    at(100)
}

/// N1: where another node of the same machine sees that the process is gone, it goes on within about a second.
#[test]
fn a_killed_node_is_replaced_at_once_on_the_same_machine() {
    let longest = fail_over_repeatedly("same machine", 2, Site::serve);

    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

/// N1: a node that dies is replaced within 15 s, although the others can't see its processes.
#[test]
fn a_dead_machine_is_replaced_within_fifteen_seconds() {
    if !can_pretend_machines() {
        return;
    }
    let longest = fail_over_repeatedly("another machine", 2, Site::serve_elsewhere);

    assert!(longest < MAX_FAILOVER, "{longest:?}");
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

/// N1: the clock of a node is an hour ahead. It runs sessions and is replaced like any other, and `nodes` and `doctor` say what is wrong.
#[test]
fn a_clock_that_is_an_hour_ahead_is_said_and_changes_nothing() {
    let Some(library) = longhaul_testkit::faketime_library() else { return };
    let site = Site::new(&slow_script());
    let wrong = |node: &str| {
        let mut command = site.command(node, &["serve", "--no-http"]);
        command
            .env("LD_PRELOAD", &library)
            .env("FAKETIME", "+3600s")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Node::start(command, node)
    };
    let mut ash = wrong("ash");
    site.send_portable("a");
    site.wait_for_record("a", "attempt_started");
    let listed = site.ok("visitor", &["nodes"]);
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");

    ash.kill();
    site.wait_for_record("a", "turn_ended");
    ash = wrong("ash");
    eventually("ash is back", || site.node("ash")["state"] == "live");
    let (_, checked, _) = site.run("birch", &["doctor"]);

    assert!(
        listed.contains("its clock is 3600 s ahead") || listed.contains("its clock is 3599 s ahead"),
        "{listed}"
    );
    assert!(checked.contains("the clock of ash is"), "{checked}");
    assert_eq!(site.count("a", "turn_ended"), 1);
    let ahead = site.sql("SELECT max(at) - (extract(epoch FROM now()) * 1000)::bigint FROM longhaul.record");
    assert!(ahead.parse::<i64>().unwrap() < 60_000, "times are those of the database: {ahead}");
    site.check_records("a");
    drop((ash, birch));
}
