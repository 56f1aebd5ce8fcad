//! P5 and E7 against real sockets: what the guarded client reaches, and what it does not.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod attempts;
mod bounds;
mod lookup;
mod redirects;
mod tools;
