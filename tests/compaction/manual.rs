//! `longhaul compact` and `/compact`, where nobody else has the session.

use serde_json::{Value, json};

use crate::{Desk, long, summary, told};

/// C3, S7
#[test]
fn a_context_is_made_smaller_and_what_came_of_it_is_said() {
    let desk = told(&[summary(), json!("Two.")]);

    let (code, out, errors) = desk.run(&["compact", "-s", "a", "the", "words"]);
    let then = desk.run(&["run", "-s", "a", "and?"]);

    assert_eq!(code, 0, "{errors}");
    assert!(out.starts_with("compacted: ") && out.contains(" tokens ("), "{out}");
    assert!(out.contains(" tokens (summarized entries 1–"), "{out}");
    assert!(errors.contains("compacting the context: requested"), "{errors}");
    assert_eq!((then.0, then.1.as_str()), (0, "Two.\n"), "{}", then.2);
    let starts = desk.records("a", "compact_start");
    assert_eq!(starts, [json!({"reason": "asked", "focus": "the words"})]);
    assert_eq!(desk.records("a", "turn_started").len(), 2, "C12: it began no turn");
}

/// C6: without a turn between, the second does nothing.
#[test]
fn where_nothing_has_happened_since_there_is_nothing_to_do() {
    let desk = told(&[summary()]);

    let first = desk.run(&["compact", "-s", "a"]);
    let second = desk.run(&["compact", "-s", "a"]);
    let as_json = desk.run(&["compact", "-s", "a", "--json"]);

    assert_eq!(first.0, 0, "{}", first.2);
    let nothing = "nothing to compact: nothing is new since the last compaction";
    assert_eq!((second.0, second.1), (0, format!("{nothing}\n")));
    assert_eq!((as_json.0, as_json.1.as_str()), (0, ""));
    assert!(as_json.2.contains(nothing), "{}", as_json.2);
}

/// A context that no summary could make smaller is left alone, without a model call, at the command line and in a conversation.
#[test]
fn a_short_context_is_left_alone() {
    let desk = Desk::new(&json!(["Hi.", "Two.", "Three."]));
    assert_eq!(desk.run(&["run", "-s", "a", "speak"]).0, 0);
    let why = "nothing to compact: the context is so short that a summary would not be shorter";

    let (code, out, errors) = desk.run(&["compact", "-s", "a"]);
    let as_json = desk.run(&["compact", "-s", "a", "--json"]);
    let in_chat = desk.talk(&["-s", "a"], "/compact\nand?\n");

    assert_eq!((code, out), (0, format!("{why}\n")), "{errors}");
    assert_eq!((as_json.0, as_json.1.as_str()), (0, ""));
    assert!(as_json.2.contains(why) && in_chat.2.contains(why), "{}{}", as_json.2, in_chat.2);
    assert_eq!(in_chat.1, "Two.\n", "the script had no summary to write");
    assert!(desk.records("a", "compact_start").is_empty());
}

/// C3
#[test]
fn programs_read_it_as_events() {
    let desk = told(&[summary()]);

    let (code, out, errors) = desk.run(&["compact", "-s", "a", "--json"]);

    assert_eq!(code, 0, "{errors}");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["compact_start", "system_message", "system_message", "compact_done"]);
    let done = events.last().unwrap();
    assert_eq!((&done["epoch"], &done["by"]), (&json!(2), &json!("model")));
    assert!(done["after"].as_u64() < done["before"].as_u64(), "{done}");
}

/// C5
#[test]
fn one_that_fails_leaves_the_session_as_it_was_and_says_why() {
    let desk = told(&[json!({"summary": true, "error": "boom"}), json!("Two.")]);
    desk.configure("[retry]\nmax_retries = 0\n");

    let (code, out, errors) = desk.run(&["compact", "-s", "a"]);
    let then = desk.run(&["run", "-s", "a", "and?"]);

    assert_eq!((code, out.as_str()), (1, ""), "{errors}");
    assert!(errors.contains("could not compact the context: ") && errors.contains("boom"), "{errors}");
    assert!(errors.contains("; the session is unchanged"), "{errors}");
    assert_eq!((then.0, then.1.as_str()), (0, "Two.\n"), "{}", then.2);
}

#[test]
fn a_session_that_nobody_knows_is_bad_usage() {
    let desk = Desk::new(&json!([]));

    for command in ["compact", "context"] {
        let (code, out, errors) = desk.run(&[command, "-s", "nobody"]);

        assert_eq!((code, out.as_str()), (2, ""), "{errors}");
        assert!(errors.contains("nobody"), "{errors}");
    }
}

/// C12
#[test]
fn an_input_that_waits_is_not_worked_on_because_of_it() {
    let desk = told(&[json!("Two."), summary()]);
    assert_eq!(desk.run(&["send", "-s", "a", "more"]).0, 0);

    let (code, out, errors) = desk.run(&["compact", "-s", "a"]);
    let turns = desk.records("a", "turn_started").len();
    let resumed = desk.run(&["resume", "a"]);

    assert_eq!((code, out.as_str(), turns), (0, "", 1), "{errors}");
    assert!(errors.contains("compacted when you resume it: longhaul resume a"), "{errors}");
    assert_eq!((resumed.0, resumed.1.as_str()), (0, "Two.\n"), "{}", resumed.2);
    assert_eq!(desk.records("a", "compact_done").len(), 1);
}

/// S6, S7
#[test]
fn in_a_conversation_it_is_a_command_between_two_turns() {
    let desk = Desk::new(&json!([long(), summary(), "Two."]));
    let lines = "/compact\nspeak\n/compact the words\n/compact\n/context\nand?\n";

    let (code, out, errors) = desk.talk(&[], lines);

    assert_eq!((code, out), (0, format!("{}\nTwo.\n", long())), "{errors}");
    let said = |text: &str| errors.find(text).unwrap_or_else(|| panic!("{text}: {errors}"));
    let order = [
        said("nothing to compact: the session has no turns yet"),
        said("compacting the context: requested"),
        said("compacted the context: "),
        said("nothing to compact: nothing is new since the last compaction"),
        said("compactions   1 compaction, the last by a summary"),
    ];
    assert!(order.is_sorted(), "{errors}");
    assert!(!errors.contains("[Compacted context summary]"), "{errors}");
    assert_eq!(desk.records(&desk.key(), "compact_start")[0]["focus"], "the words");
}
