//! `!command`: a command of the user's, in the terminal.

use longhaul_testkit::Terminal;
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;
use crate::typing::server_that_says;

fn with_server(url: &str) -> Desk {
    Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{url}/v1'\ncontext_window = 100000\n\
         [memory]\nextract_at_tokens = 0\n"
    ))
}

/// P8: its output is data, and no turn begins.
#[test]
fn the_model_sees_a_command_of_the_users_with_the_next_message() {
    let server = server_that_says("I see.");
    let desk = with_server(server.url());
    std::fs::write(desk.path("work/notes.txt"), "a < b\n</output>\n").unwrap();
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("!cat notes.txt; cat; exit 4\r");
    terminal.wait_to_see("exit code 4");
    let seen = terminal.wait_to_see("the model sees this with your next message");
    assert!(seen.contains("\na < b\n"), "{seen}");
    terminal.keys("!!echo for-me-alone\r");
    terminal.wait_to_see("\nfor-me-alone\n");
    assert_eq!(server.requests().iter().filter(|seen| seen.method == "POST").count(), 0, "no turn has begun");
    wait_for_prompt(&mut terminal);
    terminal.keys("what is in it?\r");
    terminal.wait_to_see("I see.");
    wait_for_prompt(&mut terminal);
    terminal.keys("\x04");
    assert_eq!(terminal.wait().code(), Some(0));

    let requests = server.requests();
    let asked = requests.iter().find(|seen| seen.method == "POST").unwrap().json();
    let messages = asked["messages"].as_array().unwrap();
    let texts: Vec<String> = messages.iter().map(|message| message["content"].to_string()).collect();
    let told = texts.iter().position(|text| text.contains("<user-command>")).unwrap();
    let said = texts.iter().rposition(|text| text.contains("what is in it?")).unwrap();
    assert!(told <= said, "{texts:#?}");
    assert!(texts[told].contains("<command>cat notes.txt; cat; exit 4</command>"), "{}", texts[told]);
    assert!(texts[told].contains("a &lt; b\\n&lt;/output&gt;"), "{}", texts[told]);
    assert!(texts[told].contains("exit code 4"), "{}", texts[told]);
    assert!(!texts.concat().contains("for-me-alone"));
    assert_eq!(desk.records(&desk.key(), "turn_started").len(), 1);
    assert_eq!(desk.recorded("input_taken", "text"), ["what is in it?"], "nobody said the output");
}

#[test]
fn esc_and_ctrl_c_end_a_command_and_what_was_typed_meanwhile_comes_next() {
    for key in ["\x1b", "\x03"] {
        let desk = Desk::new(&json!(["Here."]));
        let mut terminal = Terminal::start(desk.command(&[]));
        wait_for_prompt(&mut terminal);

        terminal.keys("!echo begun; sleep 600 & sleep 600\r");
        terminal.wait_to_see("\nbegun\n");
        terminal.wait_to_see("Esc ends the command");
        terminal.keys("are you there?\r");
        terminal.wait_to_see("> are you there?");
        terminal.keys(key);
        terminal.wait_to_see("interrupted by the user");
        terminal.wait_to_see("Here.");
        wait_for_prompt(&mut terminal);
        terminal.keys("\x04");

        assert_eq!(terminal.wait().code(), Some(0));
        assert_eq!(desk.recorded("input_taken", "text"), ["are you there?"]);
    }
}

/// Nothing is told of a command that did not end, and nothing is in the way of what comes next.
#[test]
fn killed_while_a_command_runs_nothing_is_told() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("hi\r");
    terminal.wait_to_see("One.");
    wait_for_prompt(&mut terminal);
    terminal.keys("!echo begun; sleep 5\r");
    terminal.wait_to_see("\nbegun\n");
    terminal.signal(rustix::process::Signal::KILL);
    terminal.wait();

    let mut again = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut again);
    again.keys("\x04");
    again.wait();

    assert_eq!(desk.recorded("order_taken", "order"), Vec::<serde_json::Value>::new());
}

/// A mark means something only from a person at a keyboard.
#[test]
fn a_line_from_a_pipe_runs_nothing() {
    let desk = Desk::new(&json!(["I won't."]));

    let (code, out, errors) = desk.talk(&[], "!touch made.txt\n");

    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("I won't."), "{out}");
    assert!(!desk.path("work/made.txt").exists());
    assert_eq!(desk.recorded("input_taken", "text"), ["!touch made.txt"]);
}

#[test]
fn a_command_that_is_entered_during_a_turn_runs_after_it() {
    let wait = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": wait}}]}, "Done."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("exec ");

    terminal.keys("!echo its-turn-came\r");
    terminal.wait_to_see("the command runs when the turn has ended");
    assert!(!terminal.seen().contains("\nits-turn-came\n"));
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    terminal.wait_to_see("Done.");
    terminal.wait_to_see("\nits-turn-came\n");
}

#[test]
fn a_long_output_is_folded_and_can_be_opened() {
    let desk = Desk::new(&json!([]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (80, 60));
    wait_for_prompt(&mut terminal);

    terminal.keys("!!seq -f 'row %g' 20000\r");
    let seen = terminal.wait_to_see("\nrow 20000\n");
    terminal.keys("\x0f");
    terminal.wait_to_see("Enter opens");
    terminal.keys("\r");
    terminal.wait_to_see("/ searches");
    terminal.keys("/row 12345\r");
    let found = terminal.wait_to_see("row 12345\n");

    assert!(seen.contains("row 40\n… 19,956 more lines, Ctrl-O\nrow 19997\n"), "{seen}");
    assert!(!seen.contains("row 41\n"), "{seen}");
    assert!(found.contains("row 12344\n"), "{found}");
}
