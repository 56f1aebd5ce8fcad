//! The console in a real browser (H8): each story is a script for Chromium, and the test owns the server. `scripts/peers` installs
//! what this needs, `scripts/test` runs it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod console_server;
#[path = "../installed.rs"]
mod installed;
mod stories;
