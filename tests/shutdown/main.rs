//! One path for every end: every signal, in every mode, at every moment. The real program, real signals, a real model server.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `modes` | the ways in which the program runs for long, and how each is talked to |
//! | `moments` | what it is busy with, and how the model server brings that about |
//! | `matrix` | every signal in every mode at every moment |
//! | `second_signal`, `lost_terminal`, `panics` | a second signal; a terminal that is gone; a mistake in the program itself |

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[path = "../desk.rs"]
#[allow(dead_code, reason = "these tests have a model server, and look at records for themselves")]
mod desk;
mod leftovers;
mod lost_terminal;
mod matrix;
mod modes;
mod moments;
// What is released does not rehearse mistakes.
#[cfg(debug_assertions)]
mod panics;
mod second_signal;

use std::time::{Duration, Instant};

/// How long a test waits before it gives up. A machine that has much else to do is no reason to fail.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a promise in seconds is held to: itself, where the machine has nothing else to do and somebody says so; else that
/// nothing waits for a clock that is longer.
fn within(promised: Duration) -> Duration {
    match std::env::var_os("LONGHAUL_HOLD_TIMES") {
        Some(_) => promised,
        None => promised.max(Duration::from_secs(5)) * 6,
    }
}
