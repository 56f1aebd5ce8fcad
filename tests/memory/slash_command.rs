//! `/memory` and `/remember` in the conversation.

use longhaul_testkit::Terminal;
use serde_json::{Value, json};

use super::{Desk, SAID, extracted, write};

const PROMPT: &str = "> ";

/// An answer that writes the core page.
fn core(text: &str) -> Value {
    let page = json!({"page": "core", "text": text, "reason": "it is new", "items": [1], "dropped": []});
    json!({"calls": [{"name": "write_pages", "arguments": {"pages": [page]}}]})
}

#[test]
fn pages_are_listed_shown_and_searched_in_the_conversation() {
    let desk = Desk::new(&json!(["Hello."]));
    write(&desk, "build", "# How to build\n- Run cargo build.\n");

    let lines =
        "/memory\n/memory show build\n/memory search cargo\n/memory log\n/memory show biuld\n/memory dance\n";
    let (code, out, errors) = desk.talk(&[], lines);

    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    assert!(errors.contains("1 page") && errors.contains("How to build"), "{errors}");
    assert!(errors.contains("\n- Run cargo build.\n"), "{errors}");
    assert!(errors.contains("page build  ("), "{errors}");
    assert!(errors.contains("person: build"), "{errors}");
    assert!(errors.contains("no page biuld; did you mean build?"), "{errors}");
    assert!(errors.contains("usage: /memory [list|"), "{errors}");
}

/// Y13
#[test]
fn words_are_remembered_in_the_conversation() {
    let desk = Desk::new(&json!(["Hello."]));

    let (code, _, errors) = desk.talk(&[], "hello\n/remember The user likes tea.\n/memory\n");

    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("remembered in core (change 1; to undo: longhaul memory undo 1)"), "{errors}");
    assert!(errors.contains("1 page"), "{errors}");
    assert!(desk.run(&["memory", "show", "core"]).1.contains("The user likes tea."));
}

/// Y2: it can be waited for.
#[test]
fn a_conversation_is_gone_through_when_somebody_asks() {
    let desk = Desk::new(&json!(["Hello.", extracted("The user likes tea.", SAID)]));

    let (code, _, errors) = desk.talk(&[], "I like tea\n/remember\n/remember\n/status\n");

    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("found 1 item (read up to entry 9)"), "{errors}");
    assert!(errors.contains("nothing new to remember"), "{errors}");
    assert!(errors.contains(" entries read, into "), "{errors}");
}

/// Y1
#[test]
fn a_memory_that_is_off_is_said_in_the_conversation() {
    let desk = Desk::new(&json!(["Hello."]));
    desk.configure("[memory]\nextract_at_tokens = 0\n");

    let (code, _, errors) = desk.talk(&[], "hello\n/remember\n");

    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("memory.extract_at_tokens is 0"), "{errors}");
}

/// Y2, S6: nobody is kept from typing, and the turn goes on.
#[test]
fn while_a_turn_runs_memory_can_be_seen_and_gone_through() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let desk = Desk::new(&json!(["Hello.", call, "Both.", extracted("The user likes tea.", SAID)]));
    let mut terminal = Terminal::start(desk.command(&["--plain"]));
    terminal.wait_for(PROMPT);
    terminal.keys("I like tea\r");
    terminal.wait_for("Hello.");
    terminal.wait_for(PROMPT);

    terminal.keys("go\n");
    terminal.wait_for("· exec");
    terminal.keys("/memory\n");
    terminal.wait_for("No pages in ");
    terminal.keys("/remember\n");
    terminal.wait_for("the turn goes on");
    terminal.wait_for("found 1 item (read up to entry ");
    terminal.keys("/remember Coffee is fine, too.\n");
    terminal.wait_for("remembered in core (change 1;");
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    terminal.wait_for("Both.");
    terminal.wait_for(PROMPT);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
}

/// Y3, Y8: it grows while nobody is looking, and whoever is there learns of it.
#[test]
fn a_line_at_the_prompt_says_that_memory_changed() {
    let desk = Desk::new(&json!([
        "Hello.",
        extracted("The user likes tea.", SAID),
        core("# Core\n- The user likes tea.\n")
    ]));
    desk.configure("[memory]\ncheck_interval_s = 1\nextract_min_tokens = 0\nconsolidate_at_items = 1\n");
    let mut terminal = Terminal::start(desk.command(&["--plain"]));
    terminal.wait_for(PROMPT);
    terminal.keys("I like tea\r");
    terminal.wait_for("Hello.");
    terminal.wait_for(PROMPT);

    terminal.wait_for("memory: updated core (see `longhaul memory log`)");
    terminal.keys("/memory show core\r");
    // The user is quoted in their own words.
    terminal.wait_for("- \"I like tea\"");
    terminal.wait_for(PROMPT);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert_eq!(desk.json(&["memory", "log", "--json"])[0]["by"], "consolidation");
    assert_eq!(desk.json(&["memory", "-s", &desk.key(), "--json"])["pages"][0]["page"], "core");
    assert_eq!(desk.json(&["memory", "--json"])["waiting"], 0);
}

/// The number of memory's calls comes to the last row of the screen when they are made.
#[test]
fn the_calls_of_memory_appear_in_the_last_row() {
    let desk = Desk::new(&json!(["Hello.", extracted("The user likes tea.", SAID)]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (140, 24));
    terminal.wait_until("a prompt", |seen| seen.ends_with("/help"));
    terminal.keys("I like tea\r");
    let before = terminal.wait_to_see("Hello.");

    terminal.keys("/remember\r");
    terminal.wait_until("the calls in the last row", |seen| {
        seen.lines().next_back().is_some_and(|row| row.contains("memory: 1 model call"))
    });
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!before.contains("memory: 1"), "{before}");
}
