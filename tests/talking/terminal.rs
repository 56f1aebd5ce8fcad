//! A conversation in a terminal.

use std::io::{Read, Write};

use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Desk;

const PROMPT: &str = "> ";

fn slow_words() -> Value {
    json!({"text": "word ".repeat(2_000), "piece_ms": 20})
}

#[test]
fn a_question_is_answered_at_the_prompt_and_exit_leaves_the_terminal_as_it_was() {
    let desk = Desk::new(&json!(["Hello there."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    let before = terminal.modes();
    terminal.wait_for(PROMPT);

    terminal.keys("/help\r");
    terminal.wait_for("/status");
    terminal.wait_for(PROMPT);
    terminal.keys("/hlep\r");
    terminal.wait_for("did you mean /help?");
    terminal.wait_for(PROMPT);
    let while_editing = terminal.modes();
    terminal.keys("hi\r");
    terminal.wait_for("Hello there.");
    terminal.wait_for(PROMPT);
    terminal.keys("/exit\r");
    let status = terminal.wait();

    assert_eq!(status.code(), Some(0));
    assert_ne!(while_editing, before, "the line was edited");
    assert_eq!(terminal.modes(), before);
    assert_eq!(desk.recorded("input_taken", "text"), [json!("hi")]);
    let history = std::fs::read_to_string(desk.path("home/history")).unwrap();
    assert!(history.contains("hi"), "{history}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(desk.path("home/history")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

/// S1, T10
#[test]
fn an_interrupt_ends_the_turn_and_at_the_prompt_it_leaves() {
    let desk = Desk::new(&json!([slow_words()]));
    let mut terminal = Terminal::start(desk.command(&[]));
    terminal.wait_for(PROMPT);

    terminal.keys("go\r");
    terminal.wait_for("word word");
    terminal.keys("\x03");
    terminal.wait_for("the turn is cancelled");
    terminal.wait_for(PROMPT);
    terminal.keys("\x03");
    let status = terminal.wait();

    assert_eq!(status.code(), Some(0));
    assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("cancelled")]);
}

/// T3, S6
#[test]
fn what_is_typed_while_a_turn_runs_joins_it_and_commands_are_carried_out() {
    let command = "while [ ! -e go.txt ]; do sleep 0.02; done";
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Both."]));
    for arguments in [&[][..], &["--plain", "--new"]] {
        let _ = std::fs::remove_file(desk.path("work/go.txt"));
        let mut terminal = Terminal::start(desk.command(arguments));
        terminal.wait_for(PROMPT);

        terminal.keys("go\n");
        terminal.wait_for("· exec");
        terminal.keys("/continue\n");
        terminal.wait_for("/continue is for between turns");
        terminal.keys("/status\n");
        terminal.wait_for("turn 1 is open");
        terminal.keys("and this\n/nonsense\n");
        terminal.wait_for("there is no command /nonsense");
        std::fs::write(desk.path("work/go.txt"), "").unwrap();
        terminal.wait_for("Both.");
        terminal.wait_for(PROMPT);
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
    for (answer, outcome) in [("y\n", "completed"), ("\n", "completed"), ("n\n", "cancelled")] {
        let desk = Desk::new(&json!([slow_words()]));
        let mut first = Terminal::start(desk.command(&[]));
        first.wait_for(PROMPT);
        first.keys("go\r");
        first.wait_for("word word");
        first.signal(Signal::KILL);
        first.wait();
        std::fs::write(desk.path("script.json"), json!(["Done."]).to_string()).unwrap();

        let mut second = Terminal::start(desk.command(&[]));
        let told = second.wait_for("Go on with it? [Y/n]");
        second.keys(answer);
        second.wait_for(PROMPT);
        second.keys("/q\r");
        second.wait();

        assert!(told.contains("Turn 1 was interrupted (an answer was on its way)"), "{told}");
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
        terminal.wait_for(PROMPT);
        terminal.keys("hi\r");
        terminal.wait_for("Hello.");
        terminal.wait_for(PROMPT);
        if is_running {
            terminal.keys("go\r");
            terminal.wait_for("word word");
        }

        terminal.signal(signal);
        terminal.wait_for(if is_running { "to go on: longhaul resume cli:work-" } else { " is saved; " });
        let status = terminal.wait();

        assert_eq!((status.code(), terminal.modes()), (Some(code), before));
        assert_eq!(desk.recorded("turn_ended", "outcome").len(), 1, "nothing is ended by a suspension");
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
    let ways = "/retry, /model NAME or Ctrl-C end the wait";

    terminal.wait_for(PROMPT);
    terminal.keys("go\r");
    terminal.wait_for("throttled: waiting 60 min 0 s, retry 1");
    terminal.wait_for(ways);
    terminal.keys("/retry\n");
    terminal.wait_for("throttled: waiting 60 min 0 s, retry 2");
    terminal.wait_for(ways);
    terminal.keys("\x03");
    terminal.wait_for("the turn is cancelled");
    terminal.wait_for(PROMPT);
    terminal.keys("go\r");
    terminal.wait_for(ways);
    terminal.keys(&format!("/model scripted/{}\n", desk.path("script.json").display()));
    terminal.wait_for("answers from the next request on");
    terminal.wait_for("The other answers.");
    terminal.wait_for(PROMPT);
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
    terminal.wait_for("[the answer broke off; it is asked again]");
    terminal.wait_for("retry 1 of 1");
    terminal.wait_for("cut short");
    let rest = terminal.wait_for("the turn failed");

    assert!(!rest.contains("asked again"), "{rest}");
    assert_eq!(terminal.wait().code(), Some(1));
}

/// T3: what is typed ahead, or pasted without marks, is not lost.
#[test]
fn lines_that_come_all_at_once_are_all_heard() {
    let desk = Desk::new(&json!(["Answer one.", "Answer two.", "Answer three."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    terminal.wait_for(PROMPT);

    terminal.keys("one\rtwo\rthree\r");

    for answer in ["Answer one.", "Answer two.", "Answer three."] {
        terminal.wait_for(answer);
    }
}
