//! N2: what is bound to a machine waits for it, and says so.

use std::time::Duration;

use serde_json::json;

use crate::{Site, eventually};

/// N2: a session with a work folder waits for its node, and `status` says so. Made portable, it goes on elsewhere.
#[test]
fn a_session_with_a_work_folder_waits_for_its_node_until_it_is_portable() {
    let site = Site::new(&json!(["One.", "Two.", "Three."]));
    let ash = site.serve("ash");
    site.ok("visitor", &["send", "-s", "a", "Go."]);
    site.wait_for_record("a", "turn_ended");
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");
    ash.end();

    site.ok("birch", &["send", "-s", "a", "Go on."]);
    std::thread::sleep(Duration::from_secs(3));
    let waiting = site.records("a").len();
    let status = site.ok("birch", &["status", "-s", "a"]);
    let node = site.json("birch", &["status", "-s", "a", "--json"])["node"].clone();
    let listed = site.ok("birch", &["nodes"]);
    let ended = site.count("a", "turn_ended");
    site.ok("birch", &["sessions", "portable", "a"]);
    eventually("birch goes on", || site.count("a", "turn_ended") == 2);
    let again = site.serve("ash");
    eventually("ash joins", || site.node("ash")["state"] == "live");

    assert_eq!(ended, 1, "nobody else ran it");
    assert!(waiting > 0);
    assert!(status.contains("waits for node ash, last seen"), "{status}");
    assert!(status.contains("longhaul sessions portable a"), "{status}");
    assert_eq!((&node["id"], &node["away"]), (&json!("ash"), &json!(true)));
    assert!(listed.contains("ash  ") && listed.contains("stopped, last seen"), "{listed}");
    site.check_records("a");
    drop((again, birch));
}

/// N2: an input that another node accepted for a session of a node that was away has its turn when the node is back.
#[test]
fn a_node_that_comes_back_goes_on_with_its_sessions() {
    let site = Site::new(&json!(["One.", "Two."]));
    let ash = site.serve("ash");
    site.ok("visitor", &["send", "-s", "a", "Go."]);
    site.wait_for_record("a", "turn_ended");
    ash.end();
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");
    site.ok("birch", &["send", "-s", "a", "Go on."]);

    let ash = site.serve("ash");
    eventually("ash goes on", || site.count("a", "turn_ended") == 2);

    let (code, _, error) = site.run("birch", &["nodes", "remove", "ash"]);
    assert_eq!(code, 1);
    assert!(error.contains("node ash is running"), "{error}");
    drop((ash, birch));
}

/// Two nodes with one id: one line that names the other one and what to do.
#[test]
fn a_second_node_with_the_same_id_does_not_start() {
    let site = Site::new(&json!(["One."]));
    let ash = site.serve("ash");
    eventually("ash joins", || site.node("ash")["state"] == "live");
    let home = site.path("copy");
    std::fs::create_dir(&home).unwrap();
    std::fs::copy(site.path("ash").join("config.toml"), home.join("config.toml")).unwrap();

    let (code, _, errors) = site.run("copy", &["serve", "--no-http"]);

    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("the node id \"ash\" is in use by process"), "{errors}");
    assert!(errors.contains(&*site.path("ash").to_string_lossy()), "{errors}");
    assert_eq!(site.node("ash")["state"], "live");
    drop(ash);
}

/// N2: a command of a node that died is not lost as long as the node may return. When the node is given up, the agent is told, once, with the
/// last output on record.
#[test]
fn a_command_of_a_removed_node_is_told_as_lost() {
    let site = Site::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": "echo begun; sleep 25", "run_in_background": true}}]},
        "It runs.",
        "It is lost.",
    ]));
    site.send_portable("a");
    let mut ash = site.serve("ash");
    eventually("the command runs", || site.count("a", "turn_ended") == 1);
    ash.kill();
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");
    eventually("ash is dead", || site.node("ash")["state"] == "dead");

    let before = site.count("a", "task_ended");
    let removed = site.ok("birch", &["nodes", "remove", "ash"]);
    eventually("the agent is told", || site.count("a", "turn_ended") == 2);
    let end = site.sql("SELECT body FROM longhaul.record WHERE kind = 'task_ended'");

    assert_eq!(before, 0, "ash may come back");
    assert_eq!(removed.trim(), "Removed: ash");
    assert_eq!(site.count("a", "task_ended"), 1);
    assert!(end.contains("\"lost\"") && end.contains("node ash was given up"), "{end}");
    assert_eq!(site.node("ash")["state"], "gone");
    drop(birch);
}

/// N2: a task stays with its node when its session moves. The other node knows that it runs and where, and the node of the task reports its
/// end, once, although it hands its sessions over.
#[test]
fn a_task_stays_with_its_node_when_the_session_moves() {
    let command = "echo begun; while [ ! -e stop ]; do sleep 0.2; done; echo over";
    let site = Site::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": command, "run_in_background": true}}]},
        "It runs.",
        {"calls": [{"name": "task_output", "arguments": {}}]},
        "It still runs.",
        "It is over.",
    ]));
    site.send_portable("a");
    let ash = site.serve("ash");
    eventually("the command runs", || site.count("a", "turn_ended") == 1);
    let birch = site.serve("birch");
    eventually("birch joins", || site.node("birch")["state"] == "live");
    site.ok("birch", &["nodes", "drain", "ash"]);
    eventually("ash lets go", || site.node("ash")["running"] == 0);

    site.ok("birch", &["send", "-s", "a", "Does it run?"]);
    eventually("birch answers", || site.count("a", "turn_ended") == 2);
    let seen =
        site.sql("SELECT body FROM longhaul.record WHERE kind = 'tool_finished' ORDER BY at DESC LIMIT 1");
    let listed = site.json("birch", &["tasks", "-s", "a", "--json"]);
    let id = listed[0]["task_id"].as_str().unwrap();
    let (read, _, why) = site.run("birch", &["tasks", "output", "-s", "a", id]);
    let (killed, _, why_not) = site.run("birch", &["tasks", "kill", "-s", "a", id]);
    let (there, printed, _) = site.run("ash", &["tasks", "output", "-s", "a", id]);
    std::fs::write(site.path("work/stop"), "").unwrap();
    eventually("the end is told", || site.count("a", "turn_ended") == 3);
    let end = site.sql("SELECT body FROM longhaul.record WHERE kind = 'task_ended'");

    assert!(seen.contains("running") && seen.contains("node ash has it"), "{seen}");
    assert_eq!((&listed[0]["status"], &listed[0]["message"]), (&json!("running"), &json!("on node ash")));
    assert_eq!((read, killed), (1, 1));
    assert!(why.contains("runs on node ash") && why_not.contains("runs on node ash"), "{why}{why_not}");
    assert_eq!((there, printed.as_str()), (0, "begun\n"));
    assert_eq!(site.count("a", "task_ended"), 1, "{end}");
    assert!(end.contains("\"completed\"") && end.contains("over"), "{end}");
    assert_eq!(site.holder("a").as_deref().unwrap_or("birch"), "birch", "ash only reported the end");
    site.check_records("a");
    drop((ash, birch));
}
