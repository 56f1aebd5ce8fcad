//! Ends that are asked for while something else goes on.

use std::io::Write;
use std::process::Stdio;

use longhaul_testkit::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::Desk;

/// S1, T10: where Ctrl-C is a key, it is heard also by whoever waits to leave.
#[test]
fn whoever_waits_to_leave_can_still_end_the_turn() {
    for key in ["\x03", "\x1b"] {
        let desk = Desk::new(&json!([{"text": "word ".repeat(20_000), "piece_ms": 20}]));
        let mut terminal = Terminal::start(desk.command(&[]));
        terminal.wait_to_see("session cli:");
        terminal.keys("go\r");
        terminal.wait_to_see("word word");

        terminal.keys("\x04");
        terminal.keys("and more\r");
        terminal.wait_to_see("not sent");
        terminal.keys(key);
        let status = terminal.wait();

        assert_eq!(status.code(), Some(0), "{key:?}");
        assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("cancelled")], "{key:?}");
        assert_eq!(desk.recorded("input_taken", "text"), [json!("go")], "{key:?}");
    }
}

/// S1: a connection that stands still takes nothing, and is no reason to stay.
#[test]
fn a_terminal_that_takes_nothing_holds_up_no_end() {
    for arguments in [&[][..], &["--plain"][..]] {
        let desk = Desk::new(&json!(["word ".repeat(100_000)]));
        let mut terminal = Terminal::start(desk.command(arguments));
        terminal.wait_to_see("session cli:");
        terminal.hold();
        terminal.keys("go\r");
        desk.wait_for(1, "turn_ended");
        // More than it has room for is on its way by now.
        std::thread::sleep(std::time::Duration::from_millis(500));

        terminal.signal(Signal::TERM);
        let status = terminal.wait();

        assert_eq!(status.code(), Some(143), "{arguments:?}");
    }
}

/// S1: whoever ends a script does not want its next line.
#[test]
fn an_interrupt_in_the_middle_of_a_script_ends_all_of_it() {
    let desk = Desk::new(&json!([{"text": "word ".repeat(20_000), "piece_ms": 20}, "Next."]));
    let mut process = desk.command(&[]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(b"go\nnext\n").unwrap();
    desk.wait_for(1, "checkpoint");

    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    let status = process.wait().unwrap();

    assert_eq!(status.code(), Some(130));
    assert_eq!(desk.recorded("input_taken", "text"), [json!("go")]);
}
