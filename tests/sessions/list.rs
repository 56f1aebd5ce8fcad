//! Finding a session again.

use serde_json::json;

use crate::{Desk, text};

/// S3: the newest first, those that are pinned before them, what was put away only if asked for.
#[test]
fn sessions_are_listed_by_when_they_were_used() {
    let desk = Desk::new(&json!(["Done.", "Done again."]));
    for key in ["one", "two", "three"] {
        desk.say(key, &format!("a question about {key}"));
    }
    desk.say("one", "and another");
    desk.json(&["sessions", "pin", "two", "--json"]);
    desk.json(&["sessions", "delete", "three", "--json"]);

    let (_, table, _) = desk.run(&["sessions"]);

    assert_eq!(desk.keys(&[]), ["two", "one"]);
    assert_eq!(desk.keys(&["--all"]), ["two", "one", "three"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("two") && lines[1].contains("[pinned] a question about two"), "{table}");
    assert!(lines[2].contains("just now") && lines[2].contains("a question about one"), "{table}");
    assert!(!table.contains("three"), "{table}");
}

/// S3: by the key and by what was said, by whoever said it.
#[test]
fn a_session_is_found_by_its_key_and_by_what_was_said_in_it() {
    let desk = Desk::new(&json!(["Marmalade keeps for a year.", "Done."]));
    desk.say("kitchen", "how long does it keep?");
    desk.say("garden", "when do I sow carrots?");

    assert_eq!(desk.keys(&["marmalade", "year"]), ["garden", "kitchen"], "the script says it in both");
    assert_eq!(desk.keys(&["carrots"]), ["garden"]);
    assert_eq!(desk.keys(&["KITCH"]), ["kitchen"]);
    assert_eq!(desk.keys(&["nobody said this"]), Vec::<String>::new());
}

/// S3: every command that takes a session knows the beginning of its key, and its id.
#[test]
fn a_session_is_named_by_as_little_as_is_enough() {
    let desk = Desk::new(&json!(["Done."]));
    desk.say("kitchen-one", "hello");
    desk.say("garden", "hello");
    let id = text(&desk.json(&["status", "-s", "garden", "--json"])["id"]);
    let end = id[id.len() - 6..].to_lowercase();

    for name in ["gar", &id, &end] {
        assert_eq!(desk.json(&["status", "-s", name, "--json"])["session"], "garden", "{name}");
        assert_eq!(desk.json(&["context", "-s", name, "--json"])["session"], "garden", "{name}");
        assert_eq!(desk.json(&["sessions", "show", name, "--json"])["key"], "garden", "{name}");
        assert_eq!(desk.json(&["save", "-s", name, "--json"])["key"], "garden", "{name}");
        assert_eq!(desk.run(&["resume", name]).0, 0, "{name}");
        assert_eq!(desk.run(&["cancel", "-s", name]).0, 0, "{name}");
    }
    desk.say("kitchen-two", "hello");
    let (code, _, several) = desk.run(&["status", "-s", "kit"]);
    assert_eq!(code, 2);
    assert!(several.contains("kitchen-one") && several.contains("kitchen-two"), "{several}");
    let (code, _, none) = desk.run(&["status", "-s", "gardne"]);
    assert_eq!(code, 2);
    assert!(none.contains("did you mean garden?"), "{none}");
    desk.say("gar", "a key of its own");
    assert_eq!(desk.json(&["status", "-s", "gar", "--json"])["session"], "gar", "the whole key comes first");
}
