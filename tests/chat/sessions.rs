//! The life of sessions from within the conversation, as it is typed.

use longhaul_testkit::Terminal;
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;

fn says(terminal: &mut Terminal, line: &str, answer: &str) {
    terminal.keys(&format!("{line}\r"));
    terminal.wait_to_see(answer);
    wait_for_prompt(terminal);
}

/// S2, S3, S7
#[test]
fn a_session_is_shown_saved_pinned_and_listed() {
    let desk = Desk::new(&json!(["Hello."]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (120, 40));
    wait_for_prompt(&mut terminal);

    says(&mut terminal, "/session", "not saved yet");
    says(&mut terminal, "/save", "nothing is saved yet");
    says(&mut terminal, "hi", "Hello.");
    says(&mut terminal, "/session", "last save");
    says(&mut terminal, "/save", "safe: everything is on disk");
    says(&mut terminal, "/session pin", "never pruned");
    says(&mut terminal, "/session list", "FIRST MESSAGE");
    says(&mut terminal, "/session prune --dry-run", "nothing to prune");
    let seen = terminal.seen();
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    for named in ["turns         1 turn", "compactions", "cost", "free", "[pinned] hi"] {
        assert!(seen.contains(named), "no {named:?} in {seen}");
    }
}

/// S2, S3: what is renamed is still the folder's, and its old key is free.
#[test]
fn a_session_that_is_renamed_goes_on_and_clear_begins_another() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three.", "Four."]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (120, 40));
    wait_for_prompt(&mut terminal);
    says(&mut terminal, "first", "One.");

    says(&mut terminal, "/session rename my work", "session my work (1 turn so far)");
    says(&mut terminal, "second", "Two.");
    says(&mut terminal, "/clear", "(new)");
    says(&mut terminal, "third", "One.");
    terminal.keys("/exit\r");
    assert_eq!(terminal.wait().code(), Some(0));

    let texts = |key: &str| -> Vec<serde_json::Value> {
        desk.records(key, "input_taken").iter().map(|input| input["text"].clone()).collect()
    };
    assert_eq!(texts("my work"), [json!("first"), json!("second")]);
    let other = desk.keys().into_iter().find(|key| key.starts_with("cli:")).unwrap();
    assert_eq!(texts(&other), [json!("third")]);
}

/// S2
#[test]
fn a_folder_whose_session_was_renamed_opens_it_and_one_whose_was_deleted_begins_anew() {
    let desk = Desk::new(&json!(["One."]));
    desk.run(&["run", "-s", &desk.key(), "first"]);
    desk.run(&["sessions", "rename", &desk.key(), "mine"]);

    let mut terminal = Terminal::start(desk.command(&[]));
    terminal.wait_to_see("session mine (1 turn so far)");
    wait_for_prompt(&mut terminal);
    terminal.keys("/session delete\r");
    terminal.wait_to_see("to the trash for two weeks");
    terminal.wait_to_see("(new)");
    terminal.keys("/exit\r");
    assert_eq!(terminal.wait().code(), Some(0));

    let mut again = Terminal::start(desk.command(&[]));
    again.wait_to_see("(new)");
    let trashed = desk.json(&["sessions", "list", "--all", "--json"]);
    assert_eq!((&trashed[0]["key"], &trashed[0]["trashed"]), (&json!("mine"), &json!(true)));
}

/// S4, S7
#[test]
fn a_fork_is_gone_on_with_and_one_of_several_is_chosen_from_a_list() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (120, 40));
    wait_for_prompt(&mut terminal);
    says(&mut terminal, "first", "One.");

    says(&mut terminal, "/fork 99", "at entry 99");
    says(&mut terminal, "/fork", "-fork (1 turn so far)");
    let forked = terminal.wait_to_see("to go back: /session resume");
    assert!(forked.contains("Forked ") && !forked.contains("To open it"), "it is open: {forked}");
    says(&mut terminal, "in the fork", "Two.");
    terminal.keys("/session resume\r");
    terminal.wait_to_see("Resume which session?");
    terminal.keys("\x1b[B\r");
    terminal.wait_until("the other session", |seen| seen.matches("(1 turn so far)").count() == 2);
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    let forks: Vec<String> = desk.keys().into_iter().filter(|key| key.ends_with("-fork")).collect();
    assert_eq!(desk.records(&forks[0], "turn_ended").len(), 2);
}

/// S1: a turn that somebody else's input began ends like one's own.
#[test]
fn whoever_leaves_ends_a_turn_that_runs_here_whoever_began_it() {
    let desk = Desk::new(&json!(["Hello.", {"text": "word ".repeat(2_000), "piece_ms": 20}]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    says(&mut terminal, "hi", "Hello.");

    desk.run(&["send", "-s", &desk.keys()[0], "more"]);
    terminal.wait_to_see("word word");
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    let outcomes: Vec<_> = desk.recorded("turn_ended", "outcome");
    assert_eq!(outcomes, [json!("completed"), json!("cancelled")]);
}

/// S2: `--model` wins over the choice for as long as it is given.
#[test]
fn a_model_that_was_chosen_in_a_session_stays_with_it() {
    let desk = Desk::with_model_of_config("");
    for (name, says) in [("a", "I am a."), ("b", "I am b.")] {
        std::fs::write(desk.path(&format!("{name}.json")), json!([says, says, says, says]).to_string())
            .unwrap();
    }
    let model = |name: &str| format!("scripted/{}", desk.path(&format!("{name}.json")).display());
    desk.configure(&format!("[model]\nname = \"{}\"\n", model("a")));
    let open = |arguments: &[&str]| {
        let mut terminal = Terminal::of_size(desk.command(arguments), (200, 40));
        wait_for_prompt(&mut terminal);
        terminal
    };
    let mut first = open(&[]);
    says(&mut first, &format!("/model {}", model("b")), "from the next request on");
    says(&mut first, "hi", "I am b.");
    first.keys("\x04");
    first.wait();

    let mut again = open(&[]);
    again.wait_to_see(&format!("with {} (chosen with /model; the config has {})", model("b"), model("a")));
    says(&mut again, "hi", "I am b.");
    says(&mut again, "/compact", "longhaul: ");
    again.keys("\x04");
    again.wait();
    let mut named = open(&["--model", &model("a")]);
    says(&mut named, "hi", "I am a.");
    let seen = named.seen();
    named.keys("\x04");
    named.wait();
    let mut last = open(&[]);
    last.wait_to_see("chosen with /model");

    assert!(!seen.contains("chosen with /model;"), "{seen}");
    assert_eq!(desk.recorded("model_changed", "chosen")[0], json!(true));
}

/// S3
#[test]
fn the_list_of_sessions_has_one_row_for_each_in_a_narrow_terminal() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.run(&["run", "-s", "a", &"many words ".repeat(20)]);
    desk.run(&["run", "-s", "a-longer-key", "short"]);
    let mut terminal = Terminal::of_size(desk.command(&[]), (80, 40));
    wait_for_prompt(&mut terminal);

    says(&mut terminal, "/session list", "FIRST MESSAGE");
    let listed = terminal.seen();
    terminal.keys("/session resume\r");
    let picked = terminal.wait_to_see("Resume which session?");

    let rows: Vec<&str> = listed.lines().skip_while(|row| !row.contains("FIRST MESSAGE")).collect();
    assert!(rows.iter().all(|row| !row.starts_with(' ')), "{listed}");
    assert!(rows.iter().any(|row| row.starts_with("a ") && row.ends_with('…')), "{listed}");
    assert!(picked.contains("a-longer-key  just now"), "{picked}");
    assert!(picked.contains("a             just now"), "{picked}");
}
