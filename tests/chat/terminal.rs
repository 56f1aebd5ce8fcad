//! A conversation in a terminal.

use std::io::{Read, Write};

use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Desk;

/// Waits until something can be typed, and nothing goes on.
pub(crate) fn wait_for_prompt(terminal: &mut Terminal) -> String {
    let waits =
        |seen: &str| seen.contains("longhaul: session ") && seen.ends_with("/help") && seen.contains("\n>\n");
    terminal.wait_until("a prompt that waits", waits)
}

fn slow_words() -> Value {
    json!({"text": "word ".repeat(2_000), "piece_ms": 20})
}

#[test]
fn a_question_is_answered_on_the_screen_and_exit_leaves_the_terminal_as_it_was() {
    let desk = Desk::new(&json!(["Hello *there*."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    let before = terminal.modes();
    wait_for_prompt(&mut terminal);

    terminal.keys("/help\r");
    terminal.wait_to_see("/status");
    terminal.keys("/hlep\r");
    terminal.wait_to_see("did you mean /help?");
    let while_typing = terminal.modes();
    terminal.keys("hi\r");
    terminal.wait_to_see("\nHello there.\n");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");
    let status = terminal.wait();

    assert_eq!(status.code(), Some(0));
    assert_ne!(while_typing, before, "keys came one by one");
    assert_eq!(terminal.modes(), before);
    assert_eq!(desk.recorded("input_taken", "text"), [json!("hi")]);
    let history = std::fs::read_to_string(desk.path("home/history")).unwrap();
    assert!(history.contains("hi"), "{history}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(desk.path("home/history")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

/// S1, S2
#[test]
fn what_is_printed_at_the_end_leads_back_to_the_session() {
    let desk = Desk::new(&json!(["Hello.", "Again."]));
    let mut terminal = Terminal::start(desk.command(&["--new"]));
    wait_for_prompt(&mut terminal);
    terminal.keys("hi\r");
    terminal.wait_to_see("Hello.");
    wait_for_prompt(&mut terminal);
    terminal.keys("\x04");
    let told = terminal.wait_to_see("to resume: longhaul -s cli:work-");
    assert_eq!(terminal.wait().code(), Some(0));
    let key = told.split("to resume: longhaul -s ").nth(1).unwrap().split_whitespace().next().unwrap();

    let mut again = Terminal::start(desk.command(&["-s", key]));
    again.wait_to_see("(1 turn so far)");
    again.keys("once more\r");
    again.wait_to_see("Again.");
}

/// S1, T10
#[test]
fn an_interrupt_ends_the_turn_and_at_the_prompt_it_leaves() {
    for key in ["\x03", "\x1b"] {
        let desk = Desk::new(&json!([slow_words()]));
        let mut terminal = Terminal::start(desk.command(&[]));
        wait_for_prompt(&mut terminal);

        terminal.keys("go\r");
        terminal.wait_to_see("word word");
        terminal.keys(key);
        terminal.wait_to_see("turn cancelled");
        wait_for_prompt(&mut terminal);
        terminal.keys("\x03");
        terminal.wait_to_see("Ctrl-C again to leave");
        terminal.keys("\x03");
        let status = terminal.wait();

        assert_eq!(status.code(), Some(0));
        assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("cancelled")]);
    }
}

/// T3, T10: Esc and Ctrl-C end the turn and start nothing: what was sent during the turn is in the input field again, in its order.
#[test]
fn what_was_sent_during_a_turn_that_is_cancelled_returns_to_the_input_field() {
    for key in ["\x1b", "\x03"] {
        let desk = Desk::new(&json!([slow_words(), "Answer two."]));
        let mut terminal = Terminal::of_size(desk.command(&[]), (100, 30));
        wait_for_prompt(&mut terminal);

        terminal.keys("go\r");
        terminal.wait_to_see("word word");
        terminal.keys("a queued message\r");
        terminal.wait_to_see("+ a queued message  (sent; joins the turn at its next step)");
        terminal.keys("//and more\r");
        terminal.wait_to_see("+ /and more");
        desk.wait_for(3, "input_taken");
        terminal.keys(key);
        terminal.wait_to_see("longhaul: turn cancelled");
        terminal.wait_for_row("> a queued message");
        terminal.wait_for_row("  //and more");

        assert_eq!(desk.recorded("turn_started", "turn"), [json!(1)]);
        terminal.keys("\r");
        terminal.wait_to_see("Answer two.");
        let said = desk.recorded("input_taken", "text");
        assert_eq!(said[3], json!("a queued message\n//and more"));
    }
}

/// T3: Up in the empty input field takes back what was sent during the turn, which goes on without it.
#[test]
fn up_takes_back_what_was_sent_during_the_turn() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let desk = Desk::new(&json!([
        {"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Without it.", "With it.",
    ]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (100, 30));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("exec ");
    terminal.keys("use tabs\r");
    terminal.wait_to_see("+ use tabs");
    terminal.wait_to_see("Esc ends the turn, Up takes + back");

    terminal.keys("\x1b[A");
    terminal.wait_for_row("> use tabs");
    terminal.wait_to_see("a message was taken back before it was read");
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    let seen = terminal.wait_to_see("Without it.");
    assert!(!seen.contains("+ use tabs"), "{seen}");
    desk.wait_for(1, "turn_ended");
    terminal.keys(" please\r");
    terminal.wait_to_see("With it.");

    assert_eq!(desk.recorded("input_taken", "text"), ["go", "use tabs", "use tabs please"]);
    assert_eq!(desk.recorded("turn_started", "turn"), [json!(1), json!(2)]);
}

/// T3: a terminal that has joined the turn of another process can take back what it sent there: Up alone that, Esc the turn as well.
#[test]
fn a_terminal_that_joined_a_turn_takes_back_what_it_sent() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    for (key, ends_turn) in [("\x1b[A", false), ("\x1b", true)] {
        let desk = Desk::new(&json!([
            {"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Without it.", "With it.",
        ]));
        let mut first = Terminal::of_size(desk.command(&[]), (100, 30));
        wait_for_prompt(&mut first);
        first.keys("go\r");
        first.wait_to_see("exec ");
        let mut joined = Terminal::of_size(desk.command(&["-s", &desk.key()]), (100, 30));
        joined.wait_to_see("is running a turn; your messages join it");
        joined.wait_to_see("exec ");

        joined.keys("use tabs\r");
        joined.wait_to_see("+ use tabs");
        desk.wait_for(2, "input_taken");
        joined.keys(key);
        joined.wait_for_row("> use tabs");
        std::fs::write(desk.path("work/go.txt"), "").unwrap();
        first.wait_to_see(if ends_turn { "turn cancelled" } else { "Without it." });
        desk.wait_for(1, "turn_ended");

        assert_eq!(desk.recorded("turn_started", "turn"), [json!(1)]);
        assert_eq!(desk.recorded("input_taken", "text"), ["go", "use tabs"]);
        let outcome = if ends_turn { "cancelled" } else { "completed" };
        assert_eq!(desk.recorded("turn_ended", "outcome"), [outcome]);
    }
}

/// T3, S6
#[test]
fn what_is_typed_while_a_turn_runs_joins_it_and_commands_are_carried_out() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Both."]));
    for arguments in [&[][..], &["--plain", "--new"]] {
        let _ = std::fs::remove_file(desk.path("work/go.txt"));
        let mut terminal = Terminal::start(desk.command(arguments));
        terminal.wait_to_see(">");

        terminal.keys("go\r");
        terminal.wait_to_see("exec ");
        terminal.keys("/continue\r");
        terminal.wait_to_see("/continue works between turns");
        terminal.keys("/status\r");
        terminal.wait_to_see("turn 1 is running");
        terminal.keys("and this\r");
        terminal.keys("/nonsense\r");
        terminal.wait_to_see("unknown command /nonsense");
        std::fs::write(desk.path("work/go.txt"), "").unwrap();
        terminal.wait_to_see("Both.");
        terminal.keys("\x04");
        let status = terminal.wait();

        assert_eq!(status.code(), Some(0));
        assert_eq!(desk.recorded("input_taken", "text"), [json!("go"), json!("and this")]);
        assert_eq!(desk.recorded("turn_started", "turn"), [json!(1)]);
    }
}

/// T12
#[test]
fn a_turn_that_was_open_goes_on_or_ends_as_whoever_is_there_says() {
    for (answer, outcome) in [("y\r", "completed"), ("\r", "completed"), ("n\r", "cancelled")] {
        let desk = Desk::new(&json!([slow_words()]));
        let mut first = Terminal::start(desk.command(&[]));
        wait_for_prompt(&mut first);
        first.keys("go\r");
        first.wait_to_see("word word");
        first.signal(Signal::KILL);
        first.wait();
        std::fs::write(desk.path("script.json"), json!(["Done."]).to_string()).unwrap();

        let mut second = Terminal::start(desk.command(&[]));
        second.wait_to_see("\n> go\n");
        let told = second.wait_to_see("Resume it? [Y/n]");
        second.keys(answer);
        let then = second.wait_to_see(if outcome == "completed" { "Done." } else { "turn cancelled" });
        assert_eq!(
            then.contains("[requesting the answer again]"),
            outcome == "completed" && told.contains("[interrupted here]"),
            "{then}"
        );
        wait_for_prompt(&mut second);
        second.keys("/q\r");
        second.wait();

        assert!(told.contains("Turn 1 was interrupted (requesting an answer)"), "{told}");
        assert_eq!(desk.recorded("turn_ended", "outcome"), [json!(outcome)]);
    }
}

/// S1
#[test]
fn a_signal_suspends_wherever_it_comes_and_restores_the_terminal() {
    for (signal, code, is_running) in
        [(Signal::TERM, 143, true), (Signal::HUP, 129, true), (Signal::TERM, 143, false)]
    {
        let desk = Desk::new(&json!(["Hello.", slow_words()]));
        let mut terminal = Terminal::start(desk.command(&[]));
        let before = terminal.modes();
        wait_for_prompt(&mut terminal);
        terminal.keys("hi\r");
        terminal.wait_to_see("Hello.");
        wait_for_prompt(&mut terminal);
        if is_running {
            terminal.keys("go\r");
            terminal.wait_to_see("word word");
        }

        terminal.signal(signal);
        let resume = if is_running {
            "to resume: longhaul resume cli:work-"
        } else {
            "to resume: longhaul -s cli:work-"
        };
        terminal.wait_to_see(resume);
        let status = terminal.wait();

        assert_eq!((status.code(), terminal.modes()), (Some(code), before));
        assert_eq!(desk.recorded("turn_ended", "outcome").len(), 1, "nothing is ended by a suspension");
    }
}

/// A terminal that lies about its size, or changes it while words come.
#[test]
fn any_size_will_do() {
    for size in [(1, 1), (3, 2), (10, 4), (400, 3)] {
        let desk = Desk::new(&json!(["Hello there, how are you?"]));
        let mut terminal = Terminal::of_size(desk.command(&[]), size);
        terminal.wait_until("anything", |seen| !seen.is_empty());

        terminal.keys("hi\r");
        desk.wait_for(1, "turn_ended");
        terminal.resize((60, 10));
        terminal.keys("/exit\r");

        assert_eq!(terminal.wait().code(), Some(0), "{size:?}");
    }
}

/// A server that has enough of everybody for an hour.
fn throttling_server() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = connection.read(&mut [0; 65536]);
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    address
}

/// M5
#[test]
fn a_long_wait_is_counted_down_and_has_three_ways_out() {
    let desk = Desk::new(&json!(["The other answers."]));
    let config = format!("[model]\nbase_url = \"{}\"\n", throttling_server());
    desk.configure(&config);
    let mut command = desk.command(&["--model", "custom/busy"]);
    command.env("NO_PROXY", "127.0.0.1");
    let mut terminal = Terminal::start(command);
    let ways = " (/retry now, /model NAME to switch, Esc to cancel)";

    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("throttled: waiting 60 min 0 s, retry 1");
    terminal.wait_to_see(ways);
    terminal.keys("/retry\r");
    terminal.wait_to_see("throttled: waiting 60 min 0 s, retry 2");
    terminal.wait_to_see(ways);
    terminal.keys("\x1b");
    terminal.wait_to_see("turn cancelled");
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see(ways);
    terminal.keys(&format!("/model scripted/{}\r", desk.path("script.json").display()));
    terminal.wait_to_see("from the next request on");
    terminal.wait_to_see("The other answers.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
}

/// M9: on a terminal words are shown as they come, so it is said when they count no more.
#[test]
fn an_answer_that_breaks_off_is_said_to_be_asked_again() {
    let desk = Desk::new(&json!([{"text": "cut short", "cut": true}]));
    desk.configure("[retry]\nmax_retries = 1\nbase_ms = 1\n");
    let mut terminal = Terminal::start(desk.command(&["run", "go"]));

    terminal.wait_for("cut short");
    terminal.wait_for("[the answer was cut off; retrying]");
    terminal.wait_for("retry 1 of 1");
    terminal.wait_for("cut short");
    let rest = terminal.wait_for("turn failed");

    assert!(!rest.contains("asked again"), "{rest}");
    assert_eq!(terminal.wait().code(), Some(1));
}

/// T3: what is typed ahead, or pasted without marks, is not lost.
#[test]
fn lines_that_come_all_at_once_are_all_heard() {
    let desk = Desk::new(&json!(["Answer one.", "Answer two.", "Answer three."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("one\rtwo\rthree\r");

    desk.wait_for(3, "input_taken");
    terminal.wait_to_see("Answer one.");
    assert_eq!(desk.recorded("input_taken", "text"), [json!("one"), json!("two"), json!("three")]);
}
