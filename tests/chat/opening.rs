//! Opening a folder: which session goes on, and what is shown of it.

use std::path::Path;

use longhaul_journal::{Append, Journal, name_session, put};
use longhaul_protocol::{
    InboxRecord, Input, InputId, InputTaken, JoinMode, Outcome, SessionCreated, SessionRecord, StreamName,
    TurnEnded, TurnStarted,
};
use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;

fn says(terminal: &mut Terminal, line: &str, answer: &str) {
    terminal.keys(&format!("{line}\r"));
    terminal.wait_to_see(answer);
    wait_for_prompt(terminal);
}

fn leave(mut terminal: Terminal) {
    terminal.keys("/exit\r");
    assert_eq!(terminal.wait().code(), Some(0));
}

fn texts(desk: &Desk, key: &str) -> Vec<serde_json::Value> {
    desk.records(key, "input_taken").iter().map(|input| input["text"].clone()).collect()
}

/// S2
#[test]
fn a_folder_opens_the_session_that_was_last_used_in_it() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    assert_eq!(desk.talk(&[], "first\n").0, 0);
    assert_eq!(desk.talk(&["--new"], "second\n").0, 0);
    let [first, second] = &desk.keys()[..] else { panic!("{:?}", desk.keys()) };

    let (_, _, after_new) = desk.talk(&[], "more in the second\n");
    let (_, _, by_name) = desk.talk(&["-s", first], "more in the first\n");
    let (_, _, after_first) = desk.talk(&[], "");

    assert!(after_new.contains(&format!("session {second} (1 turn so far)")), "{after_new}");
    assert!(by_name.contains(&format!("session {first} (1 turn so far)")), "{by_name}");
    assert!(after_first.contains(&format!("session {first} (2 turns so far)")), "{after_first}");
    assert_eq!(texts(&desk, second), [json!("second"), json!("more in the second")]);
}

/// A terminal that was opened before the session began shows what another process begins in it.
#[test]
fn a_session_that_another_process_begins_is_shown_from_its_first_turn() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    let mut terminal = Terminal::start(desk.command(&["-s", "shared"]));
    terminal.wait_to_see("shared (new)");
    wait_for_prompt(&mut terminal);

    let (code, out, errors) = desk.run(&["run", "-s", "shared", "hello from elsewhere"]);

    assert_eq!((code, out.as_str()), (0, "One.\n"), "{errors}");
    let seen = terminal.wait_to_see("One.");
    assert!(seen.contains("> hello from elsewhere"), "{seen}");
    assert_eq!(seen.matches("One.").count(), 1, "{seen}");
    says(&mut terminal, "and here", "Two.");
    assert_eq!(texts(&desk, "shared"), [json!("hello from elsewhere"), json!("and here")]);
}

/// S2: also one that has another name now, or a past that was copied.
#[test]
fn clear_fork_and_rename_change_which_session_was_last_used() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three.", "Four."]));
    assert_eq!(desk.talk(&[], "first\n/clear\nsecond\n").0, 0);
    let opened = |desk: &Desk| desk.talk(&[], "").2;
    let key = desk.key();
    assert!(key.ends_with("-2"), "{key}");

    assert_eq!(desk.run(&["sessions", "rename", &key, "mine"]).0, 0);
    assert!(opened(&desk).contains("session mine (1 turn so far)"), "{}", opened(&desk));
    assert_eq!(desk.talk(&[], "/fork\nin the fork\n").0, 0);
    assert!(
        opened(&desk).contains("session mine (1 turn so far)"),
        "a fork of what has another name is free"
    );
    assert_eq!(desk.run(&["sessions", "delete", "mine"]).0, 0);

    assert!(opened(&desk).contains("(1 turn so far)"), "{}", opened(&desk));
    assert!(!opened(&desk).contains("-2 ("), "the first one is left: {}", opened(&desk));
}

/// S2
#[test]
fn the_end_of_the_conversation_is_shown_with_calls_in_one_row() {
    let write = |name: &str| {
        let content = "one\ntwo\nthree\nfour\n";
        json!({"calls": [{"name": "write_file", "arguments": {"path": name, "content": content}}]})
    };
    let desk = Desk::new(&json!([write("a.txt"), "Wrote *a*.", "Second.", "Third.", "Fourth.", "Fifth."]));
    assert_eq!(desk.talk(&[], "write it\n").0, 0);
    let mut early = Terminal::of_size(desk.command(&[]), (100, 40));
    wait_for_prompt(&mut early);
    let seen = early.seen();
    leave(early);
    assert_eq!(desk.talk(&[], "say two\nsay three\nsay four\n").0, 0);

    let mut terminal = Terminal::of_size(desk.command(&[]), (100, 40));
    wait_for_prompt(&mut terminal);
    let later = terminal.seen();

    assert!(seen.contains("> write it") && seen.contains("Wrote a."), "{seen}");
    assert_eq!(seen.matches("write_file").count(), 1, "{seen}");
    assert!(!seen.contains("three") && !seen.contains("before"), "{seen}");
    assert!(later.contains("… 1 turn before") && later.contains("> say two"), "{later}");
    assert!(later.contains("Fourth.") && !later.contains("Wrote a."), "{later}");
}

