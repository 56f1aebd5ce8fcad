//! The keeper's promises, held by tests with real processes: commands, keepers, and runtimes that are killed.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod home;
mod part;
mod processes;

mod adopt;
mod bounds;
mod damage;
mod disk;
mod expiry;
mod follow;
mod forced_kill;
mod formats;
mod kill;
mod output;
mod relay;
mod run;
mod socket;
mod start;
mod tcp_client;
