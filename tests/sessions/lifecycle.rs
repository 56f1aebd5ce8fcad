//! Another key, the trash and back, and the end.

use serde_json::json;

use crate::{Desk, text};

/// S3
#[test]
fn a_renamed_session_goes_on_under_its_new_key() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.say("old", "first");
    desk.say("taken", "mine");
    let id = text(&desk.json(&["status", "-s", "old", "--json"])["id"]);

    let (code, _, taken) = desk.run(&["sessions", "rename", "old", "taken"]);
    let renamed = desk.json(&["sessions", "rename", "old", "new", "--json"]);
    let (_, answer, _) = desk.run(&["run", "-s", "new", "second"]);

    assert_eq!(code, 2);
    assert!(taken.contains("\"taken\""), "{taken}");
    assert_eq!((text(&renamed["key"]), text(&renamed["id"])), ("new".to_owned(), id));
    assert_eq!(answer, "Two.\n", "it knows what was said before");
    assert_eq!(desk.run(&["status", "-s", "old"]).0, 2);
    assert!(desk.is_sound());
}

/// S5
#[test]
fn what_was_deleted_can_be_brought_back_until_it_is_gone_for_good() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.say("a", "first");

    let (code, said, _) = desk.run(&["sessions", "delete", "a"]);
    let (refused, _, why) = desk.run(&["run", "-s", "a", "second"]);
    desk.json(&["sessions", "restore", "a", "--json"]);
    let (_, answer, _) = desk.run(&["run", "-s", "a", "second"]);

    assert_eq!(code, 0);
    assert!(said.contains("longhaul sessions restore a"), "{said}");
    assert_eq!(refused, 2);
    assert!(why.contains("trash") && why.contains("longhaul sessions restore a"), "{why}");
    assert_eq!(answer, "Two.\n");
    let deleted = desk.json(&["sessions", "delete", "a", "--now", "--json"]);
    assert_eq!((deleted["key"].clone(), deleted["deleted"].clone()), (json!("a"), json!(true)));
    assert_eq!(desk.keys(&["--all"]), Vec::<String>::new());
    assert_eq!(desk.json(&["verify", "--json"])["blobs"], 0);
    assert!(desk.is_sound());
}

/// S3: what can't be undone needs the whole name.
#[test]
fn a_part_of_a_name_deletes_nothing_for_good() {
    let desk = Desk::new(&json!(["One."]));
    desk.say("kitchen", "first");

    let (code, _, why) = desk.run(&["sessions", "delete", "kit", "--now"]);
    let (erase, _, _) = desk.run(&["erase", "kit", "3", "--reason", "x"]);

    assert_eq!((code, erase), (2, 2));
    assert!(why.contains("kitchen"), "{why}");
    assert_eq!(desk.keys(&[]), ["kitchen"]);
}

/// S5: export is one file, and import verifies it.
#[test]
fn a_deleted_session_comes_back_from_its_export() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.say("a", "first");
    let file = desk.path("a.jsonl").display().to_string();
    let (code, out, errors) = desk.run(&["sessions", "export", "a", &file]);
    assert_eq!(code, 0, "{out}{errors}");
    desk.json(&["sessions", "delete", "a", "--now", "--json"]);

    let (code, out, errors) = desk.run(&["sessions", "import", &file]);

    assert_eq!(code, 0, "{out}{errors}");
    assert_eq!(desk.run(&["run", "-s", "a", "second"]).1, "Two.\n");
    let left: Vec<_> =
        std::fs::read_dir(desk.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");
    assert!(desk.is_sound());
}

/// A turn whose process was killed is interrupted at once, not when its lease expires.
#[test]
fn the_status_after_a_kill_says_how_to_go_on() {
    let desk = Desk::new(&json!([{"text": "Never.", "wait_ms": 600_000}]));
    let mut running = desk.command(&["run", "-s", "a", "go"]).spawn().unwrap();
    let turn = || desk.run(&["status", "-s", "a"]).1;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !turn().contains("turn 1 is running") {
        assert!(std::time::Instant::now() < deadline, "{}", turn());
    }

    running.kill().unwrap();
    running.wait().unwrap();

    let turn = turn();
    assert!(turn.contains("turn 1 was interrupted in step 1"), "{turn}");
    assert!(turn.contains("run `longhaul resume` to go on"), "{turn}");
}