/// S2: in the short form without a screen, and nothing for a script.
#[test]
fn a_plain_terminal_gets_the_last_exchange_and_a_script_gets_none() {
    let desk = Desk::new(&json!(["One.", "Two.\nTwo and a half."]));
    let (_, _, errors) = desk.talk(&[], "first\nsecond\n");
    assert!(!errors.contains("One."), "{errors}");

    let mut terminal = Terminal::start(desk.command(&["--plain"]));
    let seen = terminal.wait_to_see("Two and a half.");
    let (_, out, errors) = desk.talk(&[], "");

    assert!(seen.contains("> second") && !seen.contains("> first"), "{seen}");
    assert!(out.is_empty() && !errors.contains("second"), "{errors}");
}

/// S2: switching shows where that conversation was.
#[test]
fn a_session_that_is_resumed_shows_its_end() {
    let desk = Desk::new(&json!(["One."]));
    assert_eq!(desk.talk(&[], "what was asked there\n").0, 0);
    let key = desk.keys()[0].clone();
    let mut terminal = Terminal::of_size(desk.command(&["--new"]), (120, 30));
    wait_for_prompt(&mut terminal);
    assert!(!terminal.seen().contains("what was asked there"));

    terminal.keys(&format!("/session resume {key}\r"));

    terminal.wait_to_see("> what was asked there");
    terminal.wait_to_see("One.");
}

/// S2, T12
#[test]
fn sessions_of_the_folder_that_were_interrupted_are_named() {
    let desk = Desk::new(&json!([{"text": "word ".repeat(2_000), "piece_ms": 20}]));
    let mut first = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut first);
    first.keys("go\r");
    first.wait_to_see("word word");
    first.signal(Signal::KILL);
    first.wait();
    let key = desk.keys()[0].clone();

    let mut second = Terminal::of_size(desk.command(&["--new"]), (160, 30));
    let seen = second.wait_to_see("was interrupted; to go on: longhaul resume ");

    assert!(seen.contains(&format!("{key} was interrupted")), "{seen}");
}

/// S2
#[test]
fn a_prompt_on_the_command_line_is_the_first_thing_said() {
    let desk = Desk::new(&json!(["Fixed.", "Again."]));
    let mut terminal = Terminal::start(desk.command(&["fix the tests"]));
    terminal.wait_to_see("> fix the tests");
    terminal.wait_to_see("Fixed.");
    wait_for_prompt(&mut terminal);
    leave(terminal);
    let (code, out, errors) = desk.talk(&["--", "word"], "");

    assert_eq!((code, out.as_str()), (0, "Again.\n"), "{errors}");
    assert_eq!(desk.recorded("input_taken", "text"), [json!("fix the tests"), json!("word")]);
}

/// S2
#[test]
fn a_second_terminal_is_told_who_has_the_session_and_joins_it_or_begins_another() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    let mut first = Terminal::of_size(desk.command(&[]), (120, 30));
    wait_for_prompt(&mut first);
    says(&mut first, "hi", "One.");
    let key = desk.keys()[0].clone();

    let mut joins = Terminal::of_size(desk.command(&[]), (120, 30));
    let asked = joins.wait_to_see("[J/n]");
    joins.keys("j\r");
    joins.wait_to_see(&format!("session {key} (1 turn so far)"));
    wait_for_prompt(&mut joins);
    joins.keys("from the second\r");
    first.wait_to_see("> from the second");
    first.wait_to_see("Two.");
    let mut other = Terminal::of_size(desk.command(&[]), (120, 30));
    other.wait_to_see("[J/n]");
    other.keys("n\r");
    other.wait_to_see(&format!("session {key}-2 (new)"));
    let mut new = Terminal::of_size(desk.command(&["--new"]), (120, 30));
    new.wait_to_see(&format!("session {key}-3 (new)"));
    let mut named = Terminal::of_size(desk.command(&["-s", &key]), (120, 30));
    let told = named.wait_to_see("is open in another terminal, too");
    let piped = desk.talk(&[], "");

    assert!(asked.contains(&format!("{key} is open in another terminal (process ")), "{asked}");
    assert!(!told.contains("[J/n]"), "{told}");
    assert_eq!(piped.0, 0, "a script is not asked: {}", piped.2);
}

/// S2: a terminal that was killed has nothing open.
#[test]
fn a_terminal_that_is_gone_has_no_session_open() {
    let desk = Desk::new(&json!(["One."]));
    let mut first = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut first);
    says(&mut first, "hi", "One.");
    first.signal(Signal::KILL);
    first.wait();

    let mut second = Terminal::start(desk.command(&[]));
    let seen = wait_for_prompt(&mut second);

    assert!(!seen.contains("[J/n]") && seen.contains("(1 turn so far)"), "{seen}");
}

