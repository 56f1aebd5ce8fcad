//! Typing at the prompt: lists, the history, the editor, earlier messages, and the focus of the terminal.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use longhaul_testkit::Terminal;
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;

/// A program in the desk's folder, for `EDITOR`.
fn program(desk: &Desk, name: &str, script: &str) -> String {
    let path = desk.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

fn with_editor(desk: &Desk, editor: &str) -> Command {
    let mut command = desk.command(&[]);
    command.env("EDITOR", editor).env_remove("VISUAL");
    command
}

#[test]
fn enter_takes_the_highlighted_file_of_any_folder() {
    let desk = Desk::new(&json!(["Read."]));
    for file in ["src/deep/parser.rs", "target/parser.rs"] {
        std::fs::create_dir_all(desk.path("work").join(file).parent().unwrap()).unwrap();
        std::fs::write(desk.path("work").join(file), "").unwrap();
    }
    std::fs::write(desk.path("work/.gitignore"), "target/\n").unwrap();
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("look at @prs");
    let listed = terminal.wait_to_see("> src/deep/parser.rs");
    assert!(!listed.contains("target/parser.rs"), "{listed}");
    terminal.keys("\r");
    terminal.wait_for_row("> look at @src/deep/parser.rs");
    terminal.keys("\r");
    terminal.wait_to_see("Read.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exi\r");

    assert_eq!(terminal.wait().code(), Some(0), "the highlighted command has run");
    let said = desk.recorded("input_taken", "text");
    assert!(said[0].as_str().unwrap().starts_with("look at @src/deep/parser.rs"), "{said:?}");
}

#[test]
fn ctrl_r_finds_an_earlier_input_and_esc_leaves_the_typed_text() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    for (said, answer) in [("the first thing", "One."), ("another", "Two.")] {
        terminal.keys(&format!("{said}\r"));
        terminal.wait_to_see(answer);
        wait_for_prompt(&mut terminal);
    }

    terminal.keys("a draft");
    terminal.wait_for_row("> a draft");
    terminal.keys("\x12fir");
    terminal.wait_to_see("history search: fir_");
    terminal.wait_for_row("> the first thing");
    terminal.keys("\x1b");
    terminal.wait_for_row("> a draft");
    terminal.keys("\x12fir\r");
    terminal.wait_for_row("> the first thing");
    terminal.keys("\r");
    terminal.wait_to_see("Three.");

    let said = desk.recorded("input_taken", "text");
    assert_eq!(said, ["the first thing", "another", "the first thing"]);
}

#[test]
fn ctrl_g_opens_the_editor_with_the_typed_text_and_takes_the_result_back() {
    let desk = Desk::new(&json!(["Read."]));
    let editor = program(
        &desk,
        "editor",
        "stty -a > modes.txt; cat \"$2\" > before.txt; printf 'edited\\ntext\\n' > \"$2\"",
    );
    let mut terminal = Terminal::start(with_editor(&desk, &format!("{editor} --wait")));
    wait_for_prompt(&mut terminal);
    let modes = terminal.modes();

    terminal.keys("a draft\x07");
    terminal.wait_for_row("> edited");
    terminal.wait_for_row("  text");
    assert_eq!(terminal.modes(), modes, "keys come one by one again");
    terminal.keys(" and more\r");
    terminal.wait_to_see("Read.");
    terminal.keys("\x04");
    assert_eq!(terminal.wait().code(), Some(0));

    assert_eq!(desk.recorded("input_taken", "text"), ["edited\ntext and more"]);
    assert_eq!(std::fs::read_to_string(desk.path("work/before.txt")).unwrap(), "a draft");
    let inside = std::fs::read_to_string(desk.path("work/modes.txt")).unwrap();
    assert!(
        inside.contains(" icanon") && inside.contains(" echo "),
        "the editor has a terminal as it was: {inside}"
    );
}

#[test]
fn an_editor_that_fails_or_is_not_there_loses_nothing() {
    let desk = Desk::new(&json!([]));
    let failing = program(&desk, "failing", "exit 3");
    for (editor, told) in [
        (failing.as_str(), "the editor failed (exit status: 3)"),
        ("no-such-editor", "no-such-editor is not installed"),
    ] {
        let mut terminal = Terminal::start(with_editor(&desk, editor));
        wait_for_prompt(&mut terminal);

        terminal.keys("a draft\x07");
        terminal.wait_to_see(told);
        terminal.wait_for_row("> a draft");
        terminal.keys("\x03");
        wait_for_prompt(&mut terminal);
        terminal.keys("\x04");
        assert_eq!(terminal.wait().code(), Some(0));
    }
}

/// S1: an editor does not hold up the end.
#[test]
fn a_signal_ends_the_editor_too_and_keeps_what_was_typed() {
    let desk = Desk::new(&json!([]));
    let editor = program(&desk, "editor", "touch open; exec sleep 600");
    let mut terminal = Terminal::start(with_editor(&desk, &editor));
    wait_for_prompt(&mut terminal);
    let open = desk.path("work/open");

    terminal.keys("a draft\x07");
    while !open.exists() {
        std::thread::yield_now();
    }
    terminal.signal(rustix::process::Signal::TERM);

    assert_eq!(terminal.wait().code(), Some(128 + 15));
    let history = std::fs::read_to_string(desk.path("home/history")).unwrap();
    assert!(history.contains("a draft"), "{history}");
}

