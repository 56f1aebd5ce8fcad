//! A second signal: whoever asks twice means it.

use std::time::{Duration, Instant};

use longhaul_testkit::broken_rules;
use rustix::process::Signal;

use crate::desk::Desk;
use crate::leftovers::{Left, processes, records, sound_records};
use crate::modes::Mode;
use crate::moments::{Busy, Moment};
use crate::within;

/// S1: it is gone, the terminal is what it was, and what is on disk is whole. What has begun by then to end may have ended.
fn a_second_signal_ends_it_at_once(mode: Mode, signals: [Signal; 2]) {
    let busy = Busy::at(Moment::Command);
    let desk = Desk::with_model_of_config(&busy.config());
    let running = mode.start(&desk);
    busy.wait_until(Moment::Command, &desk);

    running.signal(signals[0]);
    // Two that come together are two.
    std::thread::sleep(Duration::from_millis(20));
    let signalled = Instant::now();
    running.signal(signals[1]);
    let ended = running.end();
    let took = signalled.elapsed();

    let cell = format!("{mode:?}, {signals:?}: {}", ended.said);
    assert!(took < within(Duration::from_millis(500)), "{took:?} {cell}");
    let codes = signals.map(|signal| Some(128 + signal.as_raw()));
    assert!(codes.contains(&ended.code), "{:?} {cell}", ended.code);
    assert!(ended.terminal_is_restored, "{cell}");
    assert!(!processes(&desk).iter().any(|left| matches!(left, Left::Program(_))), "{cell}");
    assert_eq!(broken_rules(&records(&desk)), Vec::<String>::new(), "{cell}");
}

/// S1
#[test]
fn a_second_signal_ends_any_mode_at_once() {
    for mode in [Mode::OneShot, Mode::Screen, Mode::Plain, Mode::Piped, Mode::Serve] {
        a_second_signal_ends_it_at_once(mode, [Signal::TERM, Signal::INT]);
    }
}

/// S1: Ctrl-C is given to a turn first; twice is for the process.
#[test]
fn a_second_interrupt_ends_what_the_first_would_only_cancel() {
    for mode in [Mode::OneShot, Mode::Piped] {
        a_second_signal_ends_it_at_once(mode, [Signal::INT, Signal::INT]);
    }
}

/// S1: nothing is left behind that would be in somebody's way.
#[test]
fn after_two_signals_the_next_process_goes_on() {
    let busy = Busy::at(Moment::Answer);
    let desk = Desk::with_model_of_config(&busy.config());
    let running = Mode::OneShot.start(&desk);
    busy.wait_until(Moment::Answer, &desk);
    running.signal(Signal::TERM);
    running.signal(Signal::HUP);
    running.end();

    busy.let_go();
    let (code, out, errors) = desk.run(&["resume", "a"]);

    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    sound_records(&desk);
}