/// P1: `@` means something where a person types it, and only within the scope.
#[test]
fn a_file_that_is_named_with_at_is_sent_along() {
    let desk = Desk::new(&json!(["Seen.", "Again.", "Piped."]));
    std::fs::write(desk.path("work/notes.txt"), "buy milk\n").unwrap();
    std::fs::write(desk.path("work/cat.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    std::fs::write(desk.path("work/dog.png"), b"\0\x01no image").unwrap();
    let mut terminal = Terminal::of_size(desk.command(&[]), (120, 30));
    wait_for_prompt(&mut terminal);

    says(&mut terminal, "read @notes.txt and @cat.png ", "Seen.");
    says(&mut terminal, "look at @dog.png ", "neither text nor an image");
    says(&mut terminal, "read @../home/config.toml ", "nothing was sent");
    says(&mut terminal, &format!("what is {} ", desk.path("work/cat.png").display()), "Again.");
    leave(terminal);
    assert_eq!(desk.talk(&[], "read @notes.txt\n").0, 0);

    let inputs = desk.records(&desk.keys()[0], "input_taken");
    let text = |place: usize| inputs[place]["text"].as_str().unwrap();
    let images = |place: usize| inputs[place]["images"].as_array().map_or(0, Vec::len);
    assert_eq!(inputs.len(), 3, "{inputs:?}");
    assert!(text(0).contains("~~~~ file notes.txt\nbuy milk\n~~~~"), "{}", text(0));
    assert_eq!((images(0), images(1)), (1, 1));
    assert_eq!((text(2), images(2)), ("read @notes.txt", 0), "a script's line is only words");
}

/// A narrow terminal, and a folder that is gone.
#[test]
fn bad_circumstances_are_said_and_no_mistake() {
    let desk = Desk::new(&json!(["A rather long answer that has to be broken.", "Two."]));
    assert_eq!(desk.talk(&[], "a rather long question that has to be broken\n").0, 0);

    let mut narrow = Terminal::of_size(desk.command(&[]), (20, 12));
    narrow.wait_to_see("has to be");
    narrow.keys("/exit\r");
    assert_eq!(narrow.wait().code(), Some(0));
    let mut in_shell = desk.command(&[]);
    let program = in_shell.get_program().to_owned();
    let gone = desk.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "rmdir ../gone && exec \"$0\" \"$@\""]).arg(program).current_dir(&gone);
    let variables = in_shell.stdin(std::process::Stdio::null()).get_envs();
    shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);

    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("can't use the current folder"), "{errors}");
}

/// S2: a session is loaded after its prompt is there, if that takes a while.
#[test]
fn a_long_session_shows_its_end_and_goes_on() {
    let desk = Desk::new(&json!(["And on."]));
    let key = desk.key();
    desk.with_journal(|journal| {
        let (key, work) = (key.clone(), desk.path("work"));
        async move { append_turns(&*journal, &key, &work, 1_000).await }
    });

    let mut terminal = Terminal::of_size(desk.command(&[]), (100, 30));
    terminal.wait_to_see(&format!("session {key} (1,000 turns so far)"));
    let seen = wait_for_prompt(&mut terminal);
    says(&mut terminal, "more", "And on.");
    leave(terminal);

    assert!(seen.contains("… 997 turns before") && seen.contains("> question 1000"), "{seen}");
    assert_eq!(texts(&desk, &key).last(), Some(&json!("more")));
}

/// Gives a session this many turns without answers.
async fn append_turns(journal: &dyn Journal, key: &str, work: &Path, turns: u64) {
    let id = name_session(journal, key).await.unwrap();
    let work_dir = Some(work.canonicalize().unwrap().display().to_string());
    let created = SessionCreated {
        id,
        key: key.to_owned(),
        work_dir,
        origin: None,
        parent: None,
        version: "0".to_owned(),
    };
    let mut facts = vec![SessionRecord::SessionCreated(created)];
    for turn in 1..=turns {
        let (input, text) = (InputId::generate(), format!("question {turn}"));
        let mode = JoinMode::Join;
        let taken = InputTaken::of(Input::new(input, text.clone(), mode), turn);
        let input = Input::new(input, text, mode);
        put(journal, id, InboxRecord::Input(input).encode()).await.unwrap();
        facts.push(SessionRecord::InputTaken(taken));
        facts.push(SessionRecord::TurnStarted(TurnStarted::new(turn)));
        facts.push(SessionRecord::TurnEnded(TurnEnded {
            turn,
            outcome: Outcome::Completed,
            limit: None,
            text: String::new(),
            error: None,
            code: None,
            inbox_through: Some(turn),
        }));
    }
    let append = facts
        .into_iter()
        .fold(Append::to(&StreamName::session(id)), |append, fact| append.record(fact.encode()));
    journal.append(append).await.unwrap();
}

/// M14
#[test]
fn a_window_that_is_assumed_is_said_at_the_start() {
    let server = crate::typing::server_that_says("Hello.");
    for (window, is_said) in [("", true), ("context_window = 100000\n", false)] {
        let desk = Desk::with_model_of_config(&format!(
            "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\n{window}",
            server.url()
        ));

        let seen = wait_for_prompt(&mut Terminal::of_size(desk.command(&[]), (200, 24)));

        assert_eq!(seen.contains("set model.context_window"), is_said, "{seen}");
    }
}