/// S4
#[test]
fn esc_esc_goes_back_to_an_earlier_message_in_a_fork() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    for (said, answer) in [("the first thing", "One."), ("the second thing", "Two.")] {
        terminal.keys(&format!("{said}\r"));
        terminal.wait_to_see(answer);
        wait_for_prompt(&mut terminal);
    }
    let original = desk.keys()[0].clone();

    terminal.keys("\x1b");
    terminal.wait_to_see("Esc again to go back to an earlier message");
    terminal.keys("\x1b");
    terminal.wait_to_see("Go back to which message?");
    terminal.wait_to_see("> the second thing");
    terminal.keys("\r");
    terminal.wait_to_see("stays as it was");
    // The same words stand in the conversation, further up.
    terminal.wait_until("the message in the input field", |seen| {
        let last_rows = || seen.trim_end().lines().rev().take(3);
        seen.contains("-fork (1 turn so far)") && last_rows().any(|row| row.trim() == "> the second thing")
    });
    terminal.keys(" again\r");
    // The copy has had one answer, so its next one is the second.
    terminal.wait_until("the answer once more", |seen| seen.matches("\nTwo.\n").count() == 2);
    wait_for_prompt(&mut terminal);
    terminal.keys("\x04");
    assert_eq!(terminal.wait().code(), Some(0));

    let texts = |key: &str| -> Vec<String> {
        let taken = desk.records(key, "input_taken");
        taken.iter().map(|body| body["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&original), ["the first thing", "the second thing"]);
    assert_eq!(texts(&format!("{original}-fork")), ["the first thing", "the second thing again"]);
}

#[test]
fn a_terminal_without_focus_rings_and_one_with_it_does_not() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    let mut command = desk.command(&[]);
    command.env("TERM_PROGRAM", "none");
    let mut terminal = Terminal::start(command);
    let beginning = terminal.wait_for("\x1b[?1004h");
    assert!(!beginning.contains('\x07'));
    wait_for_prompt(&mut terminal);

    terminal.keys("\x1b[I");
    terminal.keys("one\r");
    terminal.wait_to_see("One.");
    wait_for_prompt(&mut terminal);
    terminal.keys("\x1b[O");
    terminal.keys("the second\r");
    let before_the_bell = terminal.wait_for("\x07");
    terminal.wait_to_see("Two.");
    wait_for_prompt(&mut terminal);
    terminal.keys("\x04");
    let rest = terminal.rest();

    assert!(before_the_bell.contains("One."), "{before_the_bell:?}");
    assert!(rest.contains("\x1b[?1004l") && !rest.contains('\x07'), "{rest:?}");
}

#[test]
fn model_picks_from_what_the_server_offers_and_the_last_row_says_so() {
    let server = ModelServer::start(Script::by(|seen| match seen.path.as_str() {
        "/v1/models" => Reply::json(&json!({"data": [{"id": "small"}, {"id": "large"}]})),
        _ => Reply::error(404, "{}"),
    }));
    let desk = Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/small'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\n[memory]\nextract_at_tokens = 0\n",
        server.url()
    ));
    let mut terminal = Terminal::start(desk.command(&[]));
    terminal.wait_to_see("custom/small · /help");

    terminal.keys("/model\r");
    terminal.wait_to_see("Which model?");
    terminal.wait_to_see("> custom/small  in use");
    terminal.keys("large");
    terminal.wait_to_see("1 of 2");
    terminal.keys("\r");
    terminal.wait_to_see("custom/large answers from the next request on");
    terminal.wait_until("the model in the last row", |seen| seen.ends_with("custom/large · /help"));
    terminal.keys("/model custom/medium\r");
    terminal.wait_until("the model in the last row", |seen| seen.ends_with("custom/medium · /help"));
    terminal.keys("/clear\r/model\r");
    terminal.wait_to_see("> custom/medium  in use");
}

#[test]
fn a_paste_of_five_megabytes_is_one_label_and_a_larger_one_is_refused() {
    let desk = Desk::new(&json!([]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    let paste =
        |lines: usize| format!("\x1b[200~{}\x1b[201~", "0123456789abcdef0123456789abcde\n".repeat(lines));

    terminal.keys("before ");
    terminal.keys(&paste(160_000));
    terminal.wait_for_row("> before [pasted 160000 lines]");
    terminal.keys(" after");
    terminal.wait_for_row("> before [pasted 160000 lines] after");
    terminal.keys(&paste(280_000));
    terminal.wait_to_see("This would be more than 8 MiB");
    terminal.wait_for_row("> before [pasted 160000 lines] after");
}

/// One answer of a model server for everything.
pub(crate) fn server_that_says(text: &str) -> ModelServer {
    ModelServer::start(Script::saying(ScriptedAnswer::text(text)))
}
