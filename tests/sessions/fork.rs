//! S4, through the real program.

use serde_json::json;

use crate::Desk;

/// S4: a fork goes on from the point, and its parent from its end.
#[test]
fn a_session_is_forked_and_both_go_on() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    desk.say("a", "first");
    let end_of_first = desk.json(&["save", "-s", "a", "--json"]);
    let head = desk.json(&["sessions", "show", "a", "--json"])["records"].as_u64().unwrap();
    desk.say("a", "second");

    let whole = desk.json(&["fork", "-s", "a", "--json"]);
    let early = desk.json(&["sessions", "fork", "a", &head.to_string(), "--as", "early", "--json"]);
    assert_eq!(desk.keys(&[]), ["early", "a-fork", "a"], "a new fork of something old is new");
    let answers = ["a-fork", "early", "a"].map(|key| desk.run(&["run", "-s", key, "next"]).1);

    assert_eq!(end_of_first["safe"], true);
    assert_eq!(whole["key"], "a-fork");
    assert_eq!(early["origin"]["seq"], head);
    assert_eq!(desk.records("early", "session_created")[0]["origin"], early["origin"]);
    assert_eq!(answers, ["Three.\n", "Two.\n", "Three.\n"], "the script answers by the steps in the context");
    let (code, out, _) = desk.run(&["sessions", "delete", "a", "--now"]);
    assert_eq!(code, 0);
    assert!(out.contains("a-fork") && out.contains("early"), "{out}");
    assert_eq!(desk.run(&["run", "-s", "early", "and on"]).1, "Three.\n");
    assert!(desk.is_sound());
}

/// S4: a fork has the title of its parent in lists, also where a compaction lies between.
#[test]
fn a_fork_after_a_compaction_has_the_title_of_its_parent() {
    let summary =
        json!({"calls": [{"name": "write_summary", "arguments": {"goal": "Count.", "done": ["one"]}}]});
    let desk = Desk::new(&json!(["count-".repeat(2_000), summary, "Two."]));
    desk.say("a", "count to   two thousand");
    let (code, _, errors) = desk.run(&["compact", "-s", "a"]);
    assert_eq!(code, 0, "{errors}");

    let forked = desk.json(&["fork", "-s", "a", "--json"]);
    desk.say("a-fork", "and on");

    assert_eq!(forked["key"], "a-fork");
    assert_eq!(desk.records("a-fork", "input_taken").len(), 1, "the parent's input is not copied");
    let listed = desk.json(&["sessions", "list", "--json"]);
    let titles: Vec<_> = listed.as_array().unwrap().iter().map(|session| session["title"].clone()).collect();
    assert_eq!(titles, ["count to two thousand", "count to two thousand"]);
}

/// S4
#[test]
fn a_point_that_does_not_exist_is_bad_usage() {
    let desk = Desk::new(&json!(["One."]));
    desk.say("a", "first");
    let head = desk.json(&["sessions", "show", "a", "--json"])["records"].as_u64().unwrap();

    for point in ["0".to_owned(), (head + 1).to_string()] {
        let (code, _, why) = desk.run(&["fork", "-s", "a", &point]);
        assert_eq!(code, 2, "{why}");
        assert!(why.contains(&format!("1 to {head}")), "{why}");
    }
    let (code, _, why) = desk.run(&["fork", "-s", "a", "--as", "a"]);
    assert_eq!(code, 2, "{why}");
    assert_eq!(desk.keys(&["--all"]), ["a"]);
}
