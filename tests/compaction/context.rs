//! `longhaul context` and what `status` says of compactions.

use serde_json::json;

use crate::{summary, told};

const CONFIG: &str = "[model]\ncontext_window = 40000\n[context]\ncompact_idle_at = 0\n";

/// C1, C2
#[test]
fn the_parts_of_a_context_add_up_to_it_and_with_what_is_free_to_the_window() {
    let desk = told(&[]);
    desk.configure(CONFIG);

    let shown = desk.json(&["context", "-s", "a", "--json"]);

    let number = |name: &str| shown[name].as_u64().unwrap_or_else(|| panic!("{name}: {shown}"));
    let parts: u64 = shown["parts"].as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum();
    assert_eq!(parts, number("tokens"));
    assert_eq!(parts + number("waiting") + number("answer") + number("free"), 40_000);
    assert_eq!((number("window"), number("usable")), (40_000, 40_000 - 8_192));
    assert_eq!(number("compact_at"), number("usable") * 85 / 100);
    assert_eq!((&shown["compact_idle_at"], &shown["source"]), (&json!(null), &json!("estimate")));
    assert_eq!((number("epoch"), number("compactions")), (1, 0));
    assert!(shown["parts"]["turns"].as_u64() > Some(2_000), "{shown}");
}

/// C1
#[test]
fn people_read_the_same_in_plain_words_also_in_a_pipe() {
    let desk = told(&[]);
    desk.configure(CONFIG);

    let (code, out, errors) = desk.run(&["context", "-s", "a"]);

    assert_eq!(code, 0, "{errors}");
    assert!(!out.contains('\u{1b}'), "{out}");
    for line in
        ["window        40,000 tokens, from the config", "estimated", "when idle: off", "  free ", " %  █"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
}

/// C3
#[test]
fn after_a_compaction_context_and_status_say_what_it_did() {
    let desk = told(&[summary()]);
    desk.configure(CONFIG);
    let before = desk.json(&["context", "-s", "a", "--json"]);
    assert_eq!(desk.run(&["compact", "-s", "a"]).0, 0);

    let after = desk.json(&["context", "-s", "a", "--json"]);
    let status = desk.json(&["status", "-s", "a", "--json"]);
    let (_, out, _) = desk.run(&["status", "-s", "a"]);

    assert!(after["tokens"].as_u64() < before["tokens"].as_u64(), "{after}");
    assert!(after["parts"]["summary"].as_u64() > Some(0) && after["parts"]["turns"] == 0, "{after}");
    assert_eq!((&after["epoch"], &after["compactions"]), (&json!(2), &json!(1)));
    assert_eq!(after["last_compaction"]["after"], after["tokens"]);
    assert_eq!((&status["epoch"], &status["compactions"]), (&json!(2), &json!(1)));
    assert_eq!(status["last_compaction"], after["last_compaction"]);
    assert!(out.contains("compactions   1 compaction, the last by a summary\n"), "{out}");
}
