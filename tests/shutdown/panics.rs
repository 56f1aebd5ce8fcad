//! A mistake in the program itself.

use std::process::Command;

use longhaul_protocol::SessionRecord;

use crate::desk::Desk;
use crate::leftovers::{Left, processes, sound_records};
use crate::matrix::go_on;
use crate::modes::Mode;
use crate::moments::{Busy, Moment};

/// S1: a panic takes the same path. The turn and its command stay open, the terminal is what it was, and whoever reads what is said
/// knows what happened, where it is written down and how to go on.
fn a_panic_suspends(mode: Mode) {
    let busy = Busy::at(Moment::Command);
    let desk = Desk::with_model_of_config(&busy.config());
    let rehearse = |command: &mut Command| {
        command.env("LONGHAUL_REHEARSE_PANIC", "tool_started");
    };

    let ended = mode.start_with(&desk, rehearse).end();

    let cell = format!("{mode:?}: {}", ended.said);
    assert_eq!((ended.code, ended.terminal_is_restored), (Some(1), true), "{cell}");
    assert_eq!(
        ended.said.matches("longhaul crashed (this is a bug): this is a rehearsal").count(),
        1,
        "{cell}"
    );
    assert!(!ended.said.contains("stack backtrace"), "{cell}");
    let reports: Vec<String> = std::fs::read_dir(desk.path("home/log"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(reports.len() == 1 && reports[0].contains("this is a rehearsal"), "{reports:?}");
    assert!(reports[0].contains("panics.rs"), "{}", reports[0]);
    let records = sound_records(&desk);
    let has_ended =
        records.iter().any(|record| matches!(SessionRecord::decode(record), Ok(SessionRecord::TurnEnded(_))));
    assert!(!has_ended, "{cell}");
    assert!(!processes(&desk).iter().any(|left| matches!(left, Left::Program(_))), "{cell}");
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    go_on(&desk, &ended, &cell);
}

/// S1
#[test]
fn a_panic_suspends_a_run() {
    a_panic_suspends(Mode::OneShot);
}

/// S1
#[test]
fn a_panic_suspends_a_conversation_on_a_screen() {
    a_panic_suspends(Mode::Screen);
}

/// S1
#[test]
fn a_panic_suspends_a_conversation_line_by_line() {
    a_panic_suspends(Mode::Plain);
}

/// S1
#[test]
fn a_panic_suspends_a_conversation_from_a_pipe() {
    a_panic_suspends(Mode::Piped);
}

/// S1
#[test]
fn a_panic_suspends_a_server() {
    a_panic_suspends(Mode::Serve);
}
