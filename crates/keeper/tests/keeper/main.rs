//! The keeper's promises, held by tests with real processes: commands, keepers, and runtimes that are killed.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod home;
mod part;
mod processes;

mod adopting;
mod bounds;
mod damage;
mod disk;
mod ending;
mod expiring;
mod following;
mod forcing;
mod formats;
mod keeping_output;
mod running;
mod socket;
mod starting;
