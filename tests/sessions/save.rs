//! S2, through the real program.

use serde_json::json;

use crate::{Desk, text};

/// S2: id, records, bytes, safe.
#[test]
fn a_session_says_that_it_is_safe() {
    let desk = Desk::new(&json!(["One."]));
    desk.say("a", "first");

    let saved = desk.json(&["save", "-s", "a", "--json"]);
    let (code, out, _) = desk.run(&["save", "-s", "a"]);

    assert_eq!((saved["key"].clone(), saved["safe"].clone()), (json!("a"), json!(true)));
    assert!(saved["records"].as_u64().unwrap() > 5 && saved["bytes"].as_u64().unwrap() > 100, "{saved}");
    assert_eq!(code, 0);
    assert!(out.contains(&text(&saved["id"])) && out.contains("safe: "), "{out}");
}

/// S2: or why not.
#[test]
fn a_session_that_was_damaged_says_why_it_is_not_safe() {
    let desk = Desk::new(&json!(["An answer of some length."]));
    desk.say("a", "first");
    let file = desk.path("home/journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let words = b"An answer of some length.";
    let places: Vec<usize> =
        (0..bytes.len() - words.len()).filter(|at| bytes[*at..].starts_with(words)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|place| bytes[place] ^= 1);
    std::fs::write(&file, &bytes).unwrap();

    let (code, out, _) = desk.run(&["save", "-s", "a"]);

    assert_eq!(code, 1, "{out}");
    assert!(out.contains("not safe: ") && out.contains("longhaul verify"), "{out}");
}

/// S2: no empty session is stored, however little came of it.
#[test]
fn what_never_began_leaves_no_session() {
    let desk = Desk::new(&json!(["One."]));

    let key = desk.key();
    let opened = desk.talk(&[], "");
    let looked = desk.talk(&[], "/help\n/status\n/exit\n");
    let empty = desk.run(&["run", "-s", "x", "  "]);
    desk.configure("[model]\nnmae = \"x\"\n");
    let bad_config = desk.run(&["run", "-s", "x", "hello"]);
    let bad_talk = desk.talk(&[], "hello\n");
    desk.configure("");
    let bad_model = desk.run(&["--model", "scripted/nowhere.json", "run", "-s", "x", "hello"]);
    let bad_resume = desk.run(&["resume", "x"]);

    assert_eq!((opened.0, looked.0), (0, 0));
    assert_eq!(desk.run(&["status", "-s", &key]).0, 2, "it was only ever shown");
    for failed in [empty, bad_config, bad_talk, bad_model, bad_resume] {
        assert_eq!(failed.0, 2, "{failed:?}");
    }
    assert_eq!(desk.keys(&["--all"]), Vec::<String>::new());
    assert_eq!(desk.json(&["verify", "--json"])["records"], 0);
}
